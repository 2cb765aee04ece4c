"""The live end of one thread on this node.

*Theory of operation.* A tail knows the thread's head and keeps the last events, so that those who keep up are served from memory and
an event is encoded once. Members (subscriptions and held pages) are cursors: the tail tells them that there is more, they fetch. Whoever
lags gets full slices, which the tail's backlog keeps for the others (see `backlog`); what the tail no longer has, the backlog reads.

Two numbers stand guard over who sees what. `head` is the last seq known to be committed, `released` the last one that members may have.
Normally they are equal. When a commit comes under another version of the thread's grants, `released` stays where it was until the hub
has looked at every member again and closed those that lost their right; no event committed after a revocation can slip through,
whatever the order in which notices, reads and writes happen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from bubble.hub.backlog import Backlog
from bubble.hub.encodings import SEQS_ALONE, Chunk, Encoding
from bubble.protocol.errors import BubbleError
from bubble.store.commands import Guard

__all__ = ["Member", "Tail"]

_MEMOS = 8
#: What is cut from a tail at a time: as many events as fit, at least one.
SLICE_BYTES = 128 * 1024


class Member(Protocol):
    """Somebody who follows a tail."""

    @property
    def guard(self) -> Guard:
        """Its rights."""

    def released(self) -> None:
        """There is more up to `Tail.released`."""

    def close(self, error: BubbleError) -> None:
        """It may not or cannot follow any longer."""


class Tail:
    """One thread's live end. Bounded by `max_events` and `max_bytes` of wire text, and as much again for each encoding in use.

    What readers share besides is bounded by the backlog and by eight slices. `close()` it when nothing more comes of it.
    """

    def __init__(self, thread_id: str, backlog: Backlog, *, max_events: int, max_bytes: int) -> None:
        self.thread_id = thread_id
        self.backlog = backlog
        self.head = 0
        self.released = 0
        self.grant_version = -1
        self.checking = False
        self.members: set[Member] = set()
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._texts: list[bytes] = []
        self._bytes = 0
        self._pieces: dict[Encoding, list[bytes]] = {}
        self._memos: dict[tuple[Encoding, int], Chunk] = {}  # valid for the present `released`

    @property
    def first_kept(self) -> int:
        """The lowest seq still kept in memory; `head + 1` if none is."""
        return self.head - len(self._texts) + 1

    @property
    def _is_shared(self) -> bool:
        # For a lone reader nothing is kept: fresh memory for each slice made its replay a tenth slower.
        return len(self.members) > 1

    def learn(self, *, head: int, grant_version: int, texts: Sequence[bytes] = ()) -> bool:
        """Takes in a committed position. Whether the members' rights must be looked at before more is released."""
        if self.grant_version < 0:
            self.grant_version = grant_version
            self.head = max(head, self.head)
            self._release()
            return False
        must_check = grant_version > self.grant_version
        self.grant_version = max(grant_version, self.grant_version)
        if head > self.head:
            self._extend(head, texts)
        if must_check:
            self.checking = True
        elif not self.checking:
            self._release()
        return must_check

    def _extend(self, head: int, texts: Sequence[bytes]) -> None:
        fresh = head - self.head
        self.head = head
        if len(texts) < fresh:  # another process committed: there is a hole, the store will serve it
            self._texts.clear()
            self._pieces.clear()
            self._bytes = 0
        added = texts[-fresh:] if len(texts) >= fresh else texts
        self._texts.extend(added)
        self._bytes += sum(map(len, added))
        for encoding, pieces in self._pieces.items():
            pieces.extend(encoding.encode(self.thread_id, added))
        self._trim()

    def _trim(self) -> None:
        count, dropped = len(self._texts), 0
        while count - dropped > self._max_events or (self._bytes > self._max_bytes and count - dropped > 1):
            self._bytes -= len(self._texts[dropped])
            dropped += 1
        if dropped:
            del self._texts[:dropped]
            for pieces in self._pieces.values():
                del pieces[:dropped]

    def release(self) -> None:
        """All members were looked at: they may have everything up to the head."""
        self.checking = False
        self._release()

    def _release(self) -> None:
        if self.released != self.head:
            self.released = self.head
            self._memos.clear()

    def close(self) -> None:
        """Lets go of what is kept for sharing."""
        self._memos.clear()
        self.backlog.close()

    def chunk(self, encoding: Encoding, from_seq: int) -> Chunk | None:
        """The released events from `from_seq` on, one slice at most; None if they must be read from the store."""
        if encoding is SEQS_ALONE:  # nothing to read, however far behind
            return Chunk([b""] * (self.released + 1 - from_seq), next_seq=self.released + 1)
        memo = self._memos.get((encoding, from_seq))
        if memo is None:
            memo = self.backlog.find(encoding, from_seq)
            if memo is None:
                if from_seq < self.first_kept:
                    return None
                memo = self._cut(encoding, from_seq)
            if len(self._memos) >= _MEMOS:
                self._memos.clear()
            self._memos[encoding, from_seq] = memo
        return memo

    def _cut(self, encoding: Encoding, from_seq: int) -> Chunk:
        pieces = self._pieces.get(encoding)
        if pieces is None:
            pieces = self._pieces[encoding] = encoding.encode(self.thread_id, self._texts)
        start = from_seq - self.first_kept
        chosen = _within(pieces, start, start + self.released - from_seq + 1)
        cut = Chunk(chosen, next_seq=from_seq + len(chosen))
        if self._is_shared and cut.next_seq <= self.released:
            self.backlog.keep(encoding, cut)
        return cut

    async def read(self, encoding: Encoding, from_seq: int) -> Chunk | None:
        """The same out of the store, in a read that all share who need it; None if the thread is gone. Raises what the store raises."""
        return await self.backlog.read(encoding, from_seq, to_seq=self.released, keep=self._is_shared)


def _within(pieces: list[bytes], start: int, stop: int) -> list[bytes]:
    total, end = 0, start
    while end < stop:
        total += len(pieces[end])
        if total > SLICE_BYTES and end > start:
            break
        end += 1
    return pieces[start:end]
