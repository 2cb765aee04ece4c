"""The second part of the play: an A2A agent takes part. `bubble mock-agent` is the agent, and `bubble reef` lets it in.

Ada asks; it thinks and answers. It calls a tool and waits, Ada gives the result, it goes on. She stops it in the middle of an answer. It
calls the tool once more, and while it waits, reef ends; what she says meanwhile is answered by the next reef, on the task that waited.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from bubble.assembler import BubbleMessage
from bubble.cli.spawned import SpawnedServer, spawned
from bubble.client import BubbleConnection
from bubble.demo.cues import Cues
from bubble.demo.proof import Claim
from bubble.demo.scene import Scene
from bubble.demo.script import ADA
from bubble.protocol.events import MessagePart, RunInterruptRequested, SequencedEvent
from bubble.protocol.jsontext import load_json

__all__ = ["AgentPlay", "agent_is_there"]

SCOUT: Final = "scout"
RESULT: Final = {"sky": "blue"}
MEANWHILE: Final = "No need to look, it rains."
# How many pieces of the long answer Ada hears before she has it stopped.
_HEARD: Final = 6
_RUNS: Final = 6
_CONFIG: Final = """\
[bubble]
url = {url}
token = {token}
principalId = "scout"
[a2a]
agentCardUrl = {agent}
[store]
path = {store}
"""


def agent_is_there() -> bool:
    """Whether the extra `a2a` is installed, of which the agent is made."""
    return importlib.util.find_spec("a2a") is not None


class AgentPlay:
    """One performance on `server`. `pace` as in `Play`."""

    def __init__(self, server: SpawnedServer, scene: Scene, *, pace: float) -> None:
        self._server = server
        self._scene = scene
        self._pace = pace
        self._saw = Cues(SCOUT)
        self._log: list[SequencedEvent] = []
        self._thread_id = ""

    async def perform(self) -> Sequence[Claim]:
        """Plays it and gives what can be claimed afterwards. Raises `CommandError` where a process does not start."""
        self._scene.begin_another()
        self._scene.stage = "An agent is started, and reef, which lets it take part."
        async with self._ada() as ada:
            made = await ada.create_thread(title="With an agent", participants={SCOUT: "participant"})
            self._thread_id = made.thread_id
            async with asyncio.TaskGroup() as tasks:
                following = tasks.create_task(self._follow(ada))
                tasks.create_task(self._read_messages(ada))
                await self._play(ada)
                following.cancel()
            return await self._prove(ada)

    @asynccontextmanager
    async def _ada(self) -> AsyncIterator[BubbleConnection]:
        async with BubbleConnection(self._server.url, token=self._server.admin_token) as admin:
            await admin.create_principal(SCOUT, kind="bot", display_name="Scout", owner_principal_id=ADA.principal_id)
            self._token = (await admin.mint_token(SCOUT)).token
            token = (await admin.mint_token(ADA.principal_id)).token
        async with BubbleConnection(self._server.url, token=token) as ada:
            yield ada

    # --- the play ---------------------------------------------------------------------------------------------------------------

    async def _play(self, ada: BubbleConnection) -> None:
        pace = str(0.05 * self._pace)
        async with spawned("mock-agent", "--port", "0", "--pace", pace, directory=self._server.directory) as agent:
            config = self._configured(str(agent["url"]))
            async with self._reef(config):
                await self._ask(ada, "Think about it: what do you make of this?", runs=1)
                await self._ask(ada, "Tool, please: how is the weather?", runs=2)
                self._scene.stage = "The agent's tool waits for somebody; Ada gives the result."
                await ada.append_event(self._thread_id, self._result())
                await self._until_over(3)
                await self._stop_a_long_answer(ada)
                await self._ask(ada, "Tool, please, once more.", runs=5)
            self._scene.stage = "Reef is stopped while the agent's task waits. Ada says something meanwhile."
            await ada.send_message(self._thread_id, MEANWHILE)
            await asyncio.sleep(self._pace)
            async with self._reef(config):
                self._scene.stage = "Reef is back, and goes on where it was."
                await self._until_over(_RUNS)

    def _configured(self, agent: str) -> Path:
        directory = self._server.directory
        given = {"url": self._server.url, "token": self._token, "agent": agent, "store": str(directory / "reef.db")}
        config = directory / "reef.toml"
        config.write_text(_CONFIG.format(**{name: json.dumps(text) for name, text in given.items()}), encoding="utf-8")
        return config

    @asynccontextmanager
    async def _reef(self, config: Path) -> AsyncIterator[None]:
        async with spawned("reef", "--config", str(config), directory=self._server.directory):
            yield

    async def _ask(self, ada: BubbleConnection, text: str, *, runs: int) -> None:
        self._scene.stage = "Ada asks the agent."
        await ada.send_message(self._thread_id, text)
        await self._until_over(runs)

    async def _stop_a_long_answer(self, ada: BubbleConnection) -> None:
        self._scene.stage = "Ada asks for something long, and has it stopped."
        await ada.send_message(self._thread_id, "Long, please.")
        before = set(self._saw.over)
        await self._saw.until(lambda saw: any(count > _HEARD for run, count in saw.chunks.items() if run not in before))
        run_id = next(run for run in self._saw.chunks if run not in before)
        await ada.append_event(self._thread_id, RunInterruptRequested(principal_id=ADA.principal_id, run_id=run_id))
        await self._until_over(4)

    async def _until_over(self, runs: int) -> None:
        await self._saw.until(lambda saw: len(saw.over) >= runs)

    def _result(self) -> Mapping[str, object]:
        call = self._last_call()
        about = {"runId": call.run_id, "toolCallId": _chunk(call)["toolCallId"], "input": _chunk(call)["input"]}
        return {"type": "tool_call_result", "principalId": ADA.principal_id, **about, "output": RESULT}

    def _last_call(self) -> MessagePart:
        parts = (stored.event for stored in reversed(self._log))
        return next(
            part
            for part in parts
            if isinstance(part, MessagePart) and _chunk(part).get("type") == "tool-input-available"
        )

    # --- those who follow -------------------------------------------------------------------------------------------------------

    async def _follow(self, ada: BubbleConnection) -> None:
        async with ada.subscribe_thread(self._thread_id) as events:
            async for event in events:
                self._log.append(event)
                self._saw.note(event)

    async def _read_messages(self, ada: BubbleConnection) -> None:
        async with ada.follow_messages(self._thread_id) as updates:
            async for update in updates:
                # Who joined was shown in the first part, under the same ids.
                self._scene.take(replace(update, messages=_said(update.messages), upserts=_said(update.upserts)))
                if len(_finished(update.messages)) == _RUNS:
                    return

    # --- afterwards -------------------------------------------------------------------------------------------------------------

    async def _prove(self, ada: BubbleConnection) -> Sequence[Claim]:
        stored = [event async for event in ada.iter_events(self._thread_id)]
        assembled = await ada.assembler.create().assemble(stored, grouping="run")
        replies = [message for message in assembled.messages if message["metadata"]["bubble"]["principalId"] == SCOUT]
        if len(replies) != _RUNS:
            return [Claim.of("the agent answered each time", f"it has {len(replies)} messages instead of {_RUNS}")]
        still_open = [run async for run in ada.list_runs(self._thread_id, state="open")]
        return [
            Claim.of("the A2A agent thought and answered in a stream, each word once", _fault_of_thinking(replies[0])),
            Claim.of(
                "its tool got Ada's result, and it went on with that",
                _other_text(replies[2], "The tool said: sky blue") or _fault_of_tool(replies[1]),
            ),
            Claim.of("it was stopped in the middle of an answer", _fault_of_stopping(replies[3])),
            Claim.of(
                "reef, started again, answered what was said while it was away, once, on the task that waited",
                _other_text(replies[5], f"Instead of the tool, you said: {MEANWHILE}"),
            ),
            Claim.of("no run was left open", f"{len(still_open)} are" if still_open else None),
        ]


def _chunk(part: MessagePart) -> Mapping[str, object]:
    chunk = load_json(bytes(part.part))
    return chunk if isinstance(chunk, dict) else {}


def _said(messages: Sequence[BubbleMessage]) -> Sequence[BubbleMessage]:
    return [message for message in messages if "runId" in message["metadata"]["bubble"]]


def _finished(messages: Sequence[BubbleMessage]) -> set[str]:
    about = [message["metadata"]["bubble"] for message in messages]
    return {
        each["runId"]
        for each in about
        if each["principalId"] == SCOUT and each["status"] == "finished" and "runId" in each
    }


def _text(message: BubbleMessage, kind: str = "text") -> str:
    return "".join(str(part["text"]) for part in message["parts"] if part["type"] == kind)


def _other_text(message: BubbleMessage, expected: str) -> str | None:
    return None if _text(message) == expected else f"it says {_text(message)!r}"


def _fault_of_thinking(message: BubbleMessage) -> str | None:
    if _text(message, "reasoning") != "Somebody wants me to think. So I do.":
        return f"it thought {_text(message, 'reasoning')!r}"
    return _other_text(message, "I have thought about it.")


def _fault_of_tool(message: BubbleMessage) -> str | None:
    outputs = [part.get("output") for part in message["parts"] if part["type"] == "tool-get_weather"]
    return None if outputs == [RESULT] else f"its calls came to {outputs}"


def _fault_of_stopping(message: BubbleMessage) -> str | None:
    outcome = message["metadata"]["bubble"].get("outcome")
    return None if outcome == "interrupted" else f"its outcome is {outcome}"
