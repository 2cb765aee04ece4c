"""Where it is shown: a terminal, which has a place for what grows, or a pipe, which has not."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live

from bubble.cli.conversation.layout import Last
from bubble.cli.output import note

__all__ = ["Screen"]


class Screen:
    """Prints what is told, once, and keeps what grows below it. Use as `with`: at the end nothing that grows is left."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self.can_grow = console.is_terminal and not console.is_dumb_terminal

    @property
    def room(self) -> int:
        """How many characters fit at most."""
        return self._console.size.width * self._console.size.height

    def show(self, told: Sequence[RenderableType], growing: Sequence[RenderableType] = ()) -> None:
        """Prints what is told, and what grows in place of what grew before."""
        if not self.can_grow:
            self._print(told)
            return
        if self._live is None:
            self._print(told)
            self._start(growing)
            return
        with self._console:  # in one write: what is told is printed above what grew before
            self._print(told)
            self._live.update(Last(Group(*growing)), refresh=True)

    def aside(self, sentence: str) -> None:
        """A line on standard error, above what grows."""
        growing = None if self._live is None else self._live.get_renderable()
        self._stop()
        note(sentence)
        if growing is not None:
            self._start([growing])

    def end(self, told: Sequence[RenderableType]) -> None:
        """Prints what was still to be told; nothing grows any more."""
        self._stop()
        self._print(told)

    def _print(self, told: Sequence[RenderableType]) -> None:
        if told:
            self._console.print(Group(*told), soft_wrap=not self._console.is_terminal)

    def _start(self, growing: Sequence[RenderableType]) -> None:
        self._live = Live(
            Last(Group(*growing)),
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="visible",
        )
        self._live.start(refresh=True)

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
