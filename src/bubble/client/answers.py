"""Answers of the server that are no resources of their own."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from bubble.protocol.limits import Limits

__all__ = ["CursorAnswer", "Extension", "ProtocolInfo", "Ticket"]


class _Answer(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    pass


class Extension(_Answer, frozen=True, kw_only=True):
    """An extension that the server runs."""

    name: str
    version: int


class ProtocolInfo(_Answer, frozen=True, kw_only=True):
    """`GET /v1/protocol`: what the server speaks, and where its limits are."""

    protocol_version: int
    server_version: str | UnsetType = UNSET
    limits: Limits
    extensions: list[Extension]


class Ticket(_Answer, frozen=True, kw_only=True):
    """Opens one WebSocket as `/v1/ws?ticket=…`; the time is RFC 3339."""

    ticket: str
    expires_at: str | UnsetType = UNSET


class CursorAnswer(_Answer, frozen=True, kw_only=True):
    """Where the caller's consumer cursor stands; 0 where it was never set."""

    seq: int
