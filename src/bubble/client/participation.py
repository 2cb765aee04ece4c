"""Who takes part in threads, their runs, and the caller's own place in them (protocol, section 6)."""

from __future__ import annotations

from bubble.client.answers import CursorAnswer
from bubble.client.http import Routes, json_body
from bubble.client.listing import Listing
from bubble.client.paths import thread_path
from bubble.protocol.identifiers import check_name, check_seq
from bubble.protocol.resources import Grant, GrantPage, Run, RunPage, RunStateName

__all__ = ["Participation"]


class Participation(Routes):
    """What `BubbleConnection` does about grants, runs and cursors."""

    def list_grants(self, thread_id: str, *, limit: int | None = None) -> Listing[GrantPage, Grant]:
        """A thread's grants by principal, each with what others may know of the principal."""
        path = thread_path(thread_id, "/grants")
        return Listing(
            lambda after: self._http.get(path, GrantPage, after=after, limit=limit), lambda page: page.grants
        )

    def my_grants(self, *, limit: int | None = None) -> Listing[GrantPage, Grant]:
        """The caller's grants by thread."""
        return Listing(
            lambda after: self._http.get("/v1/grants", GrantPage, after=after, limit=limit), lambda page: page.grants
        )

    async def put_grant(self, thread_id: str, principal_id: str, role: str) -> Grant:
        """Gives or changes a grant. `Conflict` for the last owner."""
        return await self._http.put(_grant_path(thread_id, principal_id), Grant, json_body(role=role))

    async def remove_grant(self, thread_id: str, principal_id: str) -> None:
        """Takes a grant away; one's own to leave. `Conflict` for the last owner."""
        await self._http.delete(_grant_path(thread_id, principal_id))

    def list_runs(
        self,
        thread_id: str,
        *,
        state: RunStateName | None = None,
        principal_id: str | None = None,
        limit: int | None = None,
    ) -> Listing[RunPage, Run]:
        """A thread's runs by first seq: how a restarted producer finds what it left open."""
        path = thread_path(thread_id, "/runs")
        return Listing(
            lambda after: self._http.get(
                path, RunPage, after=after, limit=limit, state=state, principalId=principal_id
            ),
            lambda page: page.runs,
        )

    async def get_cursor(self, thread_id: str) -> int:
        """The caller's consumer cursor on the thread; 0 where it was never set."""
        return (await self._http.get(thread_path(thread_id, "/cursor"), CursorAnswer)).seq

    async def advance_cursor(self, thread_id: str, seq: int) -> int:
        """Moves the cursor forward to `seq` and tells where it is; a smaller `seq` changes nothing. `InvalidRequest` beyond the head."""
        body = json_body(seq=check_seq(seq, path="seq"))
        return (await self._http.put(thread_path(thread_id, "/cursor"), CursorAnswer, body)).seq


def _grant_path(thread_id: str, principal_id: str) -> str:
    return thread_path(thread_id, f"/grants/{check_name(principal_id, path='principalId')}")
