"""Streams of server-sent events, by the hundred in one process: each is read until a mark has come."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from bench.load.events import VerificationError
from bench.load.loops import polled
from bench.load.wire import http_request, open_http
from bench.servers.process import Server

__all__ = ["MarkReader", "open_streams", "read_to_marks"]

_CHUNK: Final = 256 * 1024


class MarkReader:
    """One stream. It keeps what it needs to find the mark, or everything."""

    def __init__(self, connection: socket.socket, *, keeps: bool = False) -> None:
        self.socket = connection
        self.kept = b""
        self._keeps = keeps

    def take(self, mark: bytes) -> bool:
        """Takes what is there; whether the mark was in it."""
        data = self.socket.recv(_CHUNK)
        if not data:
            raise VerificationError("A stream was cut off.")
        seen = self.kept[-len(mark) :] + data
        self.kept = self.kept + data if self._keeps else seen
        return mark in seen


@contextmanager
def open_streams(server: Server, path: str, count: int, *, opened: bytes) -> Iterator[Sequence[MarkReader]]:
    """Streams of the administrator, each read until the mark `opened`; the first of them keeps everything."""
    with open_http(server, count) as connections:
        readers = [MarkReader(each, keeps=index == 0) for index, each in enumerate(connections)]
        for reader in readers:
            reader.socket.sendall(http_request(server, path, b"", method="GET"))
        read_to_marks(readers, opened)
        yield readers


def read_to_marks(readers: Sequence[MarkReader], mark: bytes) -> None:
    """Returns when each reader has seen the mark."""
    waiting = {reader.socket.fileno(): reader for reader in readers}
    with select.epoll() as poll:
        for number in waiting:
            poll.register(number, select.EPOLLIN)
        while waiting:
            for number, _ in polled(poll):
                if waiting[number].take(mark):
                    del waiting[number]
                    poll.unregister(number)
