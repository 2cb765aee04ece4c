"""What a Markdown page holds that can be tried: fenced blocks, the regions that are generated, links and headings.

A comment right above a block says how it is tried, where that is not the ordinary way for its language:

    <!-- stays -->            the command goes on beside the following ones, until the page ends
    <!-- again -->            the same, after the earlier run of the same command was stopped
    <!-- types: token -->     what is typed into it: the token that the server printed
    <!-- file: bot.py -->     the reader saves it under this name
    <!-- copy of: path -->    it is a file of docs/examples, to the letter; the reader saves it under its name
    <!-- meanwhile -->        for output: it comes from a command that stays
    <!-- tried as: line -->   what is typed instead, where the reader's would change the machine of the tests
    <!-- not run: reason -->  it is not tried
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["ROOT", "Block", "anchors", "blocks", "links", "pages", "regions", "with_region"]

ROOT = Path(__file__).resolve().parents[2]

_BLOCK = re.compile(
    r"(?:^<!-- (?P<how>[^>]*) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_REGION = re.compile(r"^<!-- generated: (?P<name>[\w -]+) -->\n(?P<text>.*?)^<!-- end -->$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]\[]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ (?P<text>.+)$", re.MULTILINE)
_HOW = frozenset({"stays", "again", "types", "file", "copy of", "meanwhile", "tried as", "not run"})


@dataclass(frozen=True, kw_only=True)
class Block:
    """One fenced block. `how` holds the directive of the comment above it, if there is one."""

    page: Path
    line: int
    language: str
    text: str
    how: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Every page of the documentation."""
    top = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "SECURITY.md")
    return [*(ROOT / name for name in top), *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """The page's blocks in order. `ValueError` for a directive that does not exist."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page=page,
            line=text.count("\n", 0, found.start("language")) + 1,
            language=found["language"],
            text=found["text"],
            how=_directives(found["how"], page),
        )
        for found in _BLOCK.finditer(text)
    ]


def _directives(comment: str | None, page: Path) -> Mapping[str, str]:
    if comment is None or comment == "end":
        return {}
    name, _, value = comment.partition(":")
    if name not in _HOW:
        raise ValueError(f"{page.name} has a comment with `{name}`")
    return {name: value.strip()}


def regions(page: Path) -> dict[str, str]:
    """The text of the page's generated regions by name."""
    return {found["name"]: found["text"] for found in _REGION.finditer(page.read_text(encoding="utf-8"))}


def with_region(page: Path, name: str, text: str) -> str:
    """The page with another text in one of its generated regions."""

    def replaced(found: re.Match[str]) -> str:
        return f"<!-- generated: {name} -->\n{text}<!-- end -->" if found["name"] == name else found[0]

    return _REGION.sub(replaced, page.read_text(encoding="utf-8"))


def links(page: Path) -> Iterator[str]:
    """The targets of the page's links, those in blocks and code left out."""
    prose = re.sub(r"`[^`\n]*`", "", _BLOCK.sub("", page.read_text(encoding="utf-8")))
    yield from (found["target"] for found in _LINK.finditer(prose))


def anchors(page: Path) -> frozenset[str]:
    """What the page's headings can be linked by."""
    prose = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    return frozenset(_anchor(found["text"]) for found in _HEADING.finditer(prose))


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
