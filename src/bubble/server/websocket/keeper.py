"""Keeps sockets alive, and finds those whose peer is gone without a word.

One task for all sockets. A peer is alive if, since the last look, it sent anything or took a byte of what was written to it: a slow
reader is not a dead one.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

__all__ = ["CLOSE_NO_PONG", "Keeper", "KeptSocket"]

CLOSE_NO_PONG = 4408
LOOKS_PER_INTERVAL = 4


class KeptSocket(Protocol):
    """A socket that can be pinged."""

    @property
    def last_heard(self) -> float:
        """When the peer last sent anything, by the event loop's clock."""

    @property
    def bytes_taken(self) -> int:
        """How much the peer has taken so far, pings not counted."""

    def ping(self) -> None:
        """Asks for a sign of life."""

    def close(self, code: int, reason: str) -> None:
        """Starts to close."""


class _Watched:
    __slots__ = ("alive_at", "pinged_at", "taken")

    def __init__(self, now: float) -> None:
        self.alive_at = self.pinged_at = now
        self.taken = 0


class Keeper:
    """Pings every `ping_interval` seconds and closes (4408) what gave no sign of life for `peer_timeout` seconds."""

    def __init__(self, *, ping_interval: float, peer_timeout: float) -> None:
        self._ping_interval = ping_interval
        self._peer_timeout = peer_timeout
        self._sockets: dict[KeptSocket, _Watched] = {}

    def add(self, socket: KeptSocket) -> None:
        """Begins to watch a socket."""
        self._sockets[socket] = _Watched(asyncio.get_running_loop().time())

    def remove(self, socket: KeptSocket) -> None:
        """Stops watching it."""
        self._sockets.pop(socket, None)

    async def run(self) -> None:
        """Looks after the sockets, for ever."""
        while True:
            await asyncio.sleep(self._ping_interval / LOOKS_PER_INTERVAL)
            self.look(asyncio.get_running_loop().time())

    def look(self, now: float) -> None:
        """One look at every socket."""
        for socket, watched in list(self._sockets.items()):
            self._look_at(socket, watched, now)

    def _look_at(self, socket: KeptSocket, watched: _Watched, now: float) -> None:
        taken = socket.bytes_taken
        if taken > watched.taken:
            watched.taken, watched.alive_at = taken, now
        watched.alive_at = max(watched.alive_at, socket.last_heard)
        if now - watched.alive_at >= self._peer_timeout:
            self.remove(socket)
            socket.close(CLOSE_NO_PONG, "no pong")
        elif now - watched.pinged_at >= self._ping_interval:
            watched.pinged_at = now
            socket.ping()
