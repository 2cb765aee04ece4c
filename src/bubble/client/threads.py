"""Threads, who takes part in them, their runs, and the caller's cursors (protocol, section 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import UNSET, UnsetType

from bubble.client.answers import CursorAnswer
from bubble.client.http import Call, HttpClient, json_body, or_unset
from bubble.client.listing import Listing
from bubble.client.paths import thread_path
from bubble.client.wire import decode_resource
from bubble.protocol.identifiers import check_name, check_seq
from bubble.protocol.resources import (
    Grant,
    GrantPage,
    JoinPolicy,
    Metadata,
    Run,
    RunPage,
    RunStateName,
    Thread,
    ThreadPage,
)

__all__ = ["Threads"]


class Threads:
    """The routes below `/v1/threads` that are not about events, and `/v1/grants`."""

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

    # --- who takes part ---------------------------------------------------------------------------------------------------------

    def grants(self, thread_id: str, *, limit: int | None) -> Listing[GrantPage, Grant]:
        """A thread's grants by principal."""
        path = thread_path(thread_id, "/grants")
        return Listing(
            lambda after: self._http.get(path, GrantPage, after=after, limit=limit), lambda page: page.grants
        )

    def own_grants(self, *, limit: int | None) -> Listing[GrantPage, Grant]:
        """The caller's grants by thread."""
        return Listing(
            lambda after: self._http.get("/v1/grants", GrantPage, after=after, limit=limit), lambda page: page.grants
        )

    async def put_grant(self, thread_id: str, principal_id: str, role: str) -> Grant:
        """Gives or changes a grant."""
        return await self._http.put(_grant_path(thread_id, principal_id), Grant, json_body(role=role))

    async def remove_grant(self, thread_id: str, principal_id: str) -> None:
        """Takes a grant away."""
        await self._http.delete(_grant_path(thread_id, principal_id))

    # --- runs and cursors -------------------------------------------------------------------------------------------------------

    def runs(
        self, thread_id: str, *, state: RunStateName | None, principal_id: str | None, limit: int | None
    ) -> Listing[RunPage, Run]:
        """A thread's runs by first seq."""
        path = thread_path(thread_id, "/runs")
        return Listing(
            lambda after: self._http.get(
                path, RunPage, after=after, limit=limit, state=state, principalId=principal_id
            ),
            lambda page: page.runs,
        )

    async def get_cursor(self, thread_id: str) -> int:
        """The caller's cursor."""
        return (await self._http.get(thread_path(thread_id, "/cursor"), CursorAnswer)).seq

    async def advance_cursor(self, thread_id: str, seq: int) -> int:
        """Moves the caller's cursor forward."""
        body = json_body(seq=check_seq(seq, path="seq"))
        return (await self._http.put(thread_path(thread_id, "/cursor"), CursorAnswer, body)).seq


def _grant_path(thread_id: str, principal_id: str) -> str:
    return thread_path(thread_id, f"/grants/{check_name(principal_id, path='principalId')}")
