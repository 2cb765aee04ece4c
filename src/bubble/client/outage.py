"""Telling that the server is away, and that it is back: each once, however many attempts lie between.

`Reach` tells the log, about requests and sockets that are not answered while it is tried again: without it, a program whose server does
not run would say nothing until it gave up. `Outage` tells the program, about a socket that it had.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from bubble.protocol.errors import BubbleError

__all__ = ["Outage", "Reach"]

_logger = logging.getLogger("bubble.client.outage")


class Reach:
    """Whether somebody answers at `url`, for all that one client does there."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._is_away = False

    def lost(self, problem: Exception) -> None:
        """There was no answer, and there will be another attempt."""
        if not self._is_away:
            self._is_away = True
            _logger.warning("%s. Trying again.", (str(problem) or type(problem).__name__).rstrip("."))

    def found(self) -> None:
        """There was an answer."""
        if self._is_away:
            self._is_away = False
            _logger.info("Reached %s.", self._url)


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
