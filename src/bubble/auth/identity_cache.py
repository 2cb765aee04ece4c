"""Bearers resolved a moment ago, so that a busy caller costs the store one look a second."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bubble.auth.changes import Changes
from bubble.auth.identity import Identity
from bubble.auth.secret_texts import hash_of
from bubble.protocol.timestamps import Clock

__all__ = ["IdentityCache", "KnownBearer"]

#: Milliseconds for which an answer is good at most. Another server's revocation takes effect within that time.
MAX_AGE_MS: Final = 1_000
MAX_ENTRIES: Final = 10_000


@dataclass(frozen=True, slots=True)
class KnownBearer:
    """An identity and when it was resolved. Good for as long as `IdentityCache.is_good` says so."""

    identity: Identity
    since_ms: int
    changes: int


class IdentityCache:
    """Identities by the hash of their bearer; it never holds a secret. Full, it forgets the one that came first."""

    def __init__(self, changes: Changes, *, clock: Clock, max_entries: int = MAX_ENTRIES) -> None:
        self._changes = changes
        self._clock = clock
        self._max_entries = max_entries
        self._entries: dict[bytes, KnownBearer] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, bearer: str) -> Identity | None:
        """The identity, if it was resolved within the last second, has not expired, and nothing was revoked since."""
        entry = self.find(bearer)
        return None if entry is None else entry.identity

    def find(self, bearer: str) -> KnownBearer | None:
        """The same, to be kept beside what else is known of a caller: `is_good` spares the next look-up."""
        key = hash_of(bearer)
        entry = self._entries.get(key)
        if entry is None:
            return None
        if self.is_good(entry):
            return entry
        del self._entries[key]
        return None

    def put(self, bearer: str, identity: Identity, *, changes: int) -> None:
        """Keeps an identity; `changes` is the count of changes from before the store was asked."""
        key = hash_of(bearer)
        self._entries.pop(key, None)
        while len(self._entries) >= self._max_entries:
            del self._entries[next(iter(self._entries))]
        self._entries[key] = KnownBearer(identity, self._clock(), changes)

    def is_good(self, entry: KnownBearer) -> bool:
        """Whether the answer still counts."""
        now = self._clock()
        expires = entry.identity.expires_ms
        return (
            self._changes.is_listening
            and entry.changes == self._changes.count
            and 0 <= now - entry.since_ms < MAX_AGE_MS
            and (expires is None or now < expires)
        )
