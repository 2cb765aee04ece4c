"""Frames from a remote service: a server stream of the Connect protocol, with the JSON codec.

What the service is called and what it wants to be asked is the caller's. The stream is over when its end-of-stream envelope has come, and
only then: one that just stops was cut off. It is asked for without compression, so a compressed envelope is against the rules.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Final, TypeAlias

import httpx2

from bubble.protocol.jsontext import JSONValue, dump_json
from bubble.watch.cursor import WatchCursor
from bubble.watch.envelopes import COMPRESSED, END_OF_STREAM, Envelope, EnvelopeDecoder, envelope
from bubble.watch.errors import WatchError, WatchErrorCode, upstream_code
from bubble.watch.frame_json import parse_frame
from bubble.watch.sources import Frame
from bubble.watch.wire import parse_json

__all__ = ["AskFor", "ConnectSource"]

#: The request for a bot, a session and the cursor to go on from: any JSON object that the service understands.
AskFor: TypeAlias = Callable[[str, str, WatchCursor | None], Mapping[str, JSONValue]]

_HEADERS: Final = {
    "content-type": "application/connect+json",
    "connect-protocol-version": "1",
    "accept-encoding": "identity",
}
_EMPTY: Final[Frame] = {}
_CONNECT_SECONDS: Final = 10.0
_MAX_FRAME: Final = 16 * 1024 * 1024
_MAX_PORT: Final = 65_535
_MAX_REFUSAL: Final = 64 * 1024

# What is wrong with the request itself, whoever it is for.
_CANNOT_BE_SENT: Final = (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError, httpx2.InvalidURL)

# What an HTTP status means where the body does not say (the Connect protocol, "HTTP to Error Code").
_BY_STATUS: Final[Mapping[int, WatchErrorCode]] = {
    400: "internal",
    401: "unauthenticated",
    403: "permission_denied",
    404: "unimplemented",
    429: "unavailable",
    502: "unavailable",
    503: "unavailable",
    504: "unavailable",
}


class ConnectSource:
    """Streams from the procedure at `url`. `ask_for` makes the request's message, `headers` go with it (a bearer, for instance).

    `client`, where given, is used and stays the caller's; otherwise each stream has one of its own.
    """

    def __init__(
        self,
        url: str,
        *,
        ask_for: AskFor,
        headers: Mapping[str, str] | None = None,
        client: httpx2.AsyncClient | None = None,
        max_frame_bytes: int = _MAX_FRAME,
    ) -> None:
        self._url = url
        self._ask_for = ask_for
        self._headers = {**_HEADERS, **{name.lower(): value for name, value in (headers or {}).items()}}
        self._client = client
        self._max_frame_bytes = max_frame_bytes

    async def frames(self, *, bot_id: str, session_id: str, cursor: WatchCursor | None) -> AsyncGenerator[Frame, None]:
        """One stream of the service. What says nothing that is known here is an empty frame: a sign of life all the same."""
        asked = self._ask_for(bot_id, session_id, cursor)
        try:
            message = dump_json(dict(asked))
        except (TypeError, ValueError) as error:
            raise WatchError("invalid_argument", f"What {self._url} is asked is no JSON object: {error}.") from error
        async with AsyncExitStack() as stack:
            client = self._client
            if client is None:
                client = await stack.enter_async_context(httpx2.AsyncClient())
            response = await self._open(stack, client, envelope(message))
            async for each in self._envelopes(response):
                if each.flags & END_OF_STREAM:
                    _check_end(each.data)
                    return
                yield parse_frame(each.data) or _EMPTY
        raise WatchError("stream_truncated", f"{self._url} stopped in the middle of the stream.")

    async def _open(self, stack: AsyncExitStack, client: httpx2.AsyncClient, body: bytes) -> httpx2.Response:
        # Silence is for whoever watches to judge, who knows how much of it is normal.
        timeout = httpx2.Timeout(_CONNECT_SECONDS, read=None)
        try:
            request = client.build_request("POST", self._url, content=body, headers=self._headers, timeout=timeout)
        except (httpx2.InvalidURL, TypeError, ValueError) as error:
            # A header in other letters than ASCII, for instance.
            raise WatchError("invalid_argument", f"{self._url} cannot be asked: {_name_of(error)}.") from error
        if (request.url.port or 0) > _MAX_PORT:
            raise WatchError("invalid_argument", f"{self._url} cannot be asked: there is no such port.")
        try:
            response = await client.send(request, stream=True)
            stack.push_async_callback(response.aclose)
        except _CANNOT_BE_SENT as error:
            raise WatchError("invalid_argument", f"{self._url} cannot be asked: {_name_of(error)}.") from error
        except httpx2.RequestError as error:
            raise WatchError("unavailable", f"{self._url} cannot be reached: {_name_of(error)}.") from error
        if response.status_code != httpx2.codes.OK:
            raise await _refusal(response, self._url)
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != _HEADERS["content-type"]:
            raise WatchError("protocol_error", f"{self._url} answered with {kind or 'nothing'}, and not with a stream.")
        return response

    async def _envelopes(self, response: httpx2.Response) -> AsyncIterator[Envelope]:
        decoder = EnvelopeDecoder(max_bytes=self._max_frame_bytes)
        try:
            async for chunk in response.aiter_raw():
                for each in decoder.feed(chunk):
                    if each.flags & ~END_OF_STREAM:
                        what = "is compressed" if each.flags & COMPRESSED else "has unknown flags"
                        raise WatchError("protocol_error", f"A frame of {self._url} {what}.")
                    yield each
        except httpx2.RequestError as error:
            raise WatchError("stream_truncated", f"{self._url} broke off: {_name_of(error)}.") from error


async def _refusal(response: httpx2.Response, url: str) -> WatchError:
    status = response.status_code
    said = await _said(response)
    code = upstream_code(said["code"]) if "code" in said else _BY_STATUS.get(status, "unknown")
    return WatchError(code, f"{url} answered {status}: {said.get('message', '')}")


async def _said(response: httpx2.Response) -> Mapping[str, JSONValue]:
    body = b""
    try:
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > _MAX_REFUSAL:
                return {}
        value = parse_json(body)
    except (httpx2.RequestError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _check_end(data: bytes) -> None:
    """Returns where the end-of-stream message says nothing bad; raises what it says otherwise."""
    try:
        end = parse_json(data)
    except ValueError as error:
        raise WatchError("protocol_error", f"The end of the stream is no JSON: {error}.") from None
    problem = end.get("error") if isinstance(end, dict) else end
    if problem is None and isinstance(end, dict):
        return
    if not isinstance(problem, dict):
        raise WatchError("protocol_error", "The end of the stream is not what an end must be.")
    raise WatchError(upstream_code(problem.get("code")), f"The service ended the stream: {problem.get('message', '')}")


def _name_of(error: Exception) -> str:
    return str(error) or type(error).__name__
