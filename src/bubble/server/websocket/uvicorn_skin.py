"""The skin that `bubble serve` uses: uvicorn's WebSocket protocol with a short way in and out.

*Theory of operation.* Handshake, control frames, fragments, closing and everything unusual are the business of the sans-I/O core of
`websockets`, as in uvicorn's own class, which this one extends; other ASGI endpoints on the same server notice nothing. An endpoint
that finds this object in `scope["extensions"]` may `attach` a receiver. From then on

- a complete, unfragmented text frame, which is nearly every frame, is unmasked and handed over right here;
- any other frame goes to the core, whole, one at a time, so that its state is always at a frame's boundary;
- what is sent goes straight to the transport, events as bytes that were framed once for all readers.

The core is some fifty times slower than the short way, and a peer may send nothing but frames for it. So it gets a bounded number of them
in one turn of the event loop, and a peer that does not take its pongs is not read from.
"""

from __future__ import annotations

import asyncio
import socket as sockets
from typing import Final, cast

from uvicorn._types import ASGIReceiveEvent
from uvicorn.config import Config
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.frames import Frame
from websockets.protocol import State
from websockets.server import ServerProtocol

from bubble.hub.encodings import WEBSOCKET_FRAMES, Chunk, Encoding, websocket_frame
from bubble.server.http_protocol import refusal
from bubble.server.websocket.fragments import Fragments
from bubble.server.websocket.masking import apply_mask
from bubble.server.websocket.nobody import NO_RECEIVER, NOBODY
from bubble.server.websocket.socket import Receiver

__all__ = ["EXTENSION", "BubbleWebSocketProtocol"]

EXTENSION: Final = "bubble.socket"

HIGH_WATER: Final = 128 * 1024
CLOSE_SECONDS: Final = 5.0

_FIN_TEXT: Final = 0x81
_FIN_CLOSE: Final = 0x88
_MASKED: Final = 0x80
_PING: Final = b"\x89\x00"
_KNOWN_FIRST_BYTES: Final = frozenset({0x00, 0x01, 0x02, 0x80, 0x81, 0x82, 0x88, 0x89, 0x8A})

_FRAMES_PER_TURN: Final = 128  # for the core

# Why nothing is read from the peer.
_ASKED: Final = 1
_PONGS: Final = 2
_TURN: Final = 4


