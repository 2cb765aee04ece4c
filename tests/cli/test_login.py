"""`bubble login`, `bubble whoami`, and how commands fail that reach nobody."""

from __future__ import annotations

import json
import stat

from tests.cli.conftest import TIMEOUT, Server, Shell


def test_after_one_login_every_command_knows_its_server(shell: Shell, server: Server) -> None:
    said = shell.ok("login", server.url, stdin=f"{server.admin_token}\n")
    assert said == f"You are admin (Administrator) on {server.url}.\n"
    assert "admin" in shell.ok("whoami")
    assert isinstance(shell.json("threads", "list"), list)
    kept = shell.directory / "config" / "bubble" / "profiles.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_a_token_that_the_server_does_not_know_is_not_kept(shell: Shell, server: Server) -> None:
    sentence = shell.fails("login", server.url, "--token", f"bubble_user_{'x' * 43}", code=1)
    assert "mint another one" in sentence
    assert "bubble login" not in sentence
    assert not (shell.directory / "config").exists()


def test_an_address_with_a_path_is_answered_with_what_to_leave_away(shell: Shell, server: Server) -> None:
    sentence = shell.fails("login", f"{server.url}/v1", stdin=server.admin_token, code=1)
    assert sentence == f'bubble: There is no such route at {server.url}/v1: leave "/v1" away from the address.\n'


def test_an_empty_token_is_refused_before_anybody_is_asked(shell: Shell) -> None:
    assert "No token was given" in shell.fails("login", "http://127.0.0.1:9", stdin="\n", code=2)


def test_several_profiles_are_told_apart(shell: Shell, server: Server) -> None:
    for name in ("one", "two"):
        shell.ok("login", server.url, "--profile", name, stdin=server.admin_token)
    listed = shell.json("login", "--list")
    assert listed == [
        {"name": "one", "url": server.url, "principalId": "admin", "current": False},
        {"name": "two", "url": server.url, "principalId": "admin", "current": True},
    ]
    shell.ok("login", "--use", "one")
    shell.ok("login", "--forget", "two")
    assert shell.ok("login", "--list").split() == ["PROFILE", "SERVER", "PRINCIPAL", "*", "one", server.url, "admin"]
    assert "two" in shell.fails("whoami", "--profile", "two", code=2)


def test_the_token_is_never_shown(shell: Shell, server: Server) -> None:
    shell.ok("login", server.url, stdin=server.admin_token)
    for arguments in (
        ("login", "--list"),
        ("login", "--list", "--json"),
        ("whoami", "--json"),
        ("config", "--json"),
        ("doctor",),
    ):
        result = shell(*arguments)
        assert server.admin_token not in result.out + result.err


def test_a_server_that_is_not_there_is_said_with_the_remedy(shell: Shell) -> None:
    away = Shell(directory=shell.directory, variables={"BUBBLE_URL": "http://127.0.0.1:9", "BUBBLE_TOKEN": "t"})
    sentence = away.fails("threads", "list", code=1)
    assert "http://127.0.0.1:9" in sentence
    assert "bubble doctor" in sentence


def test_a_server_that_is_not_there_is_said_in_one_sentence_and_no_log_beside_it(shell: Shell) -> None:
    away = Shell(directory=shell.directory, variables={"BUBBLE_URL": "http://127.0.0.1:9", "BUBBLE_TOKEN": "t"})
    with away.process("whoami") as command:
        _, said = command.communicate(timeout=TIMEOUT)
    assert said.startswith("bubble: Cannot reach http://127.0.0.1:9")
    assert said.count("\n") == 1


def test_whoami_is_the_wire_form_for_machines(admin: Shell) -> None:
    said = admin.json("whoami")
    assert isinstance(said, dict)
    assert (said["principalId"], said["kind"], said["deploymentRole"]) == ("admin", "user", "admin")
    assert json.dumps(said)
