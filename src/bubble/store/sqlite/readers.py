"""A few threads that read, each with its own connection and its own view of what is committed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

import apsw

from bubble.protocol.errors import Unavailable
from bubble.store.sqlite.connection import STORE_ERRORS, unavailable

__all__ = ["Readers"]

T = TypeVar("T")

_THREADS: Final = 4


class Readers:
    """`connect` opens one of the connections, in the thread that uses it."""

    def __init__(self, connect: Callable[[], apsw.Connection]) -> None:
        self._connect = connect
        self._threads = ThreadPoolExecutor(_THREADS, "bubble-reader")
        self._own = threading.local()
        self._connections: list[apsw.Connection] = []
        self._is_closed = False

    async def run(self, read: Callable[..., T], *arguments: object, **options: object) -> T:
        """What `read(connection, *arguments, **options)` gives; `Unavailable` where the file cannot be read, or after `close`."""
        if self._is_closed:
            raise Unavailable("The store is closed.")
        work = self._threads.submit(self._read, read, arguments, options)
        return await asyncio.wrap_future(work)

    def close(self) -> None:
        """Waits for what is being read, then closes the connections. Blocks."""
        self._is_closed = True
        self._threads.shutdown(wait=True)
        for connection in self._connections:
            connection.close()

    def stop(self) -> None:
        """Takes nothing more."""
        self._is_closed = True

    def _read(self, read: Callable[..., T], arguments: tuple[object, ...], options: dict[str, object]) -> T:
        try:
            connection = getattr(self._own, "connection", None)
            if connection is None:
                connection = self._own.connection = self._connect()
                self._connections.append(connection)
            return read(connection, *arguments, **options)
        except STORE_ERRORS as error:
            raise unavailable(error) from error
