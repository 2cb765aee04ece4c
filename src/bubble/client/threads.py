"""Threads themselves (protocol, section 6): made, read, changed, imported, deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import UNSET, UnsetType

from bubble.client.http import Call, HttpClient, json_body, or_unset
from bubble.client.listing import Listing
from bubble.client.paths import thread_path
from bubble.client.wire import decode_resource
from bubble.protocol.resources import JoinPolicy, Metadata, Thread, ThreadPage

__all__ = ["Threads"]


class Threads:
    """The routes of threads as a whole."""

    def __init__(self, http: HttpClient) -> None:
        self._http = http

    async def create(
        self,
        *,
        thread_id: str | None,
        title: str | None,
        join_policy: JoinPolicy,
        metadata: Metadata | None,
        participants: Mapping[str, str],
    ) -> Thread:
        """Creates a thread."""
        body = json_body(
            threadId=or_unset(thread_id),
            title=or_unset(title),
            joinPolicy=join_policy,
            metadata=or_unset(metadata),
            participants=[{"principalId": each, "role": role} for each, role in participants.items()] or UNSET,
        )
        return await self._http.post("/v1/threads", Thread, body)

    async def get(self, thread_id: str) -> Thread:
        """One thread."""
        return await self._http.get(thread_path(thread_id), Thread)

    def listing(self, *, query: str | None, limit: int | None) -> Listing[ThreadPage, Thread]:
        """Threads by latest activity."""
        return Listing(
            lambda after: self._http.get("/v1/threads", ThreadPage, after=after, limit=limit, q=query),
            lambda page: page.threads,
        )

    async def update(
        self,
        thread_id: str,
        *,
        title: str | UnsetType | None,
        join_policy: JoinPolicy | None,
        metadata: Metadata | UnsetType | None,
    ) -> Thread:
        """Changes what is given."""
        body = json_body(title=title, joinPolicy=or_unset(join_policy), metadata=metadata)
        return await self._http.patch(thread_path(thread_id), Thread, body)

    async def delete(self, thread_id: str) -> None:
        """Deletes a thread for good."""
        await self._http.delete(thread_path(thread_id))

    async def import_thread(
        self,
        thread_id: str,
        texts: Sequence[bytes],
        *,
        title: str | None,
        join_policy: JoinPolicy,
        metadata: Metadata | None,
        owner: str | None,
        keep_participants: bool,
    ) -> Thread:
        """Creates a thread with exactly these stored events."""
        rest = json_body(
            title=or_unset(title),
            joinPolicy=join_policy,
            metadata=or_unset(metadata),
            ownerPrincipalId=or_unset(owner),
            keepParticipants=UNSET if keep_participants else False,
        )
        call = Call(
            method="POST",
            path=thread_path(thread_id, "/import"),
            body=b'%s,"events":[%s]}' % (rest[:-1], b",".join(texts)),
            repeatable=False,
            patience=len(texts) / 1000,
        )
        return decode_resource((await self._http.send(call)).body, Thread)
