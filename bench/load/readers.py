"""Readers of WebSockets that have to be quicker than the server, by the hundred in one process.

A reader knows how many bytes it is to get. It tells the kernel to throw most of them away uncopied (`MSG_TRUNC` on a TCP socket, see
tcp(7)), as readers on other machines would cost nothing here, and keeps the end. One reader, the witness, keeps everything: afterwards
its frames are verified one by one, and every other reader must have got as many bytes and the same end.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Sequence
from typing import Final

from bench.load.events import VerificationError
from bench.load.loops import polled

__all__ = ["Reader", "Sender", "Witness", "fan_out", "verify_ends"]

_END: Final = 16 * 1024
_CHUNK: Final = 1024 * 1024
_BLOCK: Final = 256

_thrown_away = bytearray(_CHUNK)


class Reader:
    """One socket that gets `expected` bytes."""

    __slots__ = ("end", "left", "socket")

    def __init__(self, connection: socket.socket, expected: int) -> None:
        connection.setblocking(False)  # noqa: FBT003 - the standard library's signature
        self.socket = connection
        self.left = expected
        self.end = b""

    def take(self) -> bool:
        """Takes what is there; whether that was the last of it."""
        if self.left > _END:
            taken = self.socket.recv_into(_thrown_away, min(self.left - _END, _CHUNK), socket.MSG_TRUNC)
        else:
            data = self.socket.recv(_CHUNK)
            taken = len(data)
            self.end += data
        return self._took(taken)

    def _took(self, taken: int) -> bool:
        self.left -= taken
        if not taken or self.left < 0:
            raise VerificationError(f"A reader got {-self.left} bytes too many." if taken else "A reader was cut off.")
        return self.left == 0


class Witness(Reader):
    """A reader that keeps all it gets."""

    __slots__ = ("_kept",)

    def __init__(self, connection: socket.socket, expected: int) -> None:
        super().__init__(connection, expected)
        self._kept: list[bytes] = []

    def take(self) -> bool:
        """Takes what is there; whether that was the last of it."""
        data = self.socket.recv(_CHUNK)
        self._kept.append(data)
        return self._took(len(data))

    @property
    def received(self) -> bytes:
        """Everything it got."""
        return b"".join(self._kept)


class Sender:
    """Sends the same frame `count` times, as fast as the server takes it."""

    def __init__(self, connection: socket.socket, frame: bytes, count: int) -> None:
        connection.setblocking(False)  # noqa: FBT003 - the standard library's signature
        self.socket = connection
        self._block = memoryview(frame * min(_BLOCK, count))
        self._left = len(frame) * count
        self._offset = 0

    def push(self) -> bool:
        """Sends what the connection takes; whether that was the last of it."""
        while self._left:
            try:
                sent = self.socket.send(self._block[self._offset : self._offset + self._left])
            except BlockingIOError:
                return False
            self._left -= sent
            self._offset = (self._offset + sent) % len(self._block)
        return True


def fan_out(readers: Sequence[Reader], sender: Sender | None = None) -> None:
    """Returns when the sender has sent everything and each reader has got everything."""
    waiting = {reader.socket.fileno(): reader for reader in readers}
    with select.epoll() as poll:
        for number in waiting:
            poll.register(number, select.EPOLLIN)
        if sender is not None:
            poll.register(sender.socket.fileno(), select.EPOLLIN | select.EPOLLOUT)
        while waiting:
            for number, happened in polled(poll):
                reader = waiting.get(number)
                if reader is None:
                    _send(poll, sender, happened)
                elif reader.take():
                    del waiting[number]
                    poll.unregister(number)


def _send(poll: select.epoll, sender: Sender | None, happened: int) -> None:
    assert sender is not None
    if happened & ~select.EPOLLOUT:
        raise VerificationError(f"The server answered the publisher: {sender.socket.recv(400)!r}.")
    if sender.push():
        poll.modify(sender.socket.fileno(), select.EPOLLIN)


def verify_ends(readers: Sequence[Reader], received: bytes) -> None:
    """Raises `VerificationError` unless every reader's end is the witness's."""
    for reader in readers:
        if not isinstance(reader, Witness) and (not reader.end or not received.endswith(reader.end)):
            raise VerificationError("Two readers of the same thread got different bytes.")
