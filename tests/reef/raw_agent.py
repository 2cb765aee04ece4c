"""An agent on a real socket that answers with exactly the bytes, in exactly the pieces, that a test gives it."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Answer", "Asked", "Feed", "Feeds", "RawAgent", "event_stream", "json_answer", "raw_agent"]

Ending = Literal["complete", "cut", "open"]


class Feed:
    """What goes on being sent, as a test says it."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes | Ending] = asyncio.Queue()

    def send(self, *payloads: object) -> None:
        """Sends events."""
        for payload in payloads:
            self.send_bytes(f"data: {json.dumps(payload)}\n\n".encode())

    def send_bytes(self, piece: bytes) -> None:
        """Sends a piece of anything."""
        self._queue.put_nowait(piece)

    def end(self, how: Ending = "complete") -> None:
        """Ends the stream."""
        self._queue.put_nowait(how)

    async def next(self) -> bytes | Ending:
        """What comes next."""
        return await self._queue.get()


class Feeds:
    """Answers every message with a feed, and everything else with an empty object."""

    def __init__(self) -> None:
        self._feeds: list[Feed] = []

    def __call__(self, asked: Asked) -> Answer:
        if asked.procedure != "stream":
            return json_answer({})
        feed = Feed()
        self._feeds.append(feed)
        return Answer(headers={"Content-Type": "text/event-stream"}, feed=feed)

    def __len__(self) -> int:
        return len(self._feeds)

    def __getitem__(self, at: int) -> Feed:
        return self._feeds[at]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request as it came in."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> object:
        """The body, None if it is empty."""
        return json.loads(self.body) if self.body else None

    @property
    def procedure(self) -> str:
        """What it asks for: `stream`, `rejoin`, `get`, `cancel`, or `card`; whichever dialect says so."""
        if "agent" in self.path.rpartition("/")[2] and self.method == "GET":
            return "card"
        called = self.json
        method = called.get("method", "") if isinstance(called, dict) else ""
        return _PROCEDURES.get(method) or _by_path(self.method, self.path)


_PROCEDURES = {
    "message/stream": "stream",
    "SendStreamingMessage": "stream",
    "tasks/resubscribe": "rejoin",
    "SubscribeToTask": "rejoin",
    "tasks/get": "get",
    "GetTask": "get",
    "tasks/cancel": "cancel",
    "CancelTask": "cancel",
}


def _by_path(method: str, path: str) -> str:
    if path.endswith("message:stream") and method == "POST":
        return "stream"
    verb = path.rpartition(":")[2]
    return {"subscribe": "rejoin", "cancel": "cancel"}.get(verb, "get" if "/tasks/" in path else "unknown")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """`ending`: "complete" as HTTP wants it, "cut" in the middle, "open" until the client leaves or the agent is closed.

    `feed` goes on after the pieces, and says how it ends.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: Sequence[bytes] = ()
    ending: Ending = "complete"
    feed: Feed | None = None


def event_stream(*payloads: object, ending: Ending = "complete") -> Answer:
    """Events with JSON data."""
    pieces = [f"data: {json.dumps(payload)}\r\n\r\n".encode() for payload in payloads]
    return Answer(headers={"Content-Type": "text/event-stream"}, pieces=pieces, ending=ending)


def json_answer(value: object, *, status: int = 200) -> Answer:
    """One JSON value."""
    return Answer(status=status, headers={"Content-Type": "application/json"}, pieces=[json.dumps(value).encode()])


@dataclass
class RawAgent:
    """Its card names itself; what else is asked, `answer` answers. `asked` is everything but the card, which was given `cards` times.

    `card_path` is the only place where the card is; None: wherever it is looked for.
    """

    url: str
    answer: Callable[[Asked], Answer]
    card: Mapping[str, object]
    card_path: str | None = None
    card_answer: Answer | None = None
    cards: int = 0
    asked: list[Asked] = field(default_factory=list)
    arrived: asyncio.Condition = field(default_factory=asyncio.Condition)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    card_was_wanted: asyncio.Event = field(default_factory=asyncio.Event)
    connections: set[asyncio.Task[None]] = field(default_factory=set)

    async def was_asked(self, procedure: str, *, times: int = 1) -> list[Asked]:
        """Waits until it was asked for it so often."""
        async with self.arrived:
            await self.arrived.wait_for(lambda: len(self.of(procedure)) >= times)
        return self.of(procedure)

    def of(self, procedure: str) -> list[Asked]:
        """What it was asked for it so far."""
        return [asked for asked in self.asked if asked.procedure == procedure]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        task = asyncio.current_task()
        assert task is not None
        self.connections.add(task)
        try:
            # A connection ends with the agent, by cancellation, and that is no failure of it.
            with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                await self._serve(reader, writer)
        finally:
            writer.transport.abort()
            self.connections.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            asked = await _read(reader)
            if asked.procedure == "card":
                answer = self._card_at(asked.path)
            else:
                async with self.arrived:
                    self.asked.append(asked)
                    self.arrived.notify_all()
                answer = self.answer(asked)
            await self._write(answer, reader, writer)

    def _card_at(self, path: str) -> Answer:
        if self.card_path not in (None, path):
            return Answer(status=404)
        self.cards += 1
        self.card_was_wanted.set()
        return self.card_answer or json_answer(self.card)

    async def _write(self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {answer.status} Status", *(f"{name}: {value}" for name, value in answer.headers.items())]
        writer.write("\r\n".join([*lines, "Transfer-Encoding: chunked", "", ""]).encode())
        for piece in answer.pieces:
            if piece:
                writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                await writer.drain()
                await asyncio.sleep(0)  # a packet of its own, as far as loopback lets it
        ending = answer.ending if answer.feed is None else await _fed(answer.feed, writer)
        if ending == "complete":
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        if ending == "cut":
            writer.transport.abort()
        if ending == "open":
            await reader.read(1)
            self.left.set()


async def _fed(feed: Feed, writer: asyncio.StreamWriter) -> Ending:
    while isinstance(piece := await feed.next(), bytes):
        writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        await writer.drain()
    return piece


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method=method, path=path, headers=headers, body=body)


@asynccontextmanager
async def raw_agent(
    answer: Callable[[Asked], Answer],
    *,
    binding: str = "HTTP+JSON",
    generation: str = "1.0",
    port: int = 0,
    **card: object,
) -> AsyncIterator[RawAgent]:
    """An agent for as long as the block lasts. Further keywords are further members of the card."""
    # By its protocol too: a socket that does not know that it is TCP's keeps Nagle's delay.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    interface = {"url": url, "protocolBinding": binding, "protocolVersion": generation}
    agent = RawAgent(
        url=url,
        answer=answer,
        card={"name": "Raw", "capabilities": {"streaming": True}, "supportedInterfaces": [interface], **card},
    )
    async with await asyncio.start_server(agent.serve, sock=listening):
        try:
            yield agent
        finally:
            for connection in tuple(agent.connections):
                connection.cancel()
            if agent.connections:
                await asyncio.wait(agent.connections)
