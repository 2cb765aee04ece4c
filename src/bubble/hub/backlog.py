"""What lagging readers of one thread share: slices that were read and encoded once.

*Theory of operation.* A slice is a chunk of consecutive events. A reader whose cursor lies in a slice gets the rest of it and goes on
where the slice ends, so readers that lag together soon walk along the same slices, and each slice costs one read, one encoding and one
joined buffer, however many they are. Who asks for what is being read already waits for that read. Nothing is read
ahead: a thread that reads takes the interpreter from the loop that writes, and measured slower.

A slice only holds events that were released when its read began (see `tail`); who may have it is the members' business, as ever. It goes
when it is the one unused for longest and its backlog or all backlogs of the node hold too much, and with the tail.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from bubble.hub.encodings import Chunk, Encoding
from bubble.hub.tasks import TaskOwner
from bubble.protocol.errors import BubbleError

__all__ = ["Backlog", "Backlogs", "EventReader"]

#: What one read brings, in wire text: as many events as fit, at least one. With half of it a replay was slower.
READ_BYTES = 256 * 1024
READ_EVENTS = 1_000
BACKLOG_BYTES = 4 * 1024 * 1024
ALL_BACKLOGS_BYTES = 32 * 1024 * 1024


class EventReader(Protocol):
    """The part of a store that a backlog needs."""

    async def read(self, thread_id: str, *, from_seq: int, to_seq: int, limit: int, max_bytes: int) -> Sequence[bytes]:
        """As `BubbleStore.read`."""


class Backlogs:
    """All backlogs of a node. Together they hold at most `max_bytes` of encoded events, and as much again joined."""

    def __init__(self, store: EventReader, tasks: TaskOwner, *, max_bytes: int = ALL_BACKLOGS_BYTES) -> None:
        self.store = store
        self.tasks = tasks
        self._max_bytes = max_bytes
        self._bytes = 0
        self._by_use: dict[Backlog, None] = {}

    @property
    def size(self) -> int:
        """Bytes of encoded events held."""
        return self._bytes

    def open(self, thread_id: str, *, max_bytes: int = BACKLOG_BYTES) -> Backlog:
        """One for a thread's tail, which closes it."""
        return Backlog(self, thread_id, max_bytes=max_bytes)

    def took(self, backlog: Backlog, size: int) -> None:
        """The backlog holds `size` bytes more; whoever was not used for longest makes room."""
        self.used(backlog)
        self._bytes += size
        while self._bytes > self._max_bytes:
            next(iter(self._by_use)).evict()

    def used(self, backlog: Backlog) -> None:
        """The backlog gave a slice to somebody."""
        self._by_use.pop(backlog, None)
        self._by_use[backlog] = None

    def gave_back(self, backlog: Backlog, size: int, *, left: int) -> None:
        """The backlog let `size` bytes go and holds `left`."""
        self._bytes -= size
        if not left:
            self._by_use.pop(backlog, None)


class Backlog:
    """One thread's slices. At most `max_bytes` of encoded events (or one slice, if that is larger), and as much again joined.

    A slice that was read is at most `READ_BYTES` of wire text large, or one event.
    """

    def __init__(self, owner: Backlogs, thread_id: str, *, max_bytes: int) -> None:
        self._owner = owner
        self._thread_id = thread_id
        self._max_bytes = max_bytes
        self._bytes = 0
        self._slices: dict[tuple[Encoding, int], Chunk] = {}  # by first seq; the one unused for longest comes first
        self._reads: dict[tuple[Encoding, int], asyncio.Future[Chunk | None]] = {}
        self._is_closed = False

    @property
    def size(self) -> int:
        """Bytes of encoded events held."""
        return self._bytes

    def find(self, encoding: Encoding, from_seq: int) -> Chunk | None:
        """What a held slice has from `from_seq` on."""
        key = (encoding, from_seq)
        if key not in self._slices:
            for candidate, held in self._slices.items():
                if candidate[0] is encoding and candidate[1] < from_seq < held.next_seq:
                    key = candidate
                    break
            else:
                return None
        held = self._slices[key] = self._slices.pop(key)
        self._owner.used(self)
        return held.after(from_seq)

    async def read(self, encoding: Encoding, from_seq: int, *, to_seq: int, keep: bool = True) -> Chunk | None:
        """The next slice, from a read that all share who need it; None if there is nothing.

        The caller may have everything up to `to_seq`. Where others may come for it, `keep` it. Raises what the store raises.
        """
        nearby = self._nearby(encoding, from_seq)
        if nearby is not None:
            await asyncio.shield(nearby)
        found = self.find(encoding, from_seq)
        if found is not None or self._is_closed:
            return found
        return await asyncio.shield(self._begin(encoding, from_seq, to_seq, keep=keep))

    def keep(self, encoding: Encoding, chunk: Chunk) -> None:
        """Holds a slice for those who come later."""
        key = (encoding, chunk.first_seq)
        if self._is_closed or key in self._slices:
            return
        self._slices[key] = chunk
        self._bytes += chunk.size
        while self._bytes > self._max_bytes and len(self._slices) > 1:
            self.evict()
        self._owner.took(self, chunk.size)

    def evict(self) -> None:
        """Lets the slice go that was not used for longest."""
        chunk = self._slices.pop(next(iter(self._slices)))
        self._bytes -= chunk.size
        self._owner.gave_back(self, chunk.size, left=len(self._slices))

    def close(self) -> None:
        """Lets everything go and takes nothing more. Idempotent."""
        self._is_closed = True
        while self._slices:
            self.evict()

    def _nearby(self, encoding: Encoding, from_seq: int) -> asyncio.Future[Chunk | None] | None:
        """A read under way that may bring `from_seq`."""
        for (of, first_seq), reading in self._reads.items():
            if of is encoding and first_seq <= from_seq < first_seq + READ_EVENTS:
                return reading
        return None

    def _begin(self, encoding: Encoding, from_seq: int, to_seq: int, *, keep: bool) -> asyncio.Future[Chunk | None]:
        reading = self._reads.get((encoding, from_seq))
        if reading is None:
            reading = self._reads[encoding, from_seq] = asyncio.get_running_loop().create_future()
            self._owner.tasks.spawn(self._fill(reading, encoding, from_seq, to_seq, keep=keep))
        return reading

    async def _fill(
        self, reading: asyncio.Future[Chunk | None], encoding: Encoding, from_seq: int, to_seq: int, *, keep: bool
    ) -> None:
        try:
            texts = await self._owner.store.read(
                self._thread_id, from_seq=from_seq, to_seq=to_seq, limit=READ_EVENTS, max_bytes=READ_BYTES
            )
            chunk = None
            if texts:
                chunk = Chunk(encoding.encode(self._thread_id, texts), next_seq=from_seq + len(texts))
                if keep:
                    self.keep(encoding, chunk)
            reading.set_result(chunk)
        except BubbleError as error:
            reading.set_exception(error)
            reading.exception()  # whoever asked may be gone
        finally:
            del self._reads[encoding, from_seq]
            reading.cancel()  # without effect unless this task was ended
