"""Grants, principals and tokens from the command line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cli.conftest import Server, Shell


@pytest.fixture
def thread(admin: Shell) -> str:
    """A fresh thread of the administrator's."""
    return admin.ok("threads", "create").strip()


def test_a_role_is_given_changed_and_taken(admin: Shell, thread: str, person: Callable[..., Shell]) -> None:
    guest = person("guest")
    guest.fails("threads", "show", thread, code=1)
    admin.ok("grants", "put", thread, "guest", "observer")
    guest.ok("threads", "show", thread)
    assert "events.run_started" in guest.fails("post", thread, "x", code=1)
    admin.ok("grants", "put", thread, "guest", "participant")
    guest.ok("post", thread, "x")
    own = guest.json("grants", "list")
    assert isinstance(own, list)
    assert [(each["threadId"], each["role"]) for each in own] == [(thread, "participant")]
    admin.ok("grants", "remove", thread, "guest")
    guest.fails("threads", "show", thread, code=1)
    assert "guest" not in admin.ok("grants", "list", thread)


def test_a_narrowed_token_is_said_to_be_what_is_in_the_way(
    admin: Shell, thread: str, person: Callable[..., Shell]
) -> None:
    person("narrow")
    admin.ok("grants", "put", thread, "narrow", "participant")
    token = admin.ok("tokens", "mint", "narrow", "--thread", thread, "--capability", "thread.read").strip()
    reader = Shell(directory=admin.directory, variables={**admin.variables, "BUBBLE_TOKEN": token})
    for said in (reader.fails("post", thread, "x", code=1), reader.fails("threads", "create", code=1)):
        assert "not with this token, which is narrowed. Use another token" in said
        assert "owner" not in said
        assert "administrator" not in said
    assert "A narrowed token neither sees nor manages principals." in reader.fails(
        "principals", "create", "b", "--kind", "bot", code=1
    )


def test_a_role_that_does_not_exist_is_answered_with_those_that_do(admin: Shell, thread: str) -> None:
    said = "bubble: There is no such role here; the roles are observer, owner, participant.\n"
    assert admin.fails("grants", "put", thread, "admin", "boss", code=2) == said
    assert admin.fails("threads", "create", "--with", "admin=boss", code=2) == said


def test_times_in_tables_say_that_they_are_utc(admin: Shell, thread: str) -> None:
    assert "SINCE (UTC)" in admin.ok("grants", "list", thread)
    assert "LAST ACTIVE (UTC)" in admin.ok("threads", "list")


def test_the_last_owner_stays(admin: Shell, thread: str) -> None:
    admin.fails("grants", "remove", thread, "admin", code=1)


def test_a_disabled_principal_is_refused_until_it_is_enabled(admin: Shell, person: Callable[..., Shell]) -> None:
    someone = person("someone", "--name", "Some One")
    assert "Some One" in someone.ok("whoami")
    assert "--yes" in admin.fails("principals", "disable", "someone", code=2)
    admin.ok("principals", "disable", "someone", "--yes")
    assert "or its principal is disabled." in someone.fails("whoami", code=1)
    assert "disabled at" in admin.ok("principals", "show", "someone")
    admin.ok("principals", "enable", "someone")
    someone.ok("whoami")
    admin.ok("principals", "disconnect", "someone")


def test_principals_are_listed_for_administrators_only(admin: Shell, person: Callable[..., Shell]) -> None:
    user = person("plain.user")
    listed = admin.json("principals", "list")
    assert isinstance(listed, list)
    assert {"admin", "plain.user"} <= {each["principalId"] for each in listed}
    user.fails("principals", "list", code=1)
    assert user.json("principals", "show", "admin") == {
        "principalId": "admin",
        "kind": "user",
        "displayName": "Administrator",
    }


def test_a_user_makes_a_bot_and_lets_it_in(person: Callable[..., Shell], server: Server) -> None:
    user = person("botmaster")
    user.ok("principals", "create", "helper", "--kind", "bot", "--name", "Helper")
    token = user.ok("tokens", "mint", "helper", "--name", "laptop", "--expires", "12h").strip()
    assert token.startswith("bubble_agent_")
    bot = Shell(directory=user.directory, variables={"BUBBLE_URL": server.url, "BUBBLE_TOKEN": token})
    said = bot.json("whoami")
    assert isinstance(said, dict)
    assert (said["kind"], said["ownerPrincipalId"]) == ("bot", "botmaster")
    listed = user.json("principals", "list", "--owner", "botmaster")
    assert isinstance(listed, list)
    assert [each["principalId"] for each in listed] == ["helper"]


def test_a_principal_is_renamed_and_raised(admin: Shell, person: Callable[..., Shell]) -> None:
    risen = person("riser")
    admin.ok("principals", "update", "riser", "--name", "Risen", "--role", "admin")
    assert "Risen" in risen.ok("principals", "list")


def test_a_revoked_token_is_over(admin: Shell, person: Callable[..., Shell]) -> None:
    holder = person("holder")
    listed = admin.json("tokens", "list", "holder")
    assert isinstance(listed, list)
    assert "token" not in listed[0]
    admin.ok("tokens", "revoke", "holder", listed[0]["tokenId"])
    holder.fails("whoami", code=1)
    admin.fails("tokens", "revoke", "holder", "nonesuch", code=1)


def test_a_narrowed_token_does_only_what_it_is_for(admin: Shell, thread: str, server: Server) -> None:
    minted = admin.json(
        "tokens", "mint", "admin", "--thread", thread, "--capability", "events.subscribe", "--capability", "thread.read"
    )
    assert isinstance(minted, dict)
    narrow = Shell(
        directory=admin.directory, variables={"BUBBLE_URL": server.url, "BUBBLE_TOKEN": str(minted["token"])}
    )
    narrow.ok("tail", thread, "--no-follow")
    narrow.fails("post", thread, "x", code=1)
    narrow.fails("tokens", "mint", "admin", code=1)
    assert f"thread {thread}" in admin.ok("tokens", "list", "admin")


def test_what_no_thread_role_has_needs_an_administrator(person: Callable[..., Shell]) -> None:
    somebody = person("unprivileged")
    for command in (("threads", "create", "--id", "chosen"), ("principals", "create", "another")):
        sentence = somebody.fails(*command, code=1)
        assert "This needs an administrator." in sentence
        assert "owner of the thread" not in sentence


def test_a_capability_that_does_not_exist_is_named_with_those_that_do(admin: Shell) -> None:
    sentence = admin.fails("tokens", "mint", "admin", "--capability", "bogus", code=2)
    assert '"bogus"' in sentence
    assert "thread.read" in sentence
