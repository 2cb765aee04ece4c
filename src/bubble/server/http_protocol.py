"""uvicorn's HTTP protocol, with two guards that it leaves to a proxy: how long headers may take, and how long they may be.

A connection whose request line and headers do not arrive in time, or do not end, is answered and closed; so nobody holds memory or a place
by sending one byte a minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from bubble.protocol.errors import InvalidRequest
from bubble.server.answers import Header, error_body
from bubble.server.envelope import standing_headers

__all__ = ["BubbleHttpProtocol", "refusal"]

HEADER_SECONDS: Final = 20.0
HEADER_BYTES: Final = 64 * 1024


class BubbleHttpProtocol(HttpToolsProtocol):
    """One HTTP connection."""

    _timer: asyncio.TimerHandle | None = None
    _in_headers = False
    _header_bytes = 0

    # asyncio hands every stream protocol a `Transport`, while the base class is typed for `BaseTransport`.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._in_headers:
            return
        # Nearly every request comes whole and never gets here.
        self._header_bytes += len(data)
        if self._header_bytes > HEADER_BYTES:
            self._refuse(431, f"The headers have more than {HEADER_BYTES} bytes.")
        elif self._timer is None:
            self._arm()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_headers = True
        self._header_bytes = 0

    def on_headers_complete(self) -> None:
        self.headers_ended()
        super().on_headers_complete()

    def headers_ended(self) -> None:
        """The headers came in time."""
        self._in_headers = False
        self._disarm()

    def handle_websocket_upgrade(self) -> None:
        super().handle_websocket_upgrade()
        # The socket lives on without this object; without these it goes at once, and does not wait for the garbage collector.
        del self.scope, self.headers
        # Declared as always there, which it need not be any more: nothing is parsed after the upgrade.
        self.parser = None  # type: ignore[assignment]

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, msg)

    def _arm(self) -> None:
        self._timer = self.loop.call_later(HEADER_SECONDS, self._too_slow)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._timer = None
        if self._in_headers:
            self._refuse(408, f"The headers did not arrive within {HEADER_SECONDS:g} s.")
        elif not self.transport.is_closing():  # nothing came at all
            self.transport.close()

    def _refuse(self, status: int, message: str) -> None:
        if self.transport.is_closing():
            return
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and _is_owed(cycle):
            # The client would take it for the answer to that earlier request: that one is answered, and the connection ends.
            cycle.keep_alive = False
            self.flow.pause_reading()
            return
        if not self.pipeline:  # else half a request behind others, of which nobody can say here when they are answered
            self.transport.write(refusal(status, message, self.server_state.default_headers))
        self.transport.close()


def _is_owed(cycle: RequestResponseCycle) -> bool:
    """Whether a request came whole and is not answered yet. Those of the short way, which have no `more_body`, always came whole."""
    return not cycle.response_complete and not getattr(cycle, "more_body", False)


def refusal(status: int, message: str, standing: Sequence[Header] = ()) -> bytes:
    """The whole answer to what was no request, after which the connection is closed."""
    body = error_body(InvalidRequest(message))
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
        *standing,
        *standing_headers(),
    ]
    lines = b"".join(b"%b: %b\r\n" % header for header in headers)
    return b"%b%b\r\n%b" % (STATUS_LINE[status], lines, body)
