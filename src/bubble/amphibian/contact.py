"""Whether the server is in reach, as the log tells it: once when it is lost, once when it is there (again)."""

from __future__ import annotations

import logging

from bubble.client import BubbleConnection
from bubble.protocol.errors import BubbleError, Unavailable

__all__ = ["Contact"]

_logger = logging.getLogger("bubble.amphibian")


class Contact:
    """What is known of the server at `url`. A connection has several sockets, and each may lose it: that is one loss."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._is_lost = False
        self._was_there = False

    async def try_once(self, once: BubbleConnection) -> None:
        """Asks the server for something, by a connection that is not patient, and says if there is no answer. One that is patient says
        nothing until it gives up, half a minute later.
        """
        async with once:
            try:
                await once.who_am_i()
            except Unavailable as problem:
                if not self._was_there:
                    self.changed(problem)
            except BubbleError:  # whoever asks in earnest is told too
                return

    def changed(self, problem: BubbleError | None) -> None:
        """For `on_outage` of a connection."""
        if problem is None:
            self.is_there()
        elif not self._is_lost:
            self._is_lost = True
            lost = "" if self._url in problem.message else f"{self._url} was lost: "
            _logger.warning("%s%s Trying again.", lost, problem.message)

    def is_there(self) -> None:
        """The server has confirmed something."""
        self._was_there = True
        if self._is_lost:
            self._is_lost = False
            _logger.info("Reached %s.", self._url)
