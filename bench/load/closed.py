"""Clients that wait for each answer before they ask again."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Sequence
from typing import Final, Protocol

from bench.load.events import VerificationError
from bench.load.loops import polled

__all__ = ["CREATED", "AnswerReader", "HttpAnswers", "ask_for", "ask_times"]

_CHUNK: Final = 256 * 1024
CREATED: Final = b"HTTP/1.1 201 "
_LENGTH: Final = b"content-length: "  # as both servers write it


class AnswerReader(Protocol):
    """Finds the ends of answers on one connection."""

    def feed(self, data: bytes) -> bool:
        """Takes what came; whether the answer is complete. Raises `VerificationError` for one that is not as it should be."""


class HttpAnswers:
    """Answers of one HTTP connection, each of which begins with `status_line`."""

    __slots__ = ("_missing", "_start", "_status_line")

    def __init__(self, status_line: bytes = CREATED) -> None:
        self._status_line = status_line
        self._start = b""
        self._missing = 0

    def feed(self, data: bytes) -> bool:
        """Takes what came; whether the answer is complete."""
        if self._missing:
            self._missing -= len(data)
        else:
            self._begin(self._start + data if self._start else data)
        if self._missing < 0:
            raise VerificationError("An answer is longer than it says.")
        return not self._missing and not self._start

    def _begin(self, data: bytes) -> None:
        head = data.find(b"\r\n\r\n")
        if head < 0:
            self._start = data
            return
        self._start = b""
        at = data.find(_LENGTH, 0, head)
        if not data.startswith(self._status_line) or at < 0:
            raise VerificationError(f"A request was answered with {data[:200]!r}.")
        at += len(_LENGTH)
        self._missing = head + 4 + int(data[at : data.find(b"\r", at)]) - len(data)


class _Client:
    __slots__ = ("answers", "socket")

    def __init__(self, connection: socket.socket, answers: AnswerReader) -> None:
        self.socket = connection
        self.answers = answers


def ask_for(
    seconds: float, connections: Sequence[socket.socket], request: bytes, answers: type[AnswerReader] = HttpAnswers
) -> int:
    """Every connection asks again and again for about so many seconds; how many answers came."""
    return _ask(connections, request, answers, until=time.perf_counter() + seconds, times=None)


def ask_times(
    times: int, connections: Sequence[socket.socket], request: bytes, answers: type[AnswerReader] = HttpAnswers
) -> int:
    """All connections together ask exactly so many times."""
    return _ask(connections, request, answers, until=None, times=times)


def _ask(
    connections: Sequence[socket.socket],
    request: bytes,
    answers: type[AnswerReader],
    *,
    until: float | None,
    times: int | None,
) -> int:
    clients = {connection.fileno(): _Client(connection, answers()) for connection in connections}
    answered = 0
    unasked = times if times is not None else 1 << 62
    end = until if until is not None else float("inf")
    clock = time.perf_counter
    with select.epoll() as poll:
        asking = 0
        for number, client in clients.items():
            poll.register(number, select.EPOLLIN)
            if unasked:
                _send(client.socket, request)
                unasked -= 1
                asking += 1
        while asking:
            for number, _ in polled(poll):
                client = clients[number]
                data = client.socket.recv(_CHUNK)
                if not data:
                    raise VerificationError("The server closed a connection.")
                if not client.answers.feed(data):
                    continue
                answered += 1
                if unasked and clock() < end:
                    unasked -= 1
                    _send(client.socket, request)
                else:
                    asking -= 1
    return answered


def _send(connection: socket.socket, request: bytes) -> None:
    # An idle connection takes a request of this size whole, or the measurement is over.
    if connection.send(request) != len(request):
        raise VerificationError("A request did not fit into an idle connection's buffer.")
