"""Dependencies point inward, and each library stays behind the packages that are its reason to be here.

The rules are two tables. They speak of packages that are still to come as well, so that a rule binds from a package's
first line. Every import counts, those inside functions and under TYPE_CHECKING too.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "bubble"

# package -> the packages of bubble that it may import, besides itself; None: all of them.
MAY_IMPORT: Mapping[str, frozenset[str] | None] = {
    "protocol": frozenset(),
    "assembler": frozenset({"protocol"}),
    "file_lock": frozenset({"protocol"}),
    "store": frozenset({"protocol", "file_lock"}),
    "auth": frozenset({"protocol", "store"}),  # principals and tokens are kept in the store
    "extensions": frozenset({"protocol", "assembler"}),
    "hub": frozenset({"protocol", "assembler", "store", "auth"}),
    "client": frozenset({"protocol", "assembler", "extensions"}),
    "watch": frozenset({"protocol", "assembler", "client"}),
    "amphibian": frozenset({"protocol", "assembler", "client", "file_lock"}),
    "reef": frozenset({"protocol", "assembler", "client", "amphibian"}),
    "starfish": frozenset({"protocol", "assembler"}),
    "server": frozenset({"protocol", "assembler", "store", "auth", "hub", "extensions", "watch", "starfish"}),
    "testing": None,
    "cli": None,
    "demo": None,
    "__init__": None,
    "__main__": None,
}

# library -> the only places that may import it.
BELONGS_TO: Mapping[str, tuple[str, ...]] = {
    "a2a": ("bubble.reef.mock",),  # of the extra; reef itself speaks its dialects without it
    "apsw": ("bubble.store.sqlite",),
    "jinja2": ("bubble.starfish",),
    "jwt": ("bubble.auth",),
    "markdown_it": ("bubble.starfish",),
    "nh3": ("bubble.starfish",),
    "prometheus_client": ("bubble.server",),
    "rich": ("bubble.cli", "bubble.demo"),
    "typer": ("bubble.cli", "bubble.demo"),
}

# Packages that only compute; what they may use besides the standard library, and what of that they may not.
PURE = frozenset({"protocol", "assembler"})
PURE_MAY_USE = frozenset({"msgspec"})
INPUT_AND_OUTPUT = frozenset(
    {"asyncio", "http", "multiprocessing", "os", "selectors", "socket", "sqlite3", "ssl", "subprocess", "threading"}
)
# The one thing that computing alone cannot do: wait for a caller that was there before.
MAY_WAIT: Mapping[str, str] = {"bubble.assembler.turns": "asyncio"}


@dataclass(frozen=True, kw_only=True)
class Import:
    """``module`` (dotted, absolute) imports ``target``."""

    module: str
    target: str
    line: int

    @property
    def package(self) -> str:
        parts = self.module.split(".")
        return parts[1] if len(parts) > 1 else "__init__"

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.target}"


def imports_below(source: Path) -> list[Import]:
    """Every import in the package at ``source``, relative ones made absolute."""
    found: list[Import] = []
    for path in sorted(source.rglob("*.py")):
        parts = ("bubble", *path.relative_to(source).with_suffix("").parts)
        is_package = parts[-1] == "__init__"
        module = ".".join(parts[:-1] if is_package else parts)
        base = parts[:-1]
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found.extend(Import(module=module, target=target, line=line) for target, line in _targets(tree, base))
    return found


def _targets(tree: ast.Module, base: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = base[: len(base) - node.level + 1] if node.level else ()
            origin = ".".join((*start, *filter(None, [node.module])))
            if origin == "bubble":
                yield from ((f"bubble.{alias.name}", node.lineno) for alias in node.names)
            else:
                yield origin, node.lineno


def violations(source: Path) -> list[str]:
    """What breaks a rule in the package at ``source``, one line each."""
    return [f"{found}: {why}" for found in imports_below(source) if (why := _why_not(found))]


def _why_not(found: Import) -> str | None:
    top, _, rest = found.target.partition(".")
    if found.package not in MAY_IMPORT:
        return f"{found.package} has no rule yet"
    if top == "bubble":
        return _why_not_inside(found, rest.partition(".")[0])
    if any(_within(found.module, owner) for owner in BELONGS_TO.get(top, (found.module,))):
        return None if MAY_WAIT.get(found.module) == top else _why_not_pure(found.package, top)
    return f"only {', '.join(BELONGS_TO[top])} may"


def _why_not_inside(found: Import, target: str) -> str | None:
    allowed = MAY_IMPORT[found.package]
    if allowed is None or target == found.package or target in allowed:
        return None
    return f"{found.package} may import {sorted(allowed)}"


def _why_not_pure(package: str, top: str) -> str | None:
    if package not in PURE or (top in sys.stdlib_module_names - INPUT_AND_OUTPUT) or top in PURE_MAY_USE:
        return None
    return f"{package} is pure"


def _within(module: str, owner: str) -> bool:
    return module == owner or module.startswith(f"{owner}.")


def test_the_packages_of_bubble_import_only_what_they_may() -> None:
    assert "\n".join(violations(SOURCE)) == ""


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("protocol/events.py", "from bubble.store import open_store"),
        ("protocol/events.py", "import asyncio"),
        ("protocol/events.py", "import anyio"),
        ("assembler/thread.py", "import asyncio"),
        ("assembler/turns.py", "import socket"),
        ("store/memory.py", "from bubble.hub import Hub"),
        ("store/memory.py", "from .. import hub"),
        ("store/memory.py", "from ..hub.tail import Tail"),
        ("store/memory.py", "import bubble.auth.policy"),
        ("store/memory.py", "import apsw"),
        ("store/memory.py", "from bubble import Settings"),
        ("hub/tail.py", "from bubble.server import app"),
        ("hub/tail.py", "def f():\n    from bubble.server import app"),
        ("client/runs.py", "from bubble.store import open_store"),
        ("reef/relay.py", "from bubble.server import app"),
        ("server/app.py", "from bubble.testing import plugin"),
        ("novelty/__init__.py", "import json"),
    ],
)
def test_an_import_against_the_rules_is_found(tmp_path: Path, file: str, line: str) -> None:
    path = tmp_path / file
    path.parent.mkdir()
    path.write_text(f"{line}\n", encoding="utf-8")
    assert len(violations(tmp_path)) == 1


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("protocol/events.py", "import msgspec, json, re"),
        ("protocol/__init__.py", "from .events import Event"),
        ("assembler/turns.py", "import asyncio"),
        ("client/assembly.py", "from bubble.extensions import installed_extensions"),
        ("store/sqlite.py", "import apsw"),
        ("store/sqlite/writer.py", "import apsw\nfrom ..port import BubbleStore\nfrom bubble.protocol import errors"),
        ("hub/tail.py", "from bubble.store import BubbleStore\nimport asyncio"),
        ("cli/serve.py", "from bubble import Settings\nimport bubble.testing.server, typer"),
    ],
)
def test_an_import_within_the_rules_is_not(tmp_path: Path, file: str, line: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(f"{line}\n", encoding="utf-8")
    assert violations(tmp_path) == []
