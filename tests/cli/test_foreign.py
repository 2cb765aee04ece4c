"""An address where something else answers than a Bubble server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.cli.conftest import Shell

PAGE = b"<!doctype html><title>Welcome</title>"


class Website(BaseHTTPRequestHandler):
    """Answers everything with the same page; which status is in the token."""

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.send_response(int(self.headers["Authorization"].removeprefix("Bearer ")))
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
    setattr(Website, f"do_{method}", Website._answer)


@pytest.fixture(scope="module")
def website() -> Iterator[str]:
    """The address of a website."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Website) as site:
        thread = threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{site.server_port}"
        finally:
            site.shutdown()
            thread.join()


COMMANDS = (
    "whoami",
    "threads list",
    "threads show t",
    "threads create",
    "threads delete t --yes",
    "post t Hello",
    "tail t",
    "tail t --raw --no-follow",
    "messages t",
    "approve t r c",
    "result t yes",
    "interrupt t",
    "grants list",
    "grants put t p owner",
    "grants remove t p",
    "principals list",
    "principals create p",
    "principals disable p --yes",
    "principals disconnect p",
    "tokens list p",
    "tokens mint p",
    "tokens revoke p x",
    "export t --output -",
)


@pytest.mark.parametrize("status", ["200", "404", "401"])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_that_it_is_no_bubble_server(
    website: str, tmp_path: Path, command: str, status: str
) -> None:
    shell = Shell(directory=tmp_path, variables={"BUBBLE_URL": website, "BUBBLE_TOKEN": status})
    said = f"bubble: {website} does not look like a Bubble server: check the address.\n"
    assert shell.fails(*command.split(), code=1) == said


@pytest.mark.parametrize("status", ["200", "404", "401"])
def test_it_is_not_logged_in_to(website: str, shell: Shell, status: str) -> None:
    said = f"bubble: {website} does not look like a Bubble server: check the address.\n"
    assert shell.fails("login", website, code=1, stdin=status) == said
    assert shell.json("login", "--list") == []
