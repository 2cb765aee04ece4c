"""Where things stand: indented below a heading, behind a mark, and cut from above to what fits. For terminals and pipes alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style

__all__ = ["Last", "Marked"]


def _lines(console: Console, options: ConsoleOptions, renderable: RenderableType, *, width: int) -> list[list[Segment]]:
    # What goes into a pipe is not broken to anybody's width.
    wrapping = options.update(
        max_width=max(1, width),
        width=max(1, width),
        no_wrap=not console.is_terminal,
        overflow="fold" if console.is_terminal else "ignore",
    )
    return list(Segment.split_lines(console.render(renderable, wrapping.update(height=None))))


@dataclass(frozen=True, slots=True)
class Marked:
    """`renderable` with `mark` before its first line and `rest` (by default as much space) before the others; nothing is padded."""

    mark: str
    renderable: RenderableType
    rest: str | None = None
    style: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Line by line."""
        style = console.get_style(self.style) if self.style else Style.null()
        before = self.mark
        for line in _lines(console, options, self.renderable, width=options.max_width - cell_len(self.mark)):
            yield Segment(before if line else before.rstrip(), style)
            yield from line
            yield Segment.line()
            before = " " * cell_len(self.mark) if self.rest is None else self.rest


@dataclass(frozen=True, slots=True)
class Last:
    """The last lines of `renderable` that fit onto the screen: what grows, grows there."""

    renderable: RenderableType
    spare: int = 2

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Those lines."""
        every = _lines(console, options, self.renderable, width=options.max_width)
        shown = every[-max(1, console.size.height - self.spare) :]
        yield from _joined(shown)


def _joined(lines: list[list[Segment]]) -> Iterator[Segment]:
    for number, line in enumerate(lines):
        if number:
            yield Segment.line()
        yield from line
