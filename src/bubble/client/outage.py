"""Telling whoever wants to know that the socket is gone, and that it is back: each once, however many attempts lie between."""

from __future__ import annotations

from collections.abc import Callable

from bubble.protocol.errors import BubbleError

__all__ = ["Outage"]


class Outage:
    """What one socket says about itself to `listener`: the problem when it is lost, None when something is confirmed on it again."""

    def __init__(self, listener: Callable[[BubbleError | None], None] | None) -> None:
        self._listener = listener
        self._was_there = False
        self._is_out = False

    def begins(self, problem: BubbleError) -> None:
        """An attempt failed or the socket was lost. Before anything was confirmed there is nothing to miss."""
        if self._was_there and not self._is_out:
            self._is_out = True
            self._tell(problem)

    def is_over(self) -> None:
        """The server confirmed something that is followed."""
        self._was_there = True
        if self._is_out:
            self._is_out = False
            self._tell(None)

    def _tell(self, problem: BubbleError | None) -> None:
        if self._listener is not None:
            self._listener(problem)
