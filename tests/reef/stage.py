"""One reply on a real thread, from an agent that a test holds in its hands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from bubble.amphibian.agents import FilePart, Reply, Session, Turn
from bubble.amphibian.forward import Forward
from bubble.assembler import create_assembler
from bubble.client import BubbleConnection
from bubble.protocol.jsontext import dump_json
from bubble.reef.agent import ReefAgent
from tests.amphibian.logs import ME
from tests.amphibian.world import Thread

__all__ = ["Held", "Stage", "held_by"]


class Held:
    """What a thread holds of the bot's, taken from its log and from the assembled messages."""

    def __init__(self, events: Sequence[Mapping[str, Any]], messages: Sequence[Mapping[str, Any]]) -> None:
        self.events = [event for event in events if event.get("principalId") == ME]
        self.messages = messages

    @property
    def chunks(self) -> list[Mapping[str, Any]]:
        """The chunks, native parts among them."""
        return [event["part"] for event in self.events if event["type"] == "message_part"]

    def of(self, *types: str) -> list[Mapping[str, Any]]:
        """The chunks of these types."""
        return [chunk for chunk in self.chunks if chunk.get("type") in types]

    @property
    def text(self) -> str:
        """All text."""
        return "".join(chunk["delta"] for chunk in self.of("text-delta"))

    @property
    def reasoning(self) -> str:
        """All reasoning."""
        return "".join(chunk["delta"] for chunk in self.of("reasoning-delta"))

    @property
    def errors(self) -> list[str]:
        """All errors."""
        return [chunk["errorText"] for chunk in self.of("error")]

    @property
    def calls(self) -> list[tuple[str, object, object]]:
        """The tools that were called: name, input, output."""
        outputs = {chunk["toolCallId"]: chunk["output"] for chunk in self.of("tool-output-available")}
        return [
            (chunk["toolName"], chunk["input"], outputs.get(chunk["toolCallId"]))
            for chunk in self.of("tool-input-available")
        ]

    @property
    def files(self) -> list[str]:
        """The URLs of files."""
        return [chunk["url"] for chunk in self.of("file")]

    @property
    def agent_events(self) -> list[tuple[str, object]]:
        """The native events, by name and data."""
        return [(chunk["name"], chunk.get("data")) for chunk in self.chunks if chunk.get("kind") == "agent_event"]

    @property
    def outcomes(self) -> list[str]:
        """How its runs ended."""
        return [event["outcome"] for event in self.events if event["type"] == "run_finished"]

    def counts(self, kind: str) -> int:
        """How many events there are of a type."""
        return sum(event["type"] == kind for event in self.events)

    @property
    def assembled_text(self) -> str:
        """The text of the assembled messages."""
        parts = [part for message in self.messages for part in message["parts"]]
        return "".join(part["text"] for part in parts if part["type"] == "text")


class Stage:
    """A thread of the bot's own."""

    def __init__(self, bubble: BubbleConnection, thread_id: str, *, session: Mapping[str, Any] | None = None) -> None:
        self.thread_id = thread_id
        self.session = Session(thread_id, text=dump_json(dict(session or {})), save=_keep_nothing)
        self._bubble = bubble

    def forward(self, agent: ReefAgent, text: str, *, files: Sequence[FilePart] = ()) -> Forward:
        """A question to the agent, not yet asked."""
        turn = Turn(thread_id=self.thread_id, text=text, files=files, run_ids=(), authors=(), through_seq=1, events=())
        open_run = partial(self._bubble.run, self.thread_id, kind="agent_work")
        reply = Reply(thread_id=self.thread_id, session=self.session, open_run=open_run)
        return Forward(reply, partial(agent.respond, turn), tell_directly=_never)

    async def ask(self, agent: ReefAgent, text: str, *, files: Sequence[FilePart] = ()) -> Held:
        """Asks, and gives what the thread holds afterwards."""
        await self.forward(agent, text, files=files).carry_out(starts=True)
        return await self.held()

    async def held(self) -> Held:
        """What the thread holds now."""
        return await _held(self._bubble, self.thread_id)


async def held_by(thread: Thread) -> Held:
    """What a thread holds now."""
    return await _held(thread.bubble, thread.thread_id)


async def _held(bubble: BubbleConnection, thread_id: str) -> Held:
    stored = [event async for event in bubble.iter_events(thread_id)]
    assembled = await create_assembler().assemble(stored)
    messages = [message for message in assembled.messages if message["role"] == "assistant"]
    return Held([event.to_dict() for event in stored], messages)


async def _keep_nothing(text: bytes) -> None:
    del text


async def _never(run_id: str, text: str) -> None:
    raise AssertionError(f"nothing should be told past run {run_id}: {text}")
