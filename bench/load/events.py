"""What is sent, and to the byte what comes back.

Every event of a run has the same size, so how much a reader will get is known before it gets anything. That lets a reader count bytes
instead of looking at each event, and a reader that got one byte too few or too many is found out.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "ADMIN",
    "EVENT_BYTES",
    "RUN",
    "Deliveries",
    "VerificationError",
    "part_event",
    "run_started",
    "verify_deliveries",
]

ADMIN: Final = "admin"
RUN: Final = "bench"
EVENT_BYTES: Final = 250

_TIME: Final = b"2000-01-01T00:00:00.000Z"
_FRAME_HEADER: Final = 4  # of a text frame of 126 to 65,535 bytes (RFC 6455, section 5.2)


class VerificationError(Exception):
    """What came back is not what was sent, so there is nothing to measure."""


def run_started() -> bytes:
    """The event before all others."""
    return b'{"type":"run_started","principalId":"%b","runId":"%b"}' % (ADMIN.encode(), RUN.encode())


def part_event(size: int = EVENT_BYTES, *, number: int | None = None) -> bytes:
    """A `message_part` of exactly `size` bytes in canonical form; with a `number`, its text begins with that."""
    before = (
        b'{"type":"message_part","principalId":"%b","runId":"%b","part":{"type":"text-delta","id":"1","delta":"'
        % (
            ADMIN.encode(),
            RUN.encode(),
        )
    )
    after = b'"},"version":"ai-sdk-v6"}'
    mark = b"" if number is None else b"#%08d" % number
    return before + mark.ljust(size - len(before) - len(after), b"x") + after


class Deliveries:
    """The `thread.event` frames of one thread whose events all have `event_bytes` bytes when they are appended."""

    def __init__(self, thread_id: str, *, event_bytes: int = EVENT_BYTES) -> None:
        self.prefix: Final = b'{"type":"thread.event","threadId":"%b","event":{"seq":' % thread_id.encode()
        # {"seq":N,"createdAt":"…",<event without its brace>}
        self._without_seq = (
            _FRAME_HEADER + len(self.prefix) + len(b',"createdAt":"",') + len(_TIME) + event_bytes - 1 + len(b"}")
        )

    def size(self, seq: int) -> int:
        """Bytes of the frame with that seq."""
        return self._without_seq + len(str(seq))

    def total(self, first: int, last: int) -> int:
        """Bytes of the frames from `first` to `last`, inclusive."""
        digits = sum(len(str(seq)) for seq in range(first, last + 1))
        return digits + self._without_seq * (last - first + 1)


def verify_deliveries(received: bytes, deliveries: Deliveries, *, first: int, last: int) -> None:
    """Raises `VerificationError` unless these are the frames from `first` to `last`, each once and in order."""
    position = 0
    for seq in range(first, last + 1):
        size = deliveries.size(seq)
        start = b"\x81\x7e%b%b%d," % ((size - _FRAME_HEADER).to_bytes(2, "big"), deliveries.prefix, seq)
        if not received.startswith(start, position):
            raise VerificationError(f"Event {seq} is not where it should be: {received[position : position + 80]!r}.")
        position += size
    if position != len(received):
        raise VerificationError(f"{len(received) - position} bytes came after event {last}.")
