"""What a failure says is for everybody on the thread."""

from __future__ import annotations

import pytest

from bubble.reef.failures import AgentFailure, Broken, Refused


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ('It says: {"detail":"bad Authorization: Bearer S3CR3T.x-y_z"}', "Bearer …"),
        ("It says: basic dXNlcjpwdw==", "basic …"),
        ("There is no agent card at http://user:S3CR3T@h/agent?key=S3CR3T.", "http://…@h/agent?…."),
        ("It wants http://x/y?token=S3CR3T&z=1, which is elsewhere.", "http://x/y?…, which is elsewhere."),
    ],
)
def test_a_failure_tells_no_secret(words: str, shown: str) -> None:
    for failure in (AgentFailure(words), Refused(words, status=400), Broken(words)):
        assert "S3CR3T" not in failure.message
        assert "dXNlcjpwdw" not in failure.message
        assert shown in failure.message


def test_a_failure_tells_an_address_without_secrets_as_it_is() -> None:
    words = "The agent at http://127.0.0.1:8100/v1 cannot be reached."
    assert AgentFailure(words).message == words
