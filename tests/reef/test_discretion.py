"""What is shown of addresses and of foreign words."""

from __future__ import annotations

import pytest

from bubble.reef.discretion import quoted, shown_url, without_secrets


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://agents.example:8443/team", "https://agents.example:8443/team"),
        ("https://user:S3CR3T@host/?key=S3CR3T", "https://…@host/?…"),
        ("https://user:S3CR@3T@host/", "https://…@host/"),
        ("https://us er:S3CR3T@host/", "https://…@host/"),
        ("https://host/x#access_token=S3CR3T", "https://host/x#…"),
        ("https://host?key=S3CR3T#more", "https://host?…"),
        ("//user:S3CR3T@host/x", "//…@host/x"),
    ],
)
def test_an_address_is_shown_without_what_opens_it(url: str, shown: str) -> None:
    assert shown_url(url) == shown


def test_an_address_without_secrets_is_shown_as_it_is() -> None:
    words = "The agent at http://127.0.0.1:8100/v1 cannot be reached, is it?"
    assert without_secrets(words) == words


def test_foreign_words_are_one_line_that_a_terminal_can_show() -> None:
    assert quoted(" two\n lines\t") == "two lines"
    assert quoted("\x1b[2Jred \ud800 \u202egnp.exe\x07") == "\ufffd[2Jred \ufffd \ufffdgnp.exe\ufffd"


def test_foreign_words_are_cut_after_what_is_useful_and_not_within_a_secret() -> None:
    assert quoted("x" * 501) == "x" * 500 + "…"
    assert quoted("x" * 490 + " http://user:S3CR3T@host") == "x" * 490 + " http://…@…"
    assert len(quoted("//" * 40_000_000)) == 501
