"""`/asyncapi.json`: AsyncAPI 3, made from the frames, so that it describes exactly what the WebSocket carries."""

from __future__ import annotations

import typing
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

import msgspec

from bubble.protocol.frames import ClientFrame, ServerFrame
from bubble.protocol.version import VERSION
from bubble.server.schemas import Schemas, event_components, reference, struct_components

__all__ = ["asyncapi_document"]

_CHANNEL: Final = "socket"


@lru_cache(maxsize=8)
def asyncapi_document(*, url: str) -> dict[str, object]:
    """The document for a server that is reached at `url`."""
    sent = _frames(ClientFrame)
    received = _frames(ServerFrame)
    parts = urlsplit(url)
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Bubble over WebSocket",
            "version": VERSION,
            "description": "Follow threads and append to them. Text frames of JSON; one connection carries any number of threads.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": {
            "this": {
                "host": parts.netloc,
                "pathname": parts.path or "/",
                "protocol": "wss" if parts.scheme == "https" else "ws",
                "security": [{"$ref": "#/components/securitySchemes/bearer"}],
            }
        },
        "channels": {
            _CHANNEL: {
                "address": "/v1/ws",
                "description": "A browser, which cannot set a header, comes with `?ticket=` or with its session cookie.",
                "messages": {kind.__name__: _message_reference(kind) for kind in (*sent, *received)},
                "bindings": {"ws": {"method": "GET", "query": _TICKET}},
            }
        },
        "operations": {
            # The document speaks as the server: it receives what clients send.
            "receiveFrames": _operation("receive", sent),
            "sendFrames": _operation("send", received),
        },
        "components": {
            "messages": {kind.__name__: _message(kind) for kind in (*sent, *received)},
            "schemas": _schemas((*sent, *received)),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


_TICKET: Final[Schemas] = {
    "type": "object",
    "properties": {"ticket": {"type": "string", "description": "from POST /v1/ws/tickets, good once"}},
}


def _frames(union: object) -> tuple[type[msgspec.Struct], ...]:
    return typing.get_args(union)


def _schemas(kinds: tuple[type[msgspec.Struct], ...]) -> Schemas:
    components = struct_components(kinds)
    for name, event in (("ThreadAppend", "AppendableEvent"), ("ThreadEvent", "StoredEvent")):
        schema = typing.cast("dict[str, typing.Any]", components[name])
        schema["properties"]["event"] = reference(event)
    return {**components, **event_components()}


def _message(kind: type[msgspec.Struct]) -> Schemas:
    return {
        "name": str(kind.__struct_config__.tag),
        "title": kind.__name__,
        "summary": (kind.__doc__ or "").partition("\n")[0],
        "payload": reference(kind.__name__),
    }


def _message_reference(kind: type[msgspec.Struct]) -> Schemas:
    return {"$ref": f"#/components/messages/{kind.__name__}"}


def _operation(action: str, kinds: tuple[type[msgspec.Struct], ...]) -> Schemas:
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{_CHANNEL}"},
        "messages": [{"$ref": f"#/channels/{_CHANNEL}/messages/{kind.__name__}"} for kind in kinds],
    }
