"""Threads: create, list, read, change, delete."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from bubble.auth.policy import IdentityGuard
from bubble.protocol.errors import InvalidRequest
from bubble.protocol.identifiers import check_name, new_id
from bubble.protocol.resources import JoinPolicy, Metadata, Thread, ThreadPage
from bubble.server.calls import Call
from bubble.server.operations import Operations
from bubble.server.routes.shapes import (
    Body,
    Name,
    PageQuery,
    Title,
    check_metadata,
    page_limit,
    refuse_reserved,
)
from bubble.store.records import NewThread, Participant, ThreadChanges

__all__ = ["OPERATIONS", "participant"]

OPERATIONS = Operations()

_PARTICIPANTS = 1_000
_LOOKS = 20


class NewParticipant(Body, frozen=True, kw_only=True):
    """A principal to let in at creation."""

    principal_id: Name
    role: Annotated[str, Meta(min_length=1, max_length=64)] = "participant"


class CreateThread(Body, frozen=True, kw_only=True):
    """A thread to create. Without `threadId` it gets a random one; choosing one needs `threads.name`."""

    thread_id: Name | UnsetType = UNSET
    title: Title | UnsetType = UNSET
    join_policy: JoinPolicy = "invite"
    metadata: Metadata | UnsetType = UNSET
    participants: Annotated[tuple[NewParticipant, ...], Meta(max_length=_PARTICIPANTS)] = ()


class ListThreads(PageQuery, frozen=True, kw_only=True):
    """`q` keeps the threads that have it in their title or id."""

    q: Annotated[str, Meta(max_length=512)] | None = None


class UpdateThread(Body, frozen=True, kw_only=True):
    """What to change; null clears title or metadata."""

    title: Title | UnsetType | None = UNSET
    join_policy: JoinPolicy | UnsetType = UNSET
    metadata: Metadata | UnsetType | None = UNSET


@OPERATIONS.add(
    "POST",
    "/v1/threads",
    summary="Create a thread",
    tag="Threads",
    status=201,
    errors=("forbidden", "not_found", "conflict"),
)
async def create_thread(call: Call, body: CreateThread) -> Thread:
    """The caller becomes its owner; each participant joins, in order. A title at creation writes no event."""
    policy = call.services.policy
    participants = [participant(call, item, index) for index, item in enumerate(body.participants)]
    if body.metadata is not UNSET:
        check_metadata(body.metadata)
    if body.thread_id is not UNSET:
        check_name(body.thread_id, path="$.threadId")
        refuse_reserved(body.thread_id, path="$.threadId")
    policy.require_deployment(call.identity, "threads.create")
    if body.thread_id is not UNSET:
        policy.require_deployment(call.identity, "threads.name")
    return await call.services.store.create_thread(
        NewThread(
            thread_id=new_id() if body.thread_id is UNSET else body.thread_id,
            creator=call.principal_id,
            title=None if body.title is UNSET else body.title,
            join_policy=body.join_policy,
            metadata=None if body.metadata is UNSET else body.metadata,
            participants=participants,
        )
    )


def participant(call: Call, item: NewParticipant, index: int) -> Participant:
    """The same as the store takes it; `InvalidRequest` for a role that does not exist."""
    path = f"$.participants[{index}]"
    check_name(item.principal_id, path=f"{path}.principalId")
    refuse_reserved(item.principal_id, path=f"{path}.principalId")
    policy = call.services.policy
    if item.role not in policy.roles:
        raise InvalidRequest(f"`{path}.role` must be one of {', '.join(sorted(policy.roles))}.")
    return Participant(principal_id=item.principal_id, role=item.role, appends=policy.role_appends(item.role))


@OPERATIONS.add("GET", "/v1/threads", summary="List threads", tag="Threads")
async def list_threads(call: Call, query: ListThreads) -> ThreadPage:
    """Those that the caller can see, latest activity first. A page may be short, even empty: go on while `nextAfter` is not null."""
    guard = call.guard
    principal_id = None if call.identity.principal.deployment_role == "admin" else call.principal_id
    limit = page_limit(query.limit, call.services.limits)
    after, threads = query.after, list[Thread]()
    for _ in range(_LOOKS):
        page = await call.services.store.list_threads(
            principal_id=principal_id, viewer=call.principal_id, after=after, limit=limit, query=query.q or None
        )
        threads = [thread for thread in page.threads if _is_visible(guard, thread)]
        after = page.next_after
        if threads or after is None:
            break
    return ThreadPage(threads=threads, next_after=after)


def _is_visible(guard: IdentityGuard, thread: Thread) -> bool:
    role = None if thread.role is UNSET else thread.role
    return guard.has("thread.read", thread_id=thread.thread_id, role=role)


@OPERATIONS.add("GET", "/v1/threads/{threadId}", summary="Read a thread", tag="Threads", errors=("not_found",))
async def get_thread(call: Call, thread_id: str) -> Thread:
    """The thread with the seq of its last event, and the caller's own role on it."""
    thread = await call.services.store.get_thread(thread_id, principal_id=call.principal_id)
    role = None if thread.role is UNSET else thread.role
    call.guard.require("thread.read", thread_id=thread_id, role=role, join_policy=thread.join_policy)
    return thread


@OPERATIONS.add(
    "PATCH",
    "/v1/threads/{threadId}",
    summary="Change a thread",
    tag="Threads",
    errors=("forbidden", "not_found"),
)
async def update_thread(call: Call, thread_id: str, body: UpdateThread) -> Thread:
    """Another title is written into the log as `thread_title_updated`. Needs `thread.update`."""
    if isinstance(body.metadata, dict):
        check_metadata(body.metadata)
    changes = ThreadChanges(title=body.title, join_policy=body.join_policy, metadata=body.metadata)
    return await call.services.store.update_thread(thread_id, changes, by=call.principal_id, guard=call.guard)


@OPERATIONS.add(
    "DELETE",
    "/v1/threads/{threadId}",
    summary="Delete a thread for good",
    tag="Threads",
    errors=("forbidden", "not_found"),
)
async def delete_thread(call: Call, thread_id: str) -> None:
    """Its events are gone, its subscriptions are closed, its id is never given again. Needs `thread.delete`."""
    await call.services.store.delete_thread(thread_id, guard=call.guard)
