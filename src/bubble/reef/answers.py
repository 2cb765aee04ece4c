"""Reads the agent's answers: streams, single objects, errors."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

import httpx2

from bubble.protocol.jsontext import JSONValue, load_json
from bubble.protocol.sse import SseDecoder, SseOverflow
from bubble.reef.dialects.base import Dialect
from bubble.reef.dialects.reading import error_of
from bubble.reef.discretion import quoted
from bubble.reef.events import AgentEvent
from bubble.reef.failures import AgentFailure, Broken, Busy, Refused
from bubble.reef.jsondata import load

__all__ = ["EVENT_STREAM", "JSON", "events_of", "object_of", "refuse_errors"]

EVENT_STREAM: Final = "text/event-stream"
JSON: Final = "application/json"

#: Of an event, or of an answer that is no stream, in bytes.
_MOST: Final = 64 * 1024 * 1024
_MOST_OF_AN_ERROR: Final = 64 * 1024
_BUSY: Final = frozenset({429, 503})


async def events_of(response: httpx2.Response, dialect: Dialect) -> AsyncGenerator[AgentEvent, None]:
    """The events of an answer to a streaming request, be it a stream or, from some agents, a single object.

    Raises `Refused` for an error, `Busy` for one that passes, and `Broken` for what is neither a stream nor JSON.
    """
    await refuse_errors(response, dialect)
    if _media_type(response) != EVENT_STREAM:
        if (event := dialect.read(await object_of(response))) is not None:
            yield event
        return
    begun = False
    try:
        async for payload in _payloads(response):
            if (event := dialect.read(payload)) is not None:
                begun = True
                yield event
    except Refused as refused:
        refused.begun = begun
        raise


async def _payloads(response: httpx2.Response) -> AsyncIterator[JSONValue]:
    decoder = SseDecoder(max_bytes=_MOST)
    async for chunk in response.aiter_bytes():
        try:
            for event in decoder.decode(chunk):
                if event.data.strip():
                    yield _json(event.data)
        except SseOverflow:
            raise Broken(f"The agent sent an event of more than {_MOST} bytes.") from None


async def object_of(response: httpx2.Response) -> JSONValue:
    """The JSON that an answer is. Raises `Broken` for anything else."""
    text = await _body(response, _MOST)
    if len(text) > _MOST:
        raise Broken(f"The agent's answer has more than {_MOST} bytes.")
    if "json" not in (media_type := _media_type(response)) and not text.lstrip().startswith(b"{"):
        raise Broken(f"The agent answered with {media_type or 'something untyped'} where an event stream was expected.")
    return _json(text)


async def refuse_errors(response: httpx2.Response, dialect: Dialect | None = None) -> None:
    """Raises the failure that an answer with an error status is."""
    status = response.status_code
    if status < 300:
        return
    if status in _BUSY:
        raise Busy(f"The agent is busy (HTTP {status}).", retry_after=_retry_after(response))
    refused = _told(await _body(response, _MOST_OF_AN_ERROR), status, dialect)
    raise refused


def _told(body: bytes, status: int, dialect: Dialect | None) -> AgentFailure:
    if status in {401, 403}:
        return Refused(f"The agent does not let this bot in (HTTP {status}).", status=status)
    try:
        problem = load_json(body)
    except (ValueError, RecursionError):
        problem = None
    if dialect is not None and isinstance(problem, dict) and problem.get("error") is not None:
        return error_of(problem["error"], status=status)
    if dialect is not None and isinstance(problem, dict) and isinstance(problem.get("message"), str):
        return error_of({"code": status, "message": problem["message"]}, status=status)  # 0.3 over HTTP+JSON
    detail = problem.get("detail") if isinstance(problem, dict) else None
    words = f": {quoted(detail)}" if isinstance(detail, str) else "."
    return Refused(f"The agent answered with HTTP {status}{words}", status=status)


async def _body(response: httpx2.Response, most: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.aiter_bytes():
        chunks.append(chunk)
        size += len(chunk)
        if size > most:
            break
    return b"".join(chunks)


def _json(text: str | bytes) -> JSONValue:
    try:
        return load(text)
    except ValueError:
        raise Broken("The agent sent something that is no JSON.") from None
    except RecursionError:
        raise Broken("The agent sent JSON that is nested too deeply to be read.") from None


def _media_type(response: httpx2.Response) -> str:
    return response.headers.get("Content-Type", "").partition(";")[0].strip().lower()


def _retry_after(response: httpx2.Response) -> float | None:
    # A date instead of seconds is allowed, and not worth a clock that may differ.
    value = response.headers.get("Retry-After", "")
    return float(value) if value.isascii() and value.isdecimal() and len(value) < 9 else None
