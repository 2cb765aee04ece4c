"""Tables in Markdown, for the pages that are made from the code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["code", "table"]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def code(text: str) -> str:
    """The text as code."""
    return f"`{text}`"
