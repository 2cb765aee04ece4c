"""What a close code means for coming back (the table of close codes, as a table)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from bubble.client.transport import SocketClosed

__all__ = ["ComeBack", "come_back", "seconds_in"]

ComeBack = Literal["with_backoff", "soon", "with_another_token", "after_seconds"]

_COME_BACK: Final[Mapping[int, ComeBack]] = {
    1009: "with_backoff",  # without the frame that was too long: a frame of the last connection is never sent again as it was
    1012: "soon",  # this server drains, another one or its successor is there
    4401: "with_another_token",
    4408: "with_backoff",  # the server heard nothing for a while
    4429: "after_seconds",
}

_LONGEST_TOLD: Final = 3600.0


def come_back(closed: SocketClosed) -> ComeBack:
    """How to come back. Whatever the table does not name (a broken connection above all) waits with backoff."""
    return _COME_BACK.get(closed.code, "with_backoff")


def seconds_in(reason: str) -> float:
    """The seconds that a reason of 4429 tells; 1 where it tells none, an hour at most."""
    for word in reason.replace("s", " ").split():
        try:
            return min(_LONGEST_TOLD, max(0.0, float(word)))
        except ValueError:
            continue
    return 1.0
