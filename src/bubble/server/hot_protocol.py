"""The HTTP connection of `bubble serve`: the general one, with the short way for appends (see `hot`).

A request goes the short way only if it came whole in one read, and nothing else is under way on its connection; then its order among
pipelined requests is the connection's own. In every other case the general protocol takes it up as if nothing had been tried.

The first append of a connection is parsed. Its head is kept, to the byte; where a later read begins with the same head and ends with its
body, it is that request again with another body, and goes to the store without the parser.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar, Final, cast

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from bubble.protocol.errors import BubbleError
from bubble.server.hot import HotAnswer, HotAppends, HotHead, is_append
from bubble.server.http_protocol import BubbleHttpProtocol
from bubble.store.commands import AppendResult

__all__ = ["HotHttpProtocol", "hot_protocol"]

_END_OF_HEAD: Final = b"\r\n\r\n"
_KEPT_HEADS: Final = 8  # bodies differ in length, so heads differ in `Content-Length`
_KEPT_HEAD_BYTES: Final = 2_048


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

    _heads: dict[bytes, HotHead] | None = None
    _head: HotHead | None = None  # of the request that is being read the short way
    _taken: HotHead | None = None  # of the request that went the short way in this read
    _pieces: list[bytes] | None = None
    _is_in_message = False
    _standing: bytes = b""
    _standing_of: object = None
    _last_used = 0.0

    def data_received(self, data: bytes) -> None:
        is_at_rest = self._is_at_rest
        if is_at_rest and self._heads and self._is_known_append(data, self._heads):
            return
        super().data_received(data)
        taken = self._pop_taken()
        if self._pieces is not None:
            self._go_the_general_way()
        elif is_at_rest and taken is not None and taken.is_repeatable:
            self._keep(data, taken)

    def _pop_taken(self) -> HotHead | None:
        taken, self._taken = self._taken, None
        return taken

    @property
    def _is_at_rest(self) -> bool:
        """Whether the next byte begins a request, and no other waits for its answer."""
        return not self._is_in_message and self._has_answered

    @property
    def _has_answered(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def _is_known_append(self, data: bytes, heads: dict[bytes, HotHead]) -> bool:
        end = data.find(_END_OF_HEAD) + len(_END_OF_HEAD)
        head = heads.get(data[:end])
        if head is None or len(data) - end != head.length:
            return False
        answer = self.appends.prepare(head, data[end:])
        if answer is None:
            return False
        self._begin(answer, keep_alive=True)
        return True

    def _keep(self, data: bytes, head: HotHead) -> None:
        end = data.find(_END_OF_HEAD) + len(_END_OF_HEAD)
        if len(data) - end == head.length and end <= _KEPT_HEAD_BYTES:  # this request, and nothing but it
            if self._heads is None or len(self._heads) >= _KEPT_HEADS:
                self._heads = {}
            self._heads[data[:end]] = head

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_message = True

    def on_headers_complete(self) -> None:
        self._head = self.appends.understand(self.url, self.headers) if self._is_hot() else None
        if self._head is None:
            super().on_headers_complete()
        else:
            self.headers_ended()
            self._pieces = []

    def _is_hot(self) -> bool:
        parser = self.parser
        return (
            parser.get_method() == b"POST"
            and is_append(self.url)
            and not self.expect_100_continue
            and not parser.should_upgrade()
            and parser.get_http_version() == "1.1"
            and self._has_answered
        )

    def on_body(self, body: bytes) -> None:
        if self._pieces is None:
            super().on_body(body)
        else:
            self._pieces.append(body)

    def on_message_complete(self) -> None:
        self._is_in_message = False
        pieces, head = self._pieces, self._head
        if pieces is not None and head is not None:
            answer = self.appends.prepare(head, pieces[0] if len(pieces) == 1 else b"".join(pieces))
            if answer is not None:
                self._pieces = None
                keep_alive = self.parser.should_keep_alive()
                self._taken = head if keep_alive else None
                self._begin(answer, keep_alive=keep_alive)
                return
            self._go_the_general_way()
        super().on_message_complete()

    def _go_the_general_way(self) -> None:
        pieces, self._pieces = self._pieces or [], None
        super().on_headers_complete()
        for piece in pieces:
            super().on_body(piece)

    def _begin(self, answer: HotAnswer, *, keep_alive: bool) -> None:
        cycle = _HotCycle(self, answer, keep_alive=keep_alive)
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
        if closes or self.pipeline:
            self.on_response_complete()
        else:
            self._rest()

    def _rest(self) -> None:
        """Waits for the next request. The timer is left to run: setting it anew for each would cost more than it does."""
        self.server_state.total_requests += 1
        self._last_used = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._wait_idle(self.timeout_keep_alive)

    def _wait_idle(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        self.timeout_keep_alive_task = None
        left = self.timeout_keep_alive - (self.loop.time() - self._last_used)
        if not self._is_at_rest:
            return  # the end of what is under way sets it again
        if left > 0:
            self._wait_idle(left)
        else:
            super().timeout_keep_alive_handler()

    def _standing_lines(self) -> bytes:
        headers = self.server_state.default_headers  # a new list once a second, when the date changes
        if headers is not self._standing_of:
            self._standing_of = headers
            self._standing = b"".join(b"%b: %b\r\n" % header for header in headers)
        return self._standing


def hot_protocol(appends: HotAppends) -> type[HotHttpProtocol]:
    """The protocol class for a server with these `appends`; uvicorn makes one instance per connection."""
    return type("ServedHttpProtocol", (HotHttpProtocol,), {"appends": appends})
