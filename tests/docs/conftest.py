"""Where the pages are tried: an empty directory, a free port, and nothing of this machine's own settings."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.docs.ports import free_ports
from tests.docs.terminal import Terminal

__all__ = ["PORTS", "Desk", "desk_in"]

#: The ports that the pages speak of.
PORTS = (3000, 8000, 8001, 8100)


@dataclass(frozen=True, kw_only=True)
class Desk:
    """A terminal, and which ports stand for those of the pages."""

    terminal: Terminal
    ports: Mapping[int, int]

    def here(self, text: str) -> str:
        """The text of a page with this desk's ports in it."""
        for named, port in self.ports.items():
            text = re.sub(rf"(127\.0\.0\.1:|--port ){named}\b", rf"\g<1>{port}", text)
        return text


@contextmanager
def desk_in(directory: Path) -> Iterator[Desk]:
    """A desk whose home is in `directory`."""
    ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
    home = directory / "home"
    home.mkdir()
    hidden = ("BUBBLE_", "XDG_", "PYTEST", "COV")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    own = {
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "200",
        "NO_COLOR": "1",
        "BUBBLE_PORT": str(ports[3000]),
    }
    with Terminal(home, {**kept, **own}) as terminal:
        yield Desk(terminal=terminal, ports=ports)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """An empty desk."""
    with desk_in(tmp_path) as desk:
        yield desk
