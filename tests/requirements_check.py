"""Holds the requirement manifest and the tests against each other.

The manifest, ``tests/requirements/*.toml``, gives every promise of the protocol an id. A test names the ids it shows to
hold with ``@pytest.mark.requirement("EV-04", ...)``. Both directions must close: a live id that no test names, and a
name that no live id stands behind, are findings.

The tests are read as source, not run, so the answer is the same for one test file as for the whole suite.
``python -m tests.requirements_check`` prints the findings and exits 1 if there are any.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

__all__ = ["Finding", "Mention", "Requirement", "check", "findings", "mentions", "read_manifest"]

ROOT = Path(__file__).resolve().parent.parent
MANIFEST = ROOT / "tests" / "requirements"

# Where tests live. The public suites of bubble.testing count: their tests are collected through subclasses in tests/.
TEST_FILES = (("tests", "test_*.py"), ("src/bubble/testing", "*.py"))

_FIELDS = frozenset({"section", "text", "departure", "later"})


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """One promise. ``departure`` says what holds instead of it; ``later`` names the part that will bring it."""

    id: str
    section: str
    text: str
    departure: str | None = None
    later: str | None = None


@dataclass(frozen=True, kw_only=True)
class Mention:
    """One id, as a test names it. ``id`` is None where the name is not written out as a string."""

    id: str | None
    place: str


@dataclass(frozen=True, order=True)
class Finding:
    """One thing that does not close."""

    what: str


def read_manifest(folder: Path = MANIFEST) -> dict[str, Requirement]:
    """The requirements of every ``*.toml`` in ``folder`` by id.

    Raises ValueError for an id that occurs in two files, a missing or empty text, or a field that is not known.
    """
    requirements: dict[str, Requirement] = {}
    for path in sorted(folder.glob("*.toml")):
        for key, fields in tomllib.loads(path.read_text(encoding="utf-8")).items():
            if key in requirements:
                raise ValueError(f"{path.name}: {key} is taken")
            if not (fields.keys() <= _FIELDS and fields.get("section") and fields.get("text")):
                raise ValueError(f"{path.name}: {key} needs section and text and knows only {sorted(_FIELDS)}")
            requirements[key] = Requirement(id=key, **fields)
    return requirements


def mentions(root: Path = ROOT) -> list[Mention]:
    """Every id that a test under ``root`` names, with file and line."""
    found: list[Mention] = []
    for folder, pattern in TEST_FILES:
        for path in sorted((root / folder).rglob(pattern)):
            place = path.relative_to(root).as_posix()
            found.extend(_mentions_in(ast.parse(path.read_text(encoding="utf-8")), place))
    return found


def findings(manifest: Mapping[str, Requirement], named: Iterable[Mention]) -> list[Finding]:
    """What does not close between ``manifest`` and ``named``, sorted; empty when all is well."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    result: list[Finding] = []
    for mention in named:
        if mention.id is None:
            result.append(Finding(f"{mention.place}: a requirement id must be a string literal on a test"))
        else:
            places[mention.id].append(mention.place)
    for key, where in places.items():
        if key not in manifest:
            result.append(Finding(f"{where[0]}: {key} is not in the manifest"))
        elif manifest[key].later:
            result.append(Finding(f"{where[0]}: {key} is marked later ({manifest[key].later})"))
    result.extend(
        Finding(f"{key}: no test names it: {requirement.departure or requirement.text}")
        for key, requirement in manifest.items()
        if requirement.later is None and key not in places
    )
    return sorted(result)


def check(root: Path = ROOT) -> list[Finding]:
    """The findings for the project at ``root``."""
    return findings(read_manifest(root / "tests" / "requirements"), mentions(root))


def _mentions_in(tree: ast.Module, place: str) -> Iterator[Mention]:
    misplaced = {id(call) for call in _marks_on_plain_functions(tree)}
    for node in ast.walk(tree):
        if not _is_requirement_mark(node):
            continue
        here = f"{place}:{node.lineno}"
        if id(node) in misplaced or not node.args or node.keywords:
            yield Mention(id=None, place=here)
            continue
        for argument in node.args:
            yield Mention(id=_literal(argument), place=here)


def _literal(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _is_requirement_mark(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether this is ``pytest.mark.requirement(...)``, as a decorator, in ``pytestmark`` or among ``marks``."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requirement"):
        return False
    owner = node.func.value
    return isinstance(owner, ast.Attribute) and owner.attr == "mark"


def _marks_on_plain_functions(tree: ast.Module) -> Iterator[ast.Call]:
    """Marks on what pytest does not collect: they would claim an id that nothing tests."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("test"):
            yield from (decorator for decorator in node.decorator_list if _is_requirement_mark(decorator))


def main() -> int:
    """Print the findings; 0 when there are none, else 1."""
    found = check()
    for finding in found:
        print(finding.what)  # noqa: T201 - the script's output
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
