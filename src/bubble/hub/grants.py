"""Grants feeds: how a connection learns of the threads its principal is on (`grants.subscribe`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bubble.auth.identity import Identity
from bubble.protocol.errors import Conflict
from bubble.protocol.resources import Grant
from bubble.store.base import BubbleStore
from bubble.store.notices import GrantChanged

if TYPE_CHECKING:
    from bubble.hub.connection import Connection

__all__ = ["GrantFeeds"]

_PAGE = 1_000


class _Feed:
    # `known` holds all grants of the principal, also those that the connection's bearer, narrowed to some threads, may not see.
    __slots__ = ("early", "known")

    def __init__(self) -> None:
        self.known: dict[str, Grant] = {}
        self.early: list[GrantChanged] | None = []  # what came before the snapshot was sent


class GrantFeeds:
    """All feeds of this node. A feed keeps the grants it has told of, so that a poll can tell what it missed."""

    def __init__(self, store: BubbleStore) -> None:
        self._store = store
        self._feeds: dict[str, dict[Connection, _Feed]] = {}

    async def add(self, connection: Connection) -> None:
        """Sends the snapshot, then each change, of what the bearer may see. `Conflict` if the connection already has a feed."""
        principal_id = connection.identity.principal.principal_id
        feeds = self._feeds.setdefault(principal_id, {})
        if connection in feeds:
            raise Conflict("Connection is already subscribed to its grants.")
        feed = feeds[connection] = _Feed()
        try:
            grants = await self._grants_of(principal_id)
        except BaseException:
            self.remove(connection)
            raise
        if feeds.get(connection) is not feed:
            return  # unsubscribed meanwhile
        feed.known = {grant.thread_id: grant for grant in grants}
        connection.sink.grants_snapshot([grant for grant in grants if _is_within(grant, connection.identity)])
        early, feed.early = feed.early or [], None
        for notice in early:
            self._tell(connection, feed, notice)

    def remove(self, connection: Connection) -> None:
        """Ends the connection's feed, if it has one."""
        principal_id = connection.identity.principal.principal_id
        feeds = self._feeds.get(principal_id)
        if feeds is not None:
            feeds.pop(connection, None)
            if not feeds:
                del self._feeds[principal_id]

    def tell(self, notice: GrantChanged) -> None:
        """Passes a change on to its principal's feeds."""
        for connection, feed in list(self._feeds.get(notice.grant.principal_id, {}).items()):
            if feed.early is not None:
                feed.early.append(notice)
            else:
                self._tell(connection, feed, notice)

    def _tell(self, connection: Connection, feed: _Feed, notice: GrantChanged) -> None:
        grant = notice.grant
        if notice.change == "revoked":
            if feed.known.pop(grant.thread_id, None) is None:
                return
        elif feed.known.get(grant.thread_id) == grant:
            return
        else:
            feed.known[grant.thread_id] = grant
        if _is_within(grant, connection.identity):
            connection.sink.grants_changed(notice.change, grant)

    def identity_changed(self, connection: Connection, *, before: Identity) -> None:
        """Tells a feed what another bearer of its principal lets it see, and no longer see."""
        feed = self._feeds.get(before.principal.principal_id, {}).get(connection)
        for grant in [] if feed is None or feed.early is not None else list(feed.known.values()):
            was, is_now = _is_within(grant, before), _is_within(grant, connection.identity)
            if was != is_now:
                connection.sink.grants_changed("granted" if is_now else "revoked", grant)

    async def compare(self) -> None:
        """Reads the grants of every fed principal again and tells of what a lost notice left out."""
        for principal_id in list(self._feeds):
            grants = {grant.thread_id: grant for grant in await self._grants_of(principal_id)}
            for connection, feed in list(self._feeds.get(principal_id, {}).items()):
                if feed.early is None:
                    for notice in _differences(feed.known, grants):
                        self._tell(connection, feed, notice)

    async def _grants_of(self, principal_id: str) -> Sequence[Grant]:
        grants: list[Grant] = []
        after: str | None = None
        while True:
            page = await self._store.list_grants_of(principal_id, after=after, limit=_PAGE)
            grants += page.grants
            after = page.next_after
            if after is None:
                return grants


def _is_within(grant: Grant, identity: Identity) -> bool:
    """Whether a bearer narrowed to some threads may know of it (protocol, section 5)."""
    return identity.threads is None or grant.thread_id in identity.threads


def _differences(known: dict[str, Grant], now: dict[str, Grant]) -> list[GrantChanged]:
    revoked = [GrantChanged("revoked", grant) for thread_id, grant in known.items() if thread_id not in now]
    others = [
        GrantChanged("updated" if thread_id in known else "granted", grant)
        for thread_id, grant in now.items()
        if known.get(thread_id) != grant
    ]
    return revoked + others
