"""The live end of one thread on this node.

*Theory of operation.* A tail knows the thread's head and keeps the last events, so that those who keep up are served from memory and
an event is encoded once. Members (subscriptions and held pages) are cursors: the tail tells them that there is more, they fetch.

Two numbers stand guard over who sees what. `head` is the last seq known to be committed, `released` the last one that members may have.
Normally they are equal. When a commit comes under another version of the thread's grants, `released` stays where it was until the hub
has looked at every member again and closed those that lost their right; no event committed after a revocation can slip through,
whatever the order in which notices, reads and writes happen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Protocol

from bubble.hub.encodings import Chunk, Encoding
from bubble.protocol.errors import BubbleError
from bubble.store.commands import Guard

__all__ = ["Member", "Tail"]

_MEMOS = 8


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
    """One thread's live end. Bounded by `max_events` and `max_bytes` of wire text."""

    def __init__(self, thread_id: str, *, max_events: int, max_bytes: int) -> None:
        self.thread_id = thread_id
        self.head = 0
        self.released = 0
        self.grant_version = -1
        self.checking = False
        self.members: set[Member] = set()
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._texts: deque[bytes] = deque()
        self._bytes = 0
        self._pieces: dict[Encoding, deque[bytes]] = {}
        self._memos: dict[tuple[Encoding, int, int], Chunk] = {}

    @property
    def first_kept(self) -> int:
        """The lowest seq still kept in memory; `head + 1` if none is."""
        return self.head - len(self._texts) + 1

    def learn(self, *, head: int, grant_version: int, texts: Sequence[bytes] = ()) -> bool:
        """Takes in a committed position. Whether the members' rights must be looked at before more is released."""
        if self.grant_version < 0:
            self.grant_version = grant_version
            self.head = self.released = max(head, self.head)
            return False
        must_check = grant_version > self.grant_version
        self.grant_version = max(grant_version, self.grant_version)
        if head > self.head:
            self._extend(head, texts)
        if must_check:
            self.checking = True
        elif not self.checking:
            self.released = self.head
        return must_check

    def _extend(self, head: int, texts: Sequence[bytes]) -> None:
        fresh = head - self.head
        self.head = head
        self._memos.clear()
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
        while len(self._texts) > self._max_events or (self._bytes > self._max_bytes and len(self._texts) > 1):
            self._bytes -= len(self._texts.popleft())
            for pieces in self._pieces.values():
                pieces.popleft()

    def release(self) -> None:
        """All members were looked at: they may have everything up to the head."""
        self.checking = False
        self.released = self.head

    def chunk(self, encoding: Encoding, from_seq: int, *, max_bytes: int) -> Chunk | None:
        """The released events from `from_seq` on, at most `max_bytes` (but one at least); None if they are not all kept here."""
        if from_seq < self.first_kept:
            return None
        memo = self._memos.get((encoding, from_seq, self.released))
        if memo is None:
            memo = self._cut(encoding, from_seq, max_bytes)
            if len(self._memos) >= _MEMOS:
                self._memos.clear()
            self._memos[encoding, from_seq, self.released] = memo
        return memo

    def _cut(self, encoding: Encoding, from_seq: int, max_bytes: int) -> Chunk:
        pieces = self._pieces.get(encoding)
        if pieces is None:
            pieces = self._pieces[encoding] = deque(encoding.encode(self.thread_id, self._texts))
        start = from_seq - self.first_kept
        chosen = list(_within(islice(pieces, start, start + self.released - from_seq + 1), max_bytes))
        return Chunk(chosen, next_seq=from_seq + len(chosen))


def _within(pieces: Iterable[bytes], max_bytes: int) -> Iterable[bytes]:
    total = 0
    for piece in pieces:
        total += len(piece)
        yield piece
        if total >= max_bytes:
            return
