"""WebSocket frames: what a client may send, and the bytes of what the server sends (spec 2; design additions on the same socket)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from bubble.protocol.errors import BubbleErrorCode
from bubble.protocol.identifiers import MAX_SEQ, NAME_PATTERN
from bubble.protocol.jsontext import JSONValue, dump_json
from bubble.protocol.resources import Grant

__all__ = [
    "AuthRefresh",
    "ClientFrame",
    "ErrorFrame",
    "GrantsChanged",
    "GrantsSnapshot",
    "GrantsSubscribe",
    "GrantsUnsubscribe",
    "ServerFrame",
    "SubscriptionClosed",
    "SubscriptionOpened",
    "ThreadAppend",
    "ThreadEvent",
    "ThreadSubscribe",
    "ThreadUnsubscribe",
    "encode_frame",
    "thread_event_prefix",
]

ThreadId: TypeAlias = Annotated[
    str, Meta(extra_json_schema={"pattern": NAME_PATTERN, "minLength": 1, "maxLength": 128})
]
Seq: TypeAlias = Annotated[int, Meta(ge=1, le=MAX_SEQ)]


class _Frame(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="type",
    rename="camel",
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    pass


class ThreadSubscribe(_Frame, frozen=True, kw_only=True, tag="thread.subscribe"):
    """Follow a thread from `from_seq` on (inclusive; beyond the head means live only)."""

    thread_id: ThreadId
    from_seq: Seq = 1


class ThreadUnsubscribe(_Frame, frozen=True, kw_only=True, tag="thread.unsubscribe"):
    """Stop following; silent, also where nothing was followed."""

    thread_id: ThreadId


class ThreadAppend(_Frame, frozen=True, kw_only=True, tag="thread.append"):
    """Append one event without an answer; `ref` is echoed by an error about it."""

    thread_id: ThreadId
    event: Raw
    idempotency_key: Annotated[str, Meta(min_length=1, max_length=128)] | UnsetType = UNSET
    ref: Annotated[str, Meta(max_length=64)] | UnsetType = UNSET


class GrantsSubscribe(_Frame, frozen=True, kw_only=True, tag="grants.subscribe"):
    """Follow the caller's own grants: one snapshot, then each change."""


class GrantsUnsubscribe(_Frame, frozen=True, kw_only=True, tag="grants.unsubscribe"):
    """Stop following one's grants; silent."""


class AuthRefresh(_Frame, frozen=True, kw_only=True, tag="auth.refresh"):
    """Another bearer of the same principal for this socket."""

    token: str

    def __repr__(self) -> str:
        return "AuthRefresh(token=...)"  # what is printed ends up in logs


ClientFrame: TypeAlias = (
    ThreadSubscribe | ThreadUnsubscribe | ThreadAppend | GrantsSubscribe | GrantsUnsubscribe | AuthRefresh
)


class _ServerFrame(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", rename="camel", omit_defaults=True):
    pass


class SubscriptionOpened(_ServerFrame, frozen=True, kw_only=True, tag="thread.subscription_opened"):
    """Registered; `through_seq` is the head at that moment: events up to it are backlog, later ones live."""

    thread_id: str
    through_seq: int


class ThreadEvent(_ServerFrame, frozen=True, kw_only=True, tag="thread.event"):
    """One stored event of a followed thread."""

    thread_id: str
    event: Raw


class SubscriptionClosed(_ServerFrame, frozen=True, kw_only=True, tag="thread.subscription_closed"):
    """The server ended the subscription; no event of it follows."""

    thread_id: str
    reason: BubbleErrorCode


class ErrorFrame(_ServerFrame, frozen=True, kw_only=True, tag="error"):
    """Something failed: about a thread where `thread_id` is given, else about the connection. It ends nothing by itself."""

    code: BubbleErrorCode
    message: str
    thread_id: str | UnsetType = UNSET
    ref: str | UnsetType = UNSET
    details: Mapping[str, JSONValue] | UnsetType = UNSET


class GrantsSnapshot(_ServerFrame, frozen=True, kw_only=True, tag="grants.snapshot"):
    """All grants that the caller holds now."""

    grants: list[Grant]


class GrantsChanged(_ServerFrame, frozen=True, kw_only=True, tag="grants.changed"):
    """One of the caller's grants is new, has another role, or is gone (then `grant` is the last one)."""

    change: str
    grant: Grant


ServerFrame: TypeAlias = (
    SubscriptionOpened | ThreadEvent | SubscriptionClosed | ErrorFrame | GrantsSnapshot | GrantsChanged
)

_encoder = msgspec.json.Encoder()


def encode_frame(frame: ServerFrame | ClientFrame) -> bytes:
    """The frame's JSON text."""
    try:
        return _encoder.encode(frame)
    except UnicodeEncodeError:  # a lone surrogate in an error's details
        return dump_json(msgspec.to_builtins(frame))


def thread_event_prefix(thread_id: str) -> bytes:
    """What stands before the stored event's text in a `thread.event` frame; a single `}` stands after it."""
    return b'{"type":"thread.event","threadId":"%s","event":' % thread_id.encode("ascii")
