"""Threads to measure on, made over the API."""

from __future__ import annotations

import json
from contextlib import closing
from http.client import HTTPConnection
from itertools import repeat
from typing import Final

from bench.load.events import VerificationError, part_event, run_started
from bench.servers.process import Server

__all__ = ["FIRST", "append_url", "batch_body", "new_thread", "require_head"]

#: The seq of the first event that is measured: before it are the creator's `participant_joined` and `run_started`.
FIRST: Final = 3

_BATCH: Final = 1_000
_SECONDS: Final = 60.0
_SMALL: Final = 64 * 1024  # a batch's answer repeats its events; nobody asks for it here


def append_url(thread_id: str, *, batch: bool = False) -> str:
    """Where events are appended."""
    return f"/v1/threads/{thread_id}/events" + (":batch" if batch else "")


def batch_body(events: int) -> bytes:
    """The body of a batch append."""
    return b'{"events":[%b]}' % b",".join(repeat(part_event(), events))


def new_thread(server: Server, *, events: int = 0) -> str:
    """A thread with a run that has begun, and so many events after that."""
    with _connection(server) as connection:
        thread_id = str(_ask(server, connection, "POST", "/v1/threads", b"{}")["threadId"])
        _ask(server, connection, "POST", append_url(thread_id), run_started())
        _fill(server, connection, thread_id, events)
    require_head(server, thread_id, FIRST - 1 + events)
    return thread_id


def require_head(server: Server, thread_id: str, head: int) -> None:
    """Raises `VerificationError` unless the thread's last seq is `head`: what was counted is what was stored."""
    with _connection(server) as connection:
        stored = _ask(server, connection, "GET", f"/v1/threads/{thread_id}", b"")["headSeq"]
    if stored != head:
        raise VerificationError(f"A thread has {stored} events where {head} were counted.")


def _connection(server: Server) -> closing[HTTPConnection]:
    return closing(HTTPConnection(server.host, server.port, timeout=_SECONDS))


def _fill(server: Server, connection: HTTPConnection, thread_id: str, events: int) -> None:
    url = append_url(thread_id, batch=True)
    whole, rest = divmod(events, _BATCH)
    for body in (*repeat(batch_body(_BATCH), whole), *repeat(batch_body(rest), min(1, rest))):
        _ask(server, connection, "POST", url, body)


def _ask(server: Server, connection: HTTPConnection, method: str, path: str, body: bytes) -> dict[str, object]:
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    connection.request(method, path, body or None, headers)
    answer = connection.getresponse()
    content = answer.read()
    if answer.status not in (200, 201):
        raise VerificationError(f"{method} {path} was answered with {answer.status}: {content[:200]!r}.")
    return json.loads(content) if len(content) < _SMALL else {}
