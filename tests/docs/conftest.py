"""Where the pages are tried: an empty directory, a free port, and nothing of this machine's own settings."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.docs.terminal import Terminal

__all__ = ["Desk"]

PORT_ON_THE_PAGES = 3000


@dataclass(frozen=True, kw_only=True)
class Desk:
    """A terminal, and what the pages' addresses are called here."""

    terminal: Terminal
    port: int

    def here(self, text: str) -> str:
        """The text of a page with this desk's port in it."""
        for host in ("127.0.0.1", "localhost"):
            text = text.replace(f"{host}:{PORT_ON_THE_PAGES}", f"{host}:{self.port}")
        return text


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    port = free_port()
    home = tmp_path / "home"
    home.mkdir()
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("BUBBLE_", "XDG_", "PYTEST", "COV"))
    }
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**kept, "HOME": str(home), "PATH": path, "COLUMNS": "200", "NO_COLOR": "1", "BUBBLE_PORT": str(port)}
    with Terminal(home, environment) as terminal:
        yield Desk(terminal=terminal, port=port)
