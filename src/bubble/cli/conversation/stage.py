"""How what is told stands there: under whose heading, at what time, on which day, with how much space between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from bubble.cli.conversation.layout import Marked
from bubble.cli.conversation.progress import Progress
from bubble.cli.conversation.words import words

__all__ = ["Stage", "clock", "headline", "indented"]

_INDENT: Final = " " * 10
_STYLES: Final = {"user": "bold cyan", "assistant": "bold green", "system": "bold yellow"}


class Stage:
    """Knows what stands last, and gives what has to stand before the next."""

    def __init__(self) -> None:
        self.speaking = ""
        self._day = ""
        self._is_quiet = True

    def body(self, told: Progress, content: RenderableType | None) -> Iterator[RenderableType]:
        """A piece of a message below its heading, which is repeated if something else came in between."""
        if content is None:
            return
        if self.speaking != told.id:
            yield from self._date(told.began_at)
            yield Text("")
            yield headline(told)
            told.is_begun = told.is_headed = True
            self.speaking, self._is_quiet = told.id, False
        yield indented(content)

    def sentence(self, told: Progress, text: str, *, style: str = "dim") -> Iterator[RenderableType]:
        """What somebody did: below the message's heading if that stands last, else with its time. Such lines stand together."""
        if self.speaking == told.id:
            yield indented(Text(text, style=style))
            return
        yield from self._date(told.began_at)
        if not self._is_quiet:
            yield Text("")
        yield Marked(f"{clock(told.began_at)}  ", Text(text, style=style), style="dim")
        self.speaking, self._is_quiet, told.is_begun = "", True, True

    def _date(self, at: str) -> Iterator[RenderableType]:
        if at[:10] == self._day:
            return
        if self._day:
            yield Text("")
        self._day, self._is_quiet = at[:10], True
        yield Text(f"── {self._day} (UTC) ──", style="dim")


def headline(told: Progress) -> Text:
    """Time and author."""
    style = _STYLES.get(told.message["role"], "bold")
    more = " goes on" if told.goes_on else ""
    return Text.assemble(
        (f"{clock(told.began_at)}  ", "dim"), (words(told.bubble["principalId"]), style), (more, "dim")
    )


def indented(content: RenderableType) -> RenderableType:
    """Below a heading."""
    return Marked(_INDENT, content)


def clock(at: str) -> str:
    """The time of day of an RFC 3339 time, to the second."""
    return at[11:19]
