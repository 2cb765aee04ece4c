"""What an agent may send, by mistake or to do harm: nothing is lost without a word, nothing hangs, nothing breaks down."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import pytest

from bubble.protocol.jsontext import JSONValue
from bubble.reef import answers
from bubble.reef.agent import ReefAgent
from bubble.reef.card import Binding, Generation, Interface, choose
from bubble.reef.dialects import DIALECTS, dialect_of
from bubble.reef.failures import AgentFailure, CardRefused
from bubble.reef.jsondata import MOST_LEVELS
from bubble.reef.translator import Translator
from tests.reef.raw_agent import Answer, Asked, event_stream, json_answer, raw_agent
from tests.reef.stage import Held, Stage

pytestmark = pytest.mark.anyio

MakeStage = Callable[..., Awaitable[Stage]]
ReefTo = Callable[..., ReefAgent]
DONE = {"statusUpdate": {"taskId": "t", "status": {"state": "TASK_STATE_COMPLETED"}}}


@pytest.fixture
def asked_of(make_stage: MakeStage, reef_to: ReefTo) -> Callable[[Answer], Awaitable[Held]]:
    """What a thread holds after a question that an agent answers in this way."""

    async def ask(answer: Answer) -> Held:
        async with raw_agent(lambda _: answer) as raw:
            return await (await make_stage()).ask(reef_to(raw.url), "Hello")

    return ask


AskedOf = Callable[[Answer], Awaitable[Held]]


def stream(*texts: str) -> Answer:
    """Events as texts."""
    pieces = [f"data: {text}\n\n".encode() for text in (*texts, json.dumps(DONE))]
    return Answer(headers={"Content-Type": "text/event-stream"}, pieces=pieces)


def data(text: str) -> str:
    """An artifact with a data part, of JSON that is given as a text, between two texts."""
    parts = f'{{"text": "before"}}, {{"data": {text}}}, {{"text": "after"}}'
    return f'{{"artifactUpdate": {{"taskId": "t", "artifact": {{"artifactId": "a", "parts": [{parts}]}}}}}}'


def nested(levels: int) -> str:
    """So many lists."""
    return "[" * levels + "]" * levels


async def test_data_that_is_as_deep_as_the_log_takes_it_arrives(asked_of: AskedOf) -> None:
    held = await asked_of(stream(data(nested(MOST_LEVELS))))
    (event,) = held.agent_events
    assert event == ("data", json.loads(nested(MOST_LEVELS)))
    assert (held.text, held.errors, held.outcomes) == ("beforeafter", [], ["success"])


@pytest.mark.parametrize("shape", ["{}", '{{"name": "f", "args": {}}}', '{{"id": "c", "response": {}}}'])
@pytest.mark.parametrize("levels", [MOST_LEVELS + 1, 700])
async def test_data_that_is_deeper_is_left_out_with_a_word_and_the_rest_is_said(
    asked_of: AskedOf, levels: int, shape: str
) -> None:
    held = await asked_of(stream(data(shape.format(nested(levels)))))
    assert held.text == "beforeafter"
    assert held.errors == [f"Something of the reply is left out. It is nested deeper than {MOST_LEVELS} levels."]
    assert (held.agent_events, held.calls, held.counts("run_finished")) == ([], [], 1)


async def test_what_is_too_deep_to_be_read_at_all_is_said_to_be_so(asked_of: AskedOf) -> None:
    held = await asked_of(stream(data(nested(200_000))))
    (error,) = held.errors
    assert error == "The agent sent JSON that is nested too deeply to be read."
    assert held.outcomes == ["failed"]


@pytest.mark.parametrize("digits", ["1" * 3_000, "1" * 5_000, "1e999"])
async def test_a_long_number_loses_no_digit(asked_of: AskedOf, digits: str) -> None:
    held = await asked_of(stream(data(f'{{"n": {digits}}}')))
    ((_, shown),) = held.agent_events
    assert isinstance(shown, dict)
    assert str(shown["n"]) == digits
    assert held.errors == []


async def test_what_comes_before_an_event_without_an_end_is_said_though_it_comes_in_the_same_piece(
    asked_of: AskedOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "_MOST", 1_000)
    piece = f"data: {data('{}')}\n\ndata: {'x' * 2_000}".encode()
    held = await asked_of(Answer(headers={"Content-Type": "text/event-stream"}, pieces=[piece]))
    assert held.text == "beforeafter"
    assert held.errors == ["The agent sent an event of more than 1000 bytes."]
    assert held.outcomes == ["failed"]


async def test_a_failure_of_many_words_keeps_its_beginning(asked_of: AskedOf) -> None:
    words = "no, " * 800_000
    message = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": words}]}
    held = await asked_of(
        event_stream({"statusUpdate": {"status": {"state": "TASK_STATE_FAILED", "message": message}}})
    )
    (error,) = held.errors
    assert error == words[:10_000] + "…"
    assert held.outcomes == ["failed"]


async def test_an_error_of_many_words_keeps_its_beginning(asked_of: AskedOf) -> None:
    held = await asked_of(event_stream({"error": {"code": -32603, "message": "no " * 1_000_000}}))
    (error,) = held.errors
    assert error.startswith("The agent answered with an error: no no no")
    assert error.endswith("…")
    assert len(error) < 1_000


@pytest.mark.parametrize("task_id", ["\ud800", "..", ".", "a/../../b?c#d", "ü ber", "x" * 100_000, "\x00\n"])
async def test_a_task_may_be_called_anything_and_its_broken_stream_ends_the_run(
    make_stage: MakeStage, reef_to: ReefTo, task_id: str
) -> None:
    working = {"statusUpdate": {"taskId": task_id, "status": {"state": "TASK_STATE_WORKING"}}}

    def answer(asked: Asked) -> Answer:
        return event_stream(working, ending="cut") if asked.procedure == "stream" else json_answer({}, status=404)

    async with raw_agent(answer) as raw:
        held = await (await make_stage()).ask(reef_to(raw.url), "Hello")
        assert [error for error in held.errors if "was lost" in error]
        assert held.outcomes == ["failed"]
        assert all(asked.path.startswith(("/tasks/", "/message:stream")) for asked in raw.asked)


# --- members of the wrong kind --------------------------------------------------------------------------------------------------

ODD: tuple[JSONValue, ...] = (None, True, 7, 1.5, "", "x", "\ud800", [], [None], [[]], {}, {"x": []})
MARKS = {"adk_thought": True, "adk_partial": False, "adk_type": "function_call"}
CALLED = {"id": "c", "name": "f", "args": {"a": 1.0}}
PARTS = [
    {"kind": "text", "text": "a", "metadata": MARKS},
    {"kind": "file", "file": {"bytes": "QUJD", "uri": "http://h", "mimeType": "image/png", "name": "n"}},
    {"raw": "QUJD", "url": "http://h", "mediaType": "text/plain", "filename": "n"},
    {"data": CALLED, "metadata": {**MARKS, "adk_is_long_running": True}},
    {"data": {"functionResponse": {"id": "c", "name": "f", "response": {"a": 1}}}},
]
SAID = {"messageId": "m", "role": "agent", "parts": PARTS, "metadata": MARKS}
MADE = {"artifactId": "a", "parts": PARTS, "metadata": MARKS}
STATUS = {"state": "working", "message": SAID}
EVENTS: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    ("task", "task", {"id": "t", "status": STATUS, "history": [SAID], "artifacts": [MADE], "metadata": MARKS}),
    ("status-update", "statusUpdate", {"taskId": "t", "status": STATUS, "metadata": MARKS}),
    ("artifact-update", "artifactUpdate", {"taskId": "t", "artifact": MADE, "append": True, "lastChunk": True}),
    ("message", "message", {**SAID, "taskId": "t", "contextId": "c"}),
    ("error", "error", {"code": -32603, "message": "m", "data": {"error": "e"}}),
)
CARD: Mapping[str, Any] = {
    "name": "A",
    "protocolVersion": "0.3.0",
    "capabilities": {"streaming": True},
    "url": "http://h",
    "preferredTransport": "JSONRPC",
    "additionalInterfaces": [{"transport": "HTTP+JSON", "url": "http://h"}],
    "supportedInterfaces": [
        {"protocolBinding": "HTTP+JSON", "url": "http://h", "tenant": "x", "protocolVersion": "1.0"},
        {"protocolBinding": "JSONRPC", "url": "http://h"},
    ],
}


def distorted(value: JSONValue) -> Iterator[JSONValue]:
    """The value, in turn with each of its members, at any depth, replaced by each odd one."""
    yield from ODD
    if isinstance(value, dict):
        yield from ({**value, name: odd} for name, each in value.items() for odd in distorted(each))
    if isinstance(value, list):
        yield from ([*value[:at], odd, *value[at + 1 :]] for at, each in enumerate(value) for odd in distorted(each))


@pytest.mark.parametrize(("generation", "binding"), list(DIALECTS))
@pytest.mark.parametrize(("kind", "wrapper", "event"), EVENTS, ids=[kind for kind, _, _ in EVENTS])
def test_an_event_with_any_member_of_the_wrong_kind_is_read_or_refused(
    generation: Generation, binding: Binding, kind: str, wrapper: str, event: JSONValue
) -> None:
    spoken = dialect_of(Interface(generation=generation, binding=binding, url="http://h"))
    for odd in distorted(event):
        payload: JSONValue = {wrapper: odd}
        if binding == "JSONRPC" and kind != "error":
            tagged: JSONValue = {**odd, "kind": kind} if isinstance(odd, dict) else odd
            payload = {"result": tagged if generation == "0.3" else payload}
        with suppress(AgentFailure):
            read = spoken.read(payload)
            if read is not None:
                translator = Translator()
                for saying in (*translator.translate(read), *translator.finalize()):
                    repr(saying)


@pytest.mark.parametrize("left_out", [(), ("supportedInterfaces",), ("supportedInterfaces", "url")])
def test_a_card_with_any_member_of_the_wrong_kind_is_used_or_refused(left_out: tuple[str, ...]) -> None:
    card: JSONValue = {name: value for name, value in CARD.items() if name not in left_out}
    for odd in distorted(card):
        with suppress(CardRefused):
            interface = choose(odd, card_url="http://h/agent-card.json")
            assert str(interface).isprintable()
            assert dialect_of(interface).get("t").url.isprintable()
