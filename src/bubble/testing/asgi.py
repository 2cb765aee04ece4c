"""An application without a network: httpx2 requests whose answers stream, and WebSockets for `BubbleConnection`.

*Theory of operation.* Each request runs the application in a task of its own. What the application sends goes through a small bounded
buffer, so a reader that does not read holds it up, as a full socket would. Closing the answer early is a disconnect: the application's
`receive` says so, and what it sends afterwards goes nowhere. An application that does not end within `grace` seconds of that is
cancelled, so no test is held up by it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, MutableMapping

import anyio
import httpx2
from starlette.types import ASGIApp, Message

__all__ = ["StreamingASGITransport"]

_BUFFERED_MESSAGES = 16


class StreamingASGITransport(httpx2.AsyncBaseTransport):
    """For `httpx2.AsyncClient(transport=...)`. Unlike httpx2's own, an answer's body arrives while the application still sends it.

    `root_path` is where the application is mounted; `client` is the address it sees. An exception of the application is raised to
    whoever waits for the answer, or becomes a 500 with `raise_app_exceptions=False`. Start the application yourself (`lifespan_of`).
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        root_path: str = "",
        client: tuple[str, int] = ("127.0.0.1", 50_000),
        state: Mapping[str, object] | None = None,
        raise_app_exceptions: bool = True,
        grace: float = 5.0,
    ) -> None:
        self._app = app
        self._root_path = root_path
        self._client = client
        self._state = dict(state or {})
        self._raises = raise_app_exceptions
        self._grace = grace
        self._exchanges: set[_Exchange] = set()

    @property
    def open_exchanges(self) -> int:
        """How many requests the application is still working on."""
        return sum(not exchange.task.done() for exchange in self._exchanges)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The answer as soon as its headers are there."""
        exchange = _Exchange(self._app, self._scope(request), request, raises=self._raises, grace=self._grace)
        self._exchanges.add(exchange)
        exchange.task.add_done_callback(lambda _: self._ended(exchange))
        return await exchange.response()

    def _ended(self, exchange: _Exchange) -> None:
        self._exchanges.discard(exchange)
        exchange.ended()

    async def aclose(self) -> None:
        """Ends what is still open."""
        await asyncio.gather(*(exchange.end() for exchange in list(self._exchanges)))

    def _scope(self, request: httpx2.Request) -> MutableMapping[str, object]:
        raw_path, _, query = request.url.raw_path.partition(b"?")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": request.method,
            "headers": [(name.lower(), value) for name, value in request.headers.raw],
            "scheme": request.url.scheme,
            "path": self._root_path + request.url.path,
            "raw_path": self._root_path.encode() + raw_path,
            "query_string": query,
            "server": (request.url.host, request.url.port),
            "client": self._client,
            "root_path": self._root_path,
            "state": dict(self._state),
        }


class _Exchange:
    """One request and its answer."""

    def __init__(
        self,
        app: ASGIApp,
        scope: MutableMapping[str, object],
        request: httpx2.Request,
        *,
        raises: bool,
        grace: float,
    ) -> None:
        self._request = request
        self._raises = raises
        self._grace = grace
        self._timeout: float | None = request.extensions.get("timeout", {}).get("read")
        self._upload = _upload_of(request)
        self._is_uploaded = False
        self._gone = asyncio.Event()
        self._writer, self._reader = anyio.create_memory_object_stream[Message](_BUFFERED_MESSAGES)
        self._is_complete = False
        self.task = asyncio.create_task(self._run(app, scope))

    async def _run(self, app: ASGIApp, scope: MutableMapping[str, object]) -> None:
        await app(scope, self._receive, self._send)

    def ended(self) -> None:
        """The application is done with it."""
        self._writer.close()
        if not self.task.cancelled():
            self.task.exception()  # raised to the reader, if there is one

    async def _receive(self) -> Message:
        if self._is_uploaded or self._gone.is_set():
            await self._gone.wait()
            return {"type": "http.disconnect"}
        try:
            return {"type": "http.request", "body": await anext(self._upload), "more_body": True}
        except StopAsyncIteration:
            self._is_uploaded = True
            return {"type": "http.request", "body": b"", "more_body": False}

    async def _send(self, message: Message) -> None:
        try:
            await self._writer.send(message)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # the client is gone: what is sent goes nowhere, as on a server

    async def response(self) -> httpx2.Response:
        try:
            message = await self._next()
        except BaseException:
            await self.end()
            raise
        if message is None:
            await self.end()
            self._raise_failure()
            return httpx2.Response(500, request=self._request)
        if message["type"] != "http.response.start":
            raise RuntimeError(f"The application began its answer with {message['type']}.")
        return httpx2.Response(message["status"], headers=message.get("headers", []), stream=_Body(self))

    async def body(self) -> AsyncIterator[bytes]:
        while not self._is_complete:
            message = await self._next()
            if message is None:
                self._raise_failure()
                raise httpx2.RemoteProtocolError("The application ended in the middle of its answer.")
            self._is_complete = not message.get("more_body", False)
            if message.get("body") and self._request.method != "HEAD":
                yield message["body"]
        if self._raises:  # what a server would only log
            await asyncio.wait({self.task}, timeout=self._grace)
            self._raise_late_failure()

    async def _next(self) -> Message | None:
        try:
            async with asyncio.timeout(self._timeout):
                return await self._reader.receive()
        except TimeoutError:
            raise httpx2.ReadTimeout(f"Nothing came for {self._timeout} s.", request=self._request) from None
        except anyio.EndOfStream:
            await asyncio.wait({self.task})
            return None

    def _raise_failure(self) -> None:
        failure = None if self.task.cancelled() else self.task.exception()
        if failure is not None and self._raises:
            raise failure
        if failure is None and self._raises:
            raise RuntimeError("The application ended without an answer.")

    def _raise_late_failure(self) -> None:
        if self.task.done() and not self.task.cancelled() and (failure := self.task.exception()) is not None:
            raise failure

    async def end(self) -> None:
        """The client is gone, or has read everything."""
        with anyio.CancelScope(shield=True):
            self._gone.set()
            self._reader.close()
            done, _ = await asyncio.wait({self.task}, timeout=self._grace)
            if not done:
                self.task.cancel()
                await asyncio.wait({self.task})


class _Body(httpx2.AsyncByteStream):
    def __init__(self, exchange: _Exchange) -> None:
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._exchange.body():
            yield chunk

    async def aclose(self) -> None:
        await self._exchange.end()


def _upload_of(request: httpx2.Request) -> AsyncIterator[bytes]:
    if not isinstance(request.stream, httpx2.AsyncByteStream):
        raise TypeError("Only asynchronous requests can be made of an application.")
    return request.stream.__aiter__()
