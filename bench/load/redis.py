"""Redis' protocol as far as one command needs it."""

from __future__ import annotations

from typing import Final

from bench.load.events import VerificationError

__all__ = ["RedisAnswers", "xadd"]

_ENDS_OF_AN_ID: Final = 2  # the length's line and the id's


def xadd(event: bytes) -> bytes:
    """The request that adds an event to a stream."""
    words = (b"XADD", b"bench", b"*", b"event", event)
    return b"*%d\r\n%b" % (len(words), b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words))


class RedisAnswers:
    """Answers to `xadd` on one connection: a bulk string each, the id of the entry."""

    __slots__ = ("_start",)

    def __init__(self) -> None:
        self._start = b""

    def feed(self, data: bytes) -> bool:
        """Takes what came; whether the answer is complete."""
        answer = self._start + data
        if not answer.startswith(b"$"):
            raise VerificationError(f"Redis answered {answer[:80]!r}.")
        is_whole = answer.count(b"\r\n") == _ENDS_OF_AN_ID
        self._start = b"" if is_whole else answer
        return is_whole
