"""What stands in the place of somebody who is no longer there."""

from __future__ import annotations

from typing import Final

__all__ = ["NOBODY", "NO_RECEIVER"]


class Nobody:
    """Stands where uvicorn keeps a queue, an event and a timer that an attached connection has no use for."""

    def put_nowait(self, message: object) -> None:
        """The receiver was told."""

    def set(self) -> None:
        """Nobody waits."""

    def cancel(self) -> None:
        """Nothing runs."""


class NoReceiver:
    """Takes the place of a receiver that was told the end."""

    max_message = 0

    def message(self, text: bytes) -> None:
        """Too late."""

    def binary(self, data: bytes) -> None:
        """Too late."""

    def oversized(self, size: int) -> None:
        """Too late."""

    def drained(self) -> None:
        """Nothing more is written."""

    def gone(self) -> None:
        """Told already."""


NOBODY: Final = Nobody()
NO_RECEIVER: Final = NoReceiver()
