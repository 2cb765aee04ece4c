"""A server with a person, a bot and a connector of the bot's, in the test's own process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import anyio

from bubble.amphibian.agents import Agent, Reply, Session, ToolResult, Turn
from bubble.amphibian.backlog import BacklogPolicy
from bubble.amphibian.connector import Connector
from bubble.amphibian.store import AmphibianStore
from bubble.client import BubbleConnection, ThreadSubscription
from bubble.protocol.identifiers import new_id
from bubble.testing.server import Account, BubbleServer
from tests.amphibian.logs import ME, Wire, said

__all__ = ["PATIENCE", "Listener", "Scripted", "Thread", "World", "chunk_types", "text_of"]

PATIENCE = 20.0
Responds = Callable[[Turn, Reply], Awaitable[None]]


async def answer(turn: Turn, reply: Reply) -> None:
    """Repeats what was said."""
    await reply.run.text(f"You said: {turn.text}")


class Scripted:
    """An agent that does what the test says, and keeps what it was asked."""

    def __init__(self, responds: Responds = answer) -> None:
        self.turns: list[Turn] = []
        self._responds = responds
        self._asked = asyncio.Condition()

    async def respond(self, turn: Turn, reply: Reply) -> None:
        async with self._asked:
            self.turns.append(turn)
            self._asked.notify_all()
        await self._responds(turn, reply)

    async def asked(self, count: int) -> list[Turn]:
        """Waits until it was asked so often."""
        with anyio.fail_after(PATIENCE):
            async with self._asked:
                await self._asked.wait_for(lambda: len(self.turns) >= count)
        return self.turns


class Listener(Scripted):
    """One that is also told of results and aborts."""

    def __init__(self, responds: Responds = answer) -> None:
        super().__init__(responds)
        self.results: list[ToolResult] = []
        self.cancelled: list[str] = []
        self.was_cancelled = asyncio.Event()

    async def tool_result(self, result: ToolResult, reply: Reply) -> None:
        self.results.append(result)
        await (await reply.start()).text(f"Result: {result.output}")

    async def cancel(self, thread_id: str, session: Session) -> None:
        assert session.thread_id == thread_id
        self.cancelled.append(thread_id)
        self.was_cancelled.set()


@dataclass
class Thread:
    """A thread as a person sees it."""

    thread_id: str
    bubble: BubbleConnection
    events: ThreadSubscription
    who: str = "alice"
    seen: list[Mapping[str, object]] = field(default_factory=list)

    async def say(self, text: str, *, run: str | None = None, kind: str = "user_input") -> str:
        """A whole run of hers; its id."""
        run_id = run or new_id()
        await self.bubble.append_events(self.thread_id, said(run_id, text, self.who, kind=kind))
        return run_id

    async def append(self, event: Wire) -> int:
        """One event; its seq."""
        return (await self.bubble.append_event(self.thread_id, event)).seq

    async def next(self, type_: str, *, by: str | None = ME, **members: object) -> Mapping[str, object]:
        """The next event that is like this."""
        with anyio.fail_after(PATIENCE):
            async for stored in self.events:
                event = stored.to_dict()
                self.seen.append(event)
                fits = by is None or event.get("principalId") == by
                if event["type"] == type_ and fits and members.items() <= event.items():
                    return event
        raise AssertionError("the subscription ended")

    async def answered(self, *, outcome: str = "success") -> str:
        """Waits for the end of the bot's next run that ends like this; what it said."""
        end = await self.next("run_finished", outcome=outcome)
        return text_of([event for event in self.seen if event.get("runId") == end["runId"]])

    async def log(self) -> list[Mapping[str, object]]:
        """Everything, as it is now."""
        return [stored.to_dict() async for stored in self.bubble.iter_events(self.thread_id)]

    async def runs_of_bot(self) -> list[Mapping[str, object]]:
        """What the bot's runs began with."""
        return [e for e in await self.log() if e["type"] == "run_started" and e["principalId"] == ME]

    async def open_runs(self) -> int:
        """How many runs are open."""
        return len([run async for run in self.bubble.list_runs(self.thread_id, state="open")])


def chunks(events: list[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """The chunks among the events."""
    return [part for event in events if isinstance(part := event.get("part"), Mapping)]


def chunk_types(events: list[Mapping[str, object]]) -> list[object]:
    """The types of the chunks among the events."""
    return [chunk["type"] for chunk in chunks(events)]


def text_of(events: list[Mapping[str, object]]) -> str:
    """The text among the events, and errors."""
    return "".join(str(chunk.get("delta", chunk.get("errorText", ""))) for chunk in chunks(events))


@dataclass
class World:
    """The server, and who is on it."""

    server: BubbleServer
    alice: BubbleConnection
    bot: Account
    stack: AsyncExitStack

    @classmethod
    @asynccontextmanager
    async def of(cls, server: BubbleServer) -> AsyncIterator[World]:
        async with AsyncExitStack() as stack:
            alice = await server.register("alice")
            bot = await server.register(ME, kind="bot", owner=alice)
            yield cls(server, await stack.enter_async_context(server.connect(alice)), bot, stack)

    async def thread(self, *, with_bot: bool = True) -> Thread:
        """A new thread of Alice's, which she follows."""
        made = await self.alice.create_thread(participants={ME: "participant"} if with_bot else None)
        events = await self.stack.enter_async_context(self.alice.subscribe_thread(made.thread_id))
        return Thread(made.thread_id, self.alice, events)

    @asynccontextmanager
    async def connector(
        self,
        agent: Agent,
        *,
        store: AmphibianStore | None = None,
        policy: BacklogPolicy | None = None,
        max_bot_turns: int = 8,
        principal_id: str = ME,
    ) -> AsyncIterator[Connector]:
        """A connector of the bot's for as long as the block lasts; then it is stopped as by a signal."""
        async with AsyncExitStack() as stack:
            own = store if store is not None else await stack.enter_async_context(await AmphibianStore.open())
            bubble = await stack.enter_async_context(self.server.connect(self.bot))
            connector = Connector(
                agent,
                bubble=bubble,
                principal_id=principal_id,
                store=own,
                policy=policy,
                max_bot_turns=max_bot_turns,
            )
            stop, ready = asyncio.Event(), asyncio.Event()
            running = asyncio.create_task(connector.run(stop=stop, on_ready=ready.set))
            waiting = asyncio.create_task(ready.wait())
            try:
                with anyio.fail_after(PATIENCE):
                    await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
                if not running.done():
                    yield connector
            finally:
                waiting.cancel()
                stop.set()
                with anyio.fail_after(PATIENCE):
                    await running
