"""The HTTP connection of `bubble serve`: the general one, with the short way for appends (see `hot`).

A request goes the short way only if it came whole in one read, and nothing else is under way on its connection; then its order among
pipelined requests is the connection's own. In every other case the general protocol takes it up as if nothing had been tried.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar, cast

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from bubble.protocol.errors import BubbleError
from bubble.server.hot import HotAnswer, HotAppends, is_append
from bubble.server.http_protocol import BubbleHttpProtocol
from bubble.store.commands import AppendResult

__all__ = ["HotHttpProtocol", "hot_protocol"]


class _HotCycle:
    """Stands where uvicorn keeps the request under way, so that a pipelined one waits for it."""

    __slots__ = ("answer", "disconnected", "keep_alive", "message_event", "protocol", "response_complete")

    def __init__(self, protocol: HotHttpProtocol, answer: HotAnswer, *, keep_alive: bool) -> None:
        self.protocol = protocol
        self.answer = answer
        self.keep_alive = keep_alive
        self.response_complete = False
        self.disconnected = False
        self.message_event = _NOBODY_WAITS

    def done(self, result: AppendResult) -> None:
        """The store has decided."""
        self.protocol.finish(self, result)


class _NobodyWaits:
    def set(self) -> None:
        """uvicorn wakes the request's task here; the short way has none."""


_NOBODY_WAITS = cast("asyncio.Event", _NobodyWaits())


class HotHttpProtocol(BubbleHttpProtocol):
    """One HTTP connection of a server whose `appends` are known."""

    appends: ClassVar[HotAppends]

    _pieces: list[bytes] | None = None
    _standing: bytes = b""
    _standing_of: object = None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._pieces is not None:
            self._go_the_general_way()

    def on_headers_complete(self) -> None:
        if self._is_hot():
            self.headers_ended()
            self._pieces = []
        else:
            super().on_headers_complete()

    def _is_hot(self) -> bool:
        parser = self.parser
        return (
            parser.get_method() == b"POST"
            and is_append(self.url)
            and not self.expect_100_continue
            and not parser.should_upgrade()
            and parser.get_http_version() == "1.1"
            and (self.cycle is None or self.cycle.response_complete)  # type: ignore[redundant-expr]
        )

    def on_body(self, body: bytes) -> None:
        if self._pieces is None:
            super().on_body(body)
        else:
            self._pieces.append(body)

    def on_message_complete(self) -> None:
        pieces = self._pieces
        if pieces is not None:
            body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            answer = self.appends.prepare(self.url, self.headers, body)
            if answer is not None:
                self._pieces = None
                self._begin(answer)
                return
            self._go_the_general_way()
        super().on_message_complete()

    def _go_the_general_way(self) -> None:
        pieces, self._pieces = self._pieces or [], None
        super().on_headers_complete()
        for piece in pieces:
            super().on_body(piece)

    def _begin(self, answer: HotAnswer) -> None:
        cycle = _HotCycle(self, answer, keep_alive=self.parser.should_keep_alive())
        self.cycle = cast("RequestResponseCycle", cycle)
        answer.command.done = cycle.done
        try:
            self.appends.submit(answer)
        except BubbleError as error:
            cycle.done(error)

    def finish(self, cycle: _HotCycle, result: AppendResult) -> None:
        """Writes the answer, and lets what waits behind it begin."""
        cycle.response_complete = True
        closes = not cycle.keep_alive
        answer = self.appends.answered(cycle.answer, result, standing=self._standing_lines(), closes=closes)
        if cycle.disconnected or self.transport.is_closing():
            return
        self.transport.write(answer)
        if closes:
            self.transport.close()
        self.on_response_complete()

    def _standing_lines(self) -> bytes:
        headers = self.server_state.default_headers  # a new list once a second, when the date changes
        if headers is not self._standing_of:
            self._standing_of = headers
            self._standing = b"".join(b"%b: %b\r\n" % header for header in headers)
        return self._standing


def hot_protocol(appends: HotAppends) -> type[HotHttpProtocol]:
    """The protocol class for a server with these `appends`; uvicorn makes one instance per connection."""
    return type("ServedHttpProtocol", (HotHttpProtocol,), {"appends": appends})
