"""The sockets of one client. One, nearly always; a second one where a thread is followed twice, since a socket follows it once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import anyio

from bubble.client.follower import Follower
from bubble.client.grants import GrantsReader
from bubble.client.socket import SupervisedSocket
from bubble.client.supervision import end_task
from bubble.protocol.errors import Unavailable

__all__ = ["Sockets"]


class Sockets:
    """Owns the sockets and their tasks. `close()` it."""

    def __init__(self, make_socket: Callable[[], SupervisedSocket], *, subscriptions_per_socket: int) -> None:
        self._make_socket = make_socket
        self._most = subscriptions_per_socket
        self._running: dict[SupervisedSocket, asyncio.Task[None]] = {}
        self._is_closed = False

    def follow(self, follower: Follower) -> SupervisedSocket:
        """Follows a thread on the first socket that can; that socket, to detach from."""
        socket = (
            next((each for each in self._alive() if self._can_take(each, follower.thread_id)), None) or self._start()
        )
        socket.attach(follower)
        return socket

    def follow_grants(self, reader: GrantsReader) -> SupervisedSocket:
        """Follows the caller's grants; the socket, to detach from."""
        socket = self._first()
        socket.grants.attach(reader)
        return socket

    def hold(self, holder: object) -> None:
        """Keeps a connection to the server for the holder's sake, as long as there may be one."""
        if not self._is_closed:
            self._first().hold(holder)

    def release(self, holder: object) -> None:
        """Ends the holder's `hold`."""
        for socket in self._running:
            socket.release(holder)

    @property
    def connections(self) -> int:
        """How many connections have been opened, reconnects included."""
        return sum(socket.connections for socket in self._running)

    async def close(self) -> None:
        """Ends everything that is followed, and every socket. Raises what a socket's task failed with, if one did."""
        self._is_closed = True
        for socket in self._running:
            socket.fail(Unavailable("This connection was closed."))
        with anyio.CancelScope(shield=True):
            endings = await asyncio.gather(*map(end_task, self._running.values()), return_exceptions=True)
        for ending in endings:
            if isinstance(ending, Exception):
                raise ending

    def _can_take(self, socket: SupervisedSocket, thread_id: str) -> bool:
        return socket.is_free_for(thread_id) and socket.followed < self._most

    def _alive(self) -> list[SupervisedSocket]:
        return [socket for socket, task in self._running.items() if not task.done()]

    def _first(self) -> SupervisedSocket:
        return next(iter(self._alive()), None) or self._start()

    def _start(self) -> SupervisedSocket:
        if self._is_closed:
            raise Unavailable("This connection was closed.")
        socket = self._make_socket()
        self._running[socket] = asyncio.create_task(socket.run())
        return socket
