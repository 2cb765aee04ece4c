"""Grants: who takes part in a thread, in which role (protocol, section 5)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from bubble.protocol.errors import InvalidRequest
from bubble.protocol.resources import Grant, GrantPage
from bubble.server.access import require_on_thread
from bubble.server.answers import Answer
from bubble.server.calls import Call
from bubble.server.operations import Operations
from bubble.server.routes.shapes import Body, PageQuery, page_limit, refuse_reserved

__all__ = ["OPERATIONS"]

OPERATIONS = Operations()


class PutGrant(Body, frozen=True, kw_only=True):
    """The role to give: `observer`, `participant`, `owner`, or one that this deployment declares."""

    role: Annotated[str, Meta(min_length=1, max_length=64)]


@OPERATIONS.add(
    "GET", "/v1/threads/{threadId}/grants", summary="List a thread's grants", tag="Grants", errors=("not_found",)
)
async def list_grants(call: Call, thread_id: str, query: PageQuery) -> GrantPage:
    """By principal, each with what others may know of the principal. Needs `thread.read`."""
    await require_on_thread(call.services.store, call.guard, thread_id, "thread.read")
    limit = page_limit(query.limit, call.services.limits)
    return await call.services.store.list_grants(thread_id, after=query.after, limit=limit)


@OPERATIONS.add(
    "PUT",
    "/v1/threads/{threadId}/grants/{principalId}",
    summary="Give or change a grant",
    tag="Grants",
    statuses=(201,),
    errors=("forbidden", "not_found", "conflict"),
)
async def put_grant(call: Call, thread_id: str, principal_id: str, body: PutGrant) -> Answer[Grant]:
    """201 if it is new, 200 otherwise. Needs `grants.manage`, or, on an open thread, to be for oneself and no more than `participant`."""
    policy = call.services.policy
    refuse_reserved(principal_id, path="principalId")
    if body.role not in policy.roles:
        raise InvalidRequest(f"`$.role` must be one of {', '.join(sorted(policy.roles))}.")
    grant, is_new = await call.services.store.put_grant(
        thread_id,
        principal_id,
        body.role,
        by=call.principal_id,
        appends=policy.role_appends(body.role),
        guard=call.guard,
    )
    return Answer(content=grant, status=201 if is_new else 200)


@OPERATIONS.add(
    "DELETE",
    "/v1/threads/{threadId}/grants/{principalId}",
    summary="Take a grant away",
    tag="Grants",
    errors=("forbidden", "not_found", "conflict"),
)
async def remove_grant(call: Call, thread_id: str, principal_id: str) -> None:
    """One's own needs `grants.leave`, another's `grants.manage`. The last owner stays."""
    await call.services.store.remove_grant(thread_id, principal_id, by=call.principal_id, guard=call.guard)


@OPERATIONS.add("GET", "/v1/grants", summary="List one's own grants", tag="Grants")
async def list_own_grants(call: Call, query: PageQuery) -> GrantPage:
    """By thread: how a bot learns where it takes part."""
    limit = page_limit(query.limit, call.services.limits)
    page = await call.services.store.list_grants_of(call.principal_id, after=query.after, limit=limit)
    threads = call.identity.threads
    if threads is None:
        return page
    return GrantPage(grants=[grant for grant in page.grants if grant.thread_id in threads], next_after=page.next_after)
