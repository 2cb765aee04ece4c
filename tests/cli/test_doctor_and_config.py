"""`bubble doctor` finds what is wrong; `bubble config` says what is in force and why."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.cli.conftest import Server, Shell


def findings(shell: Shell, *arguments: str, code: int = 0) -> dict[str, tuple[str, str]]:
    import json

    result = shell("doctor", "--json", *arguments)
    assert result.code == code, result
    return {each["check"]: (each["state"], each["sentence"]) for each in json.loads(result.out)}


def test_a_healthy_installation_and_server_are_all_right(admin: Shell, server: Server) -> None:
    found = findings(admin, "--port", "0")
    assert {state for state, _ in found.values()} <= {"ok", "warning"}
    assert {"python", "sqlite", "data", "fsync", "space", "port", "server", "protocol", "clock", "token"} == set(found)
    assert server.url in found["server"][1]
    assert server.admin_token not in str(found)


def test_without_a_login_the_server_is_skipped_with_the_remedy(shell: Shell) -> None:
    state, sentence = findings(shell, "--port", "0")["server"]
    assert state == "skipped"
    assert "bubble login URL" in sentence


def test_a_server_that_does_not_answer_fails(shell: Shell) -> None:
    away = Shell(directory=shell.directory, variables={"BUBBLE_URL": "http://127.0.0.1:9", "BUBBLE_TOKEN": "t"})
    state, sentence = findings(away, "--port", "0", code=1)["server"]
    assert state == "failed"
    assert "bubble serve" in sentence


class _Other(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Shell]:
    """Somebody who is logged in to an HTTP server that is no Bubble."""
    with HTTPServer(("127.0.0.1", 0), _Other) as other:
        thread = threading.Thread(target=other.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            url = f"http://127.0.0.1:{other.server_port}"
            yield Shell(directory=tmp_path, variables={"BUBBLE_URL": url, "BUBBLE_TOKEN": "t"})
        finally:
            other.shutdown()
            thread.join()


def test_what_is_no_bubble_server_is_said_once_and_blamed_on_nothing_else(elsewhere: Shell) -> None:
    found = findings(elsewhere, "--port", "0", code=1)
    assert [check for check, (state, _) in found.items() if state == "failed"] == ["server"]
    assert "no Bubble server" in found["server"][1]
    assert not {"token", "clock", "protocol"} & set(found)


def test_an_address_with_a_path_is_blamed_and_neither_the_server_nor_the_token(admin: Shell, server: Server) -> None:
    address = f"{server.url}/v1"
    result = Shell(directory=admin.directory, variables={**admin.variables, "BUBBLE_URL": address})("doctor")
    assert result.code == 1
    failed = [line for line in result.out.splitlines() if line.startswith("FAILED")]
    assert failed == [f'FAILED  server    There is no such route at {address}: leave "/v1" away from the address.']
    assert "protocol" not in result.out


def test_a_token_that_is_over_fails(shell: Shell, server: Server) -> None:
    stale = Shell(directory=shell.directory, variables={"BUBBLE_URL": server.url, "BUBBLE_TOKEN": "bubble_user_gone"})
    found = findings(stale, "--port", "0", code=1)
    assert found["server"][0] == "ok"
    assert found["token"][0] == "failed"


def test_wrong_settings_and_an_impossible_data_directory_fail(shell: Shell) -> None:
    (shell.directory / "file").write_text("not a directory", encoding="utf-8")
    assert findings(shell, "--data", "file/data", "--port", "0", code=1)["data"][0] == "failed"
    wrong = Shell(directory=shell.directory, variables={"BUBBLE_PORT": "many"})
    assert "BUBBLE_PORT" in findings(wrong, code=1)["settings"][1]


def test_each_finding_is_one_line_for_people(admin: Shell) -> None:
    lines = admin.ok("doctor", "--port", "0").splitlines()
    assert len(lines) == 10
    assert all(line.endswith(".") for line in lines)


def test_config_tells_the_source_of_each_setting_and_no_secret(shell: Shell) -> None:
    (shell.directory / "bubble.toml").write_text("port = 4000\n[limits]\npage_default = 7\n", encoding="utf-8")
    secret = "s" * 40
    told = Shell(directory=shell.directory, variables={"BUBBLE_ADMIN_TOKEN": secret, "BUBBLE_PORT": "4001"})
    said = told.json("config", "--changed", "--host", "127.0.0.2")
    assert isinstance(said, list)
    assert {each["name"]: (each["value"], each["source"]) for each in said} == {
        "admin_token": ("********", "BUBBLE_ADMIN_TOKEN"),
        "port": ("4001", "BUBBLE_PORT"),
        "host": ("127.0.0.2", "argument"),
        "limits.page_default": ("7", "bubble.toml"),
    }
    assert secret not in told.ok("config")
