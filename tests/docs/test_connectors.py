"""The example that hosts a pydantic-ai agent, with a scripted model in place of a provider's; and that the first example is short."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncIterator
from types import ModuleType

import pytest

from bubble.amphibian import AmphibianStore
from bubble.testing.server import BubbleServer
from tests.amphibian.logs import interrupt
from tests.amphibian.world import PATIENCE, Thread, World, chunk_types
from tests.docs.markdown import ROOT

pydantic_ai = pytest.importorskip("pydantic_ai")
function = pytest.importorskip("pydantic_ai.models.function")
messages = pytest.importorskip("pydantic_ai.messages")

EXAMPLES = ROOT / "docs" / "examples"

pytestmark = pytest.mark.anyio


@pytest.fixture
async def world(bubble_server: BubbleServer) -> AsyncIterator[World]:
    async with World.of(bubble_server) as world:
        yield world


@pytest.fixture(scope="module")
def example() -> ModuleType:
    """The example, imported as any module."""
    spec = importlib.util.spec_from_file_location("pydantic_ai_bot", EXAMPLES / "pydantic_ai_bot.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Model:
    """Streams what the prompt asks for, piece by piece. `seen` is what it was given each time."""

    def __init__(self) -> None:
        self.seen: list[list[object]] = []
        self.waits = asyncio.Event()
        self.was_cut_off = asyncio.Event()

    async def stream(self, history: list[object], info: object) -> AsyncIterator[object]:
        del info
        self.seen.append(history)
        last = history[-1].parts[-1]  # type: ignore[attr-defined]
        if isinstance(last, messages.ToolReturnPart):
            yield f"It says: {last.content}"
        elif "refund" in last.content:
            yield "One moment. "
            yield {1: function.DeltaToolCall(name="refund", json_args='{"order": ', tool_call_id="call-1")}
            yield {1: function.DeltaToolCall(json_args='"7"}')}
        elif "wait" in last.content:
            yield "Well, "
            try:
                self.waits.set()
                await asyncio.Event().wait()
            finally:
                self.was_cut_off.set()
        else:
            for piece in ("You ", "said ", last.content):
                yield piece


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def agent(example: ModuleType, model: Model, monkeypatch: pytest.MonkeyPatch) -> object:
    """The example's agent, on the scripted model."""
    monkeypatch.setattr(example.shop, "model", function.FunctionModel(stream_function=model.stream))
    return example.PydanticAgent(example.shop)


async def until_asked(thread: Thread) -> str:
    """Waits until consent is asked for; the run."""
    while chunk_types([event := await thread.next("message_part")]) != ["tool-approval-request"]:
        pass
    return str(event["runId"])


def decision(run_id: str, *, approved: bool, **more: str) -> dict[str, object]:
    event = {"type": "tool_call_approval", "principalId": "alice", "runId": run_id, "toolCallId": "call-1"}
    return {**event, "approved": approved, **more}


async def test_what_the_model_says_is_seen_as_it_says_it(world: World, agent: object) -> None:
    async with world.connector(agent):  # type: ignore[arg-type]
        thread = await world.thread()
        await thread.say("Hello")
        assert await thread.answered() == "You said Hello"
    deltas = [each for each in chunk_types(thread.seen) if each == "text-delta"]
    assert len(deltas) == 1 + 3


@pytest.mark.parametrize("approved", [True, False])
async def test_a_tool_waits_for_a_persons_consent(world: World, agent: object, *, approved: bool) -> None:
    async with world.connector(agent):  # type: ignore[arg-type]
        thread = await world.thread()
        await thread.say("refund")
        run_id = await until_asked(thread)
        reason = {} if approved else {"reason": "too late"}
        await thread.append(decision(run_id, approved=approved, **reason))
        said = await thread.answered()
    outcome = "tool-output-available" if approved else "tool-output-denied"
    assert said == f"One moment. It says: {'Order 7 is refunded.' if approved else 'too late'}"
    assert [each for each in chunk_types(thread.seen) if str(each).startswith("tool")] == [
        "tool-input-available",
        "tool-approval-request",
        outcome,
    ]


@pytest.mark.parametrize("text", ["wait", "refund"], ids=["the model speaks", "it waits for consent"])
async def test_it_stops_when_it_is_asked_to(world: World, agent: object, model: Model, text: str) -> None:
    async with world.connector(agent):  # type: ignore[arg-type]
        thread = await world.thread()
        await thread.say(text)
        begin = await thread.next("run_started")
        async with asyncio.timeout(PATIENCE):
            await (model.waits.wait() if text == "wait" else until_asked(thread))
        async with asyncio.timeout(1):
            await thread.append(interrupt(str(begin["runId"])))
            await thread.next("run_finished", outcome="interrupted")
        if text == "wait":
            async with asyncio.timeout(PATIENCE):
                await model.was_cut_off.wait()
        await thread.say("Hello")
        assert await thread.answered() == "You said Hello"


async def test_it_remembers_each_thread_over_a_restart(
    world: World, agent: object, model: Model, tmp_path: object
) -> None:
    threads = [await world.thread(), await world.thread()]
    for text in ("one", "two"):
        async with (
            await AmphibianStore.open(f"{tmp_path}/db.sqlite") as store,
            world.connector(agent, store=store),  # type: ignore[arg-type]
        ):
            for thread in threads:
                await thread.say(f"{text} {thread.thread_id}")
                await thread.answered()
    for thread, history in zip(threads, model.seen[2:], strict=True):
        prompts = [part.content for each in history for part in each.parts if part.part_kind == "user-prompt"]  # type: ignore[attr-defined]
        assert prompts == [f"one {thread.thread_id}", f"two {thread.thread_id}"]


def test_the_connector_of_a_plain_function_has_less_than_forty_lines() -> None:
    assert len((EXAMPLES / "parrot.py").read_text(encoding="utf-8").splitlines()) < 40