class BubbleWebSocketProtocol(WebSocketsSansIOProtocol):
    """One WebSocket connection; a `Socket` for the endpoint that attaches to it."""

    encoding: Encoding = WEBSOCKET_FRAMES

    _receiver: Receiver | None = None
    _rest: bytes = b""
    _skip = 0  # bytes of an oversized message still to be discarded
    _inside_fragments = False
    _fragments: Fragments | None = None
    _holds = 0  # why reading is paused
    _core_frames = 0  # in this turn of the event loop
    _write_paused = False
    last_heard = 0.0
    bytes_written = 0

    # --- the endpoint's side ----------------------------------------------------------------------------------------------------

    def handle_connect(self, event: object) -> None:
        # The base class has types for these that it does not export: a wsproto event, and a scope of ASGI's own extensions alone.
        super().handle_connect(event)  # type: ignore[arg-type]
        if self.handshake_initiated and not self.handshake_complete:
            self.scope["extensions"][EXTENSION] = self  # type: ignore[assignment]

    def attach(self, receiver: Receiver, *, high_water: int = HIGH_WATER) -> None:
        """Takes the connection over, after `websocket.accept`. Messages that came before are handed over now.

        The endpoint returns after this: the receiver hears of all that follows, at last by `gone`.
        """
        self.stop_keepalive()
        self._receiver = receiver
        self.last_heard = self.loop.time()
        self.transport.set_write_buffer_limits(high=high_water, low=high_water // 4)
        early = [self.queue.get_nowait() for _ in range(self.queue.qsize())]
        self._let_go()
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        for message in early:
            if message["type"] == "websocket.receive":
                self._early(message.get("text"), message.get("bytes"))
            else:
                self._leave()

    def _let_go(self) -> None:
        """Forgets what only the handshake and an ASGI endpoint need: an idle connection should cost little."""
        self.queue = cast("asyncio.Queue[ASGIReceiveEvent]", NOBODY)
        self.writable = cast("asyncio.Event", NOBODY)
        self.close_timer = cast(
            "asyncio.TimerHandle", NOBODY
        )  # its being set keeps uvicorn from closing when the endpoint returns
        del self.scope, self.request, self.response
        self._rest_core()

    def _leave(self) -> None:
        receiver, self._receiver = self._receiver, NO_RECEIVER
        if receiver is not None:
            receiver.gone()

    def _early(self, text: str | None, data: bytes | None) -> None:
        if text is not None:
            self._hand_over(text.encode())
        elif self._receiver is not None:
            self._receiver.binary(data or b"")

    def _core(self) -> ServerProtocol:
        """The sans-I/O core. At a frame's boundary it has no state worth keeping, so it is made when it is needed."""
        if not hasattr(self, "conn"):
            self.conn = ServerProtocol(state=State.OPEN, max_size=self.config.ws_max_size, logger=self.logger)
        return self.conn

    def _rest_core(self) -> None:
        if self.conn.state is State.OPEN and self.conn.current_size is None:
            del self.conn

    @property
    def buffered(self) -> int:
        """Bytes written that the kernel has not taken."""
        return int(self.transport.get_write_buffer_size())

    @property
    def bytes_taken(self) -> int:
        """Bytes that the kernel has taken from what was written since `attach`: it grows as long as the peer reads."""
        return self.bytes_written - self.buffered

    def is_writable(self) -> bool:
        """Whether the write buffer is below its high-water mark."""
        return not self._write_paused and not self.close_sent

    def send_text(self, payload: bytes) -> None:
        """One text message."""
        if not self.close_sent:
            self._write(websocket_frame(payload))

    def write_chunk(self, chunk: Chunk) -> None:
        """Framed events, in one write."""
        if not self.close_sent:
            self._write(chunk.joined)

    def _write(self, data: bytes) -> None:
        self.bytes_written += len(data)
        self.transport.write(data)

    def pause_reading(self) -> None:
        """Takes no more from the peer."""
        self._hold(_ASKED)

    def resume_reading(self) -> None:
        """Takes from the peer again."""
        self._release(_ASKED)

    def _hold(self, why: int) -> None:
        self._holds |= why
        if not self.read_paused:
            self.read_paused = True
            self.transport.pause_reading()

    def _release(self, why: int) -> None:
        self._holds &= ~why
        if self.read_paused and not self._holds and not self.transport.is_closing():
            self.read_paused = False
            self.transport.resume_reading()

    def ping(self) -> None:
        """Sends a ping; any frame of the peer counts as an answer."""
        if not self.close_sent:
            self.transport.write(_PING)

    def close(self, code: int, reason: str) -> None:
        """Starts the closing handshake; a peer that does not take part is cut off after a few seconds."""
        if self.close_sent or self.transport.is_closing():
            return
        core = self._core()
        if core.state is State.OPEN:
            core.send_close(code, reason)
            self.transport.write(b"".join(core.data_to_send()))
        self.close_sent = True
        self.close_timer = self.loop.call_later(CLOSE_SECONDS, self.transport.abort)
        self._release(_ASKED | _PONGS)
        self._leave()

    # --- uvicorn's side ---------------------------------------------------------------------------------------------------------

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        # Without extensions, whatever the configuration says: frames are looked at here before the core sees them.
        self.conn = ServerProtocol(max_size=self.config.ws_max_size, logger=self.logger)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        connection = transport.get_extra_info("socket")
        if connection is not None and connection.family in (sockets.AF_INET, sockets.AF_INET6):
            connection.setsockopt(sockets.IPPROTO_TCP, sockets.TCP_NODELAY, 1)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._receiver is not None:
            self.close_sent = (
                True  # answers that are still under way are for nobody, and this transport may raise at them
            )
            self._leave()

    def handle_close(self, event: Frame) -> None:
        super().handle_close(event)
        if self._receiver is not None:
            if not self.close_sent:  # a peer that takes nothing would never let its connection end
                self.close_timer = self.loop.call_later(CLOSE_SECONDS, self.transport.abort)
            self._leave()

    def pause_writing(self) -> None:
        if self._receiver is None:
            super().pause_writing()
        self._write_paused = True

    def resume_writing(self) -> None:
        if self._receiver is None:
            super().resume_writing()
        self._write_paused = False
        self._release(_PONGS)
        if self._receiver is not None and not self.close_sent:
            self._receiver.drained()

    def shutdown(self) -> None:
        if self._receiver is None:
            super().shutdown()
        else:
            self.close(1012, "")

    def data_received(self, data: bytes) -> None:
        if self._receiver is None and self.conn.state is State.CONNECTING:
            super().data_received(data)
            if self.conn.handshake_exc is not None and not self.handshake_initiated:
                # The core found no request in it (too long a header, a body), and would wait for ever for the peer to leave.
                self.transport.write(refusal(400, "This is no WebSocket handshake: a body, or headers over 8 KiB."))
                self.transport.close()
            return
        self.last_heard = self.loop.time()
        buffer = self._rest + data if self._rest else data
        self._rest = buffer if self._holds & _TURN else self._take(buffer)

    def _go_on(self) -> None:
        """The next turn of the event loop: what was left of the last one."""
        self._release(_TURN)
        self._rest = self._take(self._rest)

    # --- the short way in -------------------------------------------------------------------------------------------------------

    def _take(self, buffer: bytes) -> bytes:
        """Handles the whole frames at the beginning of `buffer` and gives back the rest."""
        position, size = 0, len(buffer)
        self._core_frames = 0
        while position < size:
            if self._core_frames >= _FRAMES_PER_TURN:
                self._hold(_TURN)
                self.loop.call_soon(self._go_on)
                break
            if self._skip:
                skipped = min(self._skip, size - position)
                self._skip -= skipped
                position += skipped
                continue
            if self.transport.is_closing():
                return b""
            if self.close_sent:
                self._to_core(buffer[position:])
                return b""
            taken = self._take_frame(buffer, position, size)
            if taken < 0:
                return b""
            if not taken:
                break
            position += taken
        return buffer[position:]

    def _take_frame(self, buffer: bytes, position: int, size: int) -> int:
        """How many bytes were used; 0 if the frame is not whole yet, -1 if the rest of the buffer went to the core."""
        if size - position < 2:
            return 0
        first, second = buffer[position], buffer[position + 1]
        length = second & 0x7F
        is_control = first & 0x08
        if first not in _KNOWN_FIRST_BYTES or second < _MASKED or (is_control and length > 125):
            self._to_core(buffer[position:])  # a protocol error: the core knows which
            return -1
        start = position + 6
        if length >= 126:
            start += 2 if length == 126 else 8
            if size < start:
                return 0
            length = int.from_bytes(buffer[position + 2 : start - 4], "big")
        if first == _FIN_TEXT and not self._inside_fragments and self._receiver is not None:
            return self._take_text(buffer, position, start, length)
        if length > self._hard_limit:
            self._to_core(buffer[position:])
            return -1
        if size < start + length:
            return 0
        self._to_core(buffer[position : start + length])
        return start + length - position

    def _take_text(self, buffer: bytes, position: int, start: int, length: int) -> int:
        receiver = self._receiver
        if receiver is None:
            return 0
        if length > receiver.max_message:
            if length > self._hard_limit:
                self._to_core(buffer[position:])
                return -1
            self._skip = length
            receiver.oversized(length)
            return start - position
        end = start + length
        if len(buffer) < end:
            return 0
        self._hand_over(apply_mask(buffer[start:end], buffer[start - 4 : start]))
        return end - position

    @property
    def _hard_limit(self) -> int:
        return int(self.config.ws_max_size)

    def _hand_over(self, payload: bytes) -> None:
        if self._receiver is not None and self._is_text(payload):
            self._receiver.message(payload)

    def _is_text(self, payload: bytes) -> bool:
        if not payload.isascii():
            try:
                payload.decode("utf-8")
            except UnicodeDecodeError:
                self._core().fail(1007, "invalid UTF-8")
                self._failed()
                return False
        return True

    def _failed(self) -> None:
        self.handle_parser_exception()
        if self._receiver is not None:
            self._leave()

    # --- the long way in --------------------------------------------------------------------------------------------------------

    def _to_core(self, data: bytes) -> None:
        self._core_frames += 1
        core = self._core()
        if data[0] == _FIN_CLOSE:
            # A close frame may come between two fragments (RFC 6455, section 5.4); the core takes that for an error.
            core.current_size = None
        core.receive_data(data)
        if core.parser_exc is not None:
            self._failed()
            return
        self.handle_events()
        self._inside_fragments = core.current_size is not None
        if self._receiver is not None:
            self._rest_core()

    def handle_pong(self, event: Frame) -> None:
        """A pong counts as any frame does (`last_heard`)."""
        if self._receiver is None:
            super().handle_pong(event)

    def handle_ping(self) -> None:
        if self.close_sent or self.transport.is_closing():
            self.conn.data_to_send()  # nobody waits for a pong any more
            return
        super().handle_ping()
        if self._write_paused:
            self._hold(_PONGS)

    def handle_text(self, event: Frame) -> None:
        self.curr_msg_data_type = "text"
        self._gather(event, Fragments())

    def handle_bytes(self, event: Frame) -> None:
        self.curr_msg_data_type = "bytes"
        self._gather(event, Fragments())

    def handle_cont(self, event: Frame) -> None:
        self._gather(event, self._fragments or Fragments())

    def _gather(self, event: Frame, fragments: Fragments) -> None:
        # Before `attach` the core's own limit holds.
        limit = self._hard_limit if self._receiver is None else self._receiver.max_message
        fragments.add(bytes(event.data), limit=limit)
        self._fragments = None if event.fin else fragments
        if event.fin:
            self._complete(fragments)

    def _complete(self, fragments: Fragments) -> None:
        """A message that came through the core is complete."""
        receiver = self._receiver
        data = fragments.joined()
        if receiver is None:
            if self.curr_msg_data_type == "bytes" or self._is_text(data):
                self.frames = [data]
                self.send_receive_event_to_app()
            return
        if self.close_sent:
            return
        if fragments.dropped:
            receiver.oversized(fragments.dropped)
        elif self.curr_msg_data_type == "text":
            self._hand_over(data)
        else:
            receiver.binary(data)
