"""Logs to assemble: words to write one down with, and random ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st

from bubble.assembler import BubbleMessage
from bubble.protocol.events import SequencedEvent, sequence
from bubble.protocol.jsontext import dump_json
from bubble.protocol.timestamps import format_ms

__all__ = [
    "CREATED_AT",
    "Event",
    "approval",
    "bubble",
    "chunk",
    "data_of",
    "delta",
    "end",
    "finished",
    "interrupt",
    "joined",
    "left",
    "logs",
    "native",
    "numbered",
    "parts",
    "reaction",
    "result",
    "said",
    "shown",
    "start",
    "started",
    "texts",
    "titled",
    "tool",
    "wire",
]

Event: TypeAlias = dict[str, Any]

#: The time of the event 0; each later one is a second later.
CREATED_AT: Final = 1_778_070_896_000


# One event each


def started(run: str = "r", who: str = "bot", kind: str | None = "agent_work") -> Event:
    return {"type": "run_started", "principalId": who, "runId": run} | ({} if kind is None else {"kind": kind})


def finished(run: str = "r", who: str = "bot", outcome: str | None = None) -> Event:
    return {"type": "run_finished", "principalId": who, "runId": run} | (
        {} if outcome is None else {"outcome": outcome}
    )


def chunk(type_: str, run: str = "r", who: str = "bot", **fields: Any) -> Event:  # noqa: ANN401 - wrong ones, too
    return _part(run, who, "ai-sdk-v6", {"type": type_, **fields})


def native(kind: object, run: str = "r", who: str = "bot", **fields: Any) -> Event:  # noqa: ANN401 - wrong ones, too
    return _part(run, who, "bubble-v1", {"kind": kind, **fields})


def _part(run: str, who: str, version: str, part: Mapping[str, object]) -> Event:
    return {"type": "message_part", "principalId": who, "runId": run, "part": dict(part), "version": version}


def start(run: str = "r", who: str = "bot", block: str = "1", kind: str = "text") -> Event:
    return chunk(f"{kind}-start", run, who, id=block)


def delta(text: object, run: str = "r", who: str = "bot", block: str = "1", kind: str = "text") -> Event:
    return chunk(f"{kind}-delta", run, who, id=block, delta=text)


def end(run: str = "r", who: str = "bot", block: str = "1", kind: str = "text") -> Event:
    return chunk(f"{kind}-end", run, who, id=block)


def said(text: str, run: str = "r", who: str = "bot", block: str = "1") -> list[Event]:
    return [start(run, who, block), delta(text, run, who, block), end(run, who, block)]


def tool(call: str = "c", run: str = "r", who: str = "bot", name: str = "search", **fields: object) -> Event:
    return chunk(
        "tool-input-available", run, who, **{"toolCallId": call, "toolName": name, "input": {"q": 1}, **fields}
    )


def approval(
    call: str = "c", run: str = "r", who: str = "ann", *, approved: bool = True, reason: str | None = None
) -> Event:
    event = {"type": "tool_call_approval", "principalId": who, "runId": run, "toolCallId": call, "approved": approved}
    return event | ({} if reason is None else {"reason": reason})


def result(
    call: str = "c", run: str = "r", who: str = "ann", *, given: object = None, output: object = "found"
) -> Event:
    event = {"type": "tool_call_result", "principalId": who, "runId": run, "toolCallId": call}
    return event | {"input": {"q": 2} if given is None else given, "output": output}


def interrupt(run: str = "r", who: str = "ann") -> Event:
    return {"type": "run_interrupt_requested", "principalId": who, "runId": run}


def joined(who: str = "ann", by: str = "bob") -> Event:
    return {"type": "participant_joined", "byPrincipalId": by, "principalId": who}


def left(who: str = "ann", by: str = "bob") -> Event:
    return {"type": "participant_left", "byPrincipalId": by, "principalId": who}


def titled(title: str = "Lunch", by: str = "bob") -> Event:
    return {"type": "thread_title_updated", "byPrincipalId": by, "title": title}


def reaction(target: object, who: str = "ann", emoji: str = "👍", op: str = "add", run: str = "q") -> Event:
    return native("reaction", run, who, targetSeq=target, emoji=emoji, op=op)


# Logs


def wire(events: Iterable[Event], *, first: int = 1) -> list[Event]:
    """Events in wire form, stored one after the other."""
    return [
        {"seq": seq, "createdAt": format_ms(CREATED_AT + 1000 * seq), **event}
        for seq, event in enumerate(events, first)
    ]


def numbered(events: Iterable[Event], *, first: int = 1) -> list[SequencedEvent]:
    """Events as a store gives them."""
    return [_stored(event) for event in wire(events, first=first)]


def _stored(event: Event) -> SequencedEvent:
    seq, created_at = event.pop("seq"), event.pop("createdAt")
    return SequencedEvent(seq, created_at, sequence(dump_json(event), seq=seq, created_at=created_at))


# What to look at


def bubble(message: BubbleMessage) -> dict[str, Any]:
    """What Bubble says of a message."""
    return dict(message["metadata"]["bubble"])


def parts(message: BubbleMessage, type_: str) -> list[dict[str, Any]]:
    """The parts of one type."""
    return [dict(part) for part in message["parts"] if part["type"] == type_]


def data_of(message: BubbleMessage) -> list[Any]:
    """What the data parts hold."""
    return [part["data"] for part in message["parts"] if str(part["type"]).startswith("data-")]


def texts(message: BubbleMessage) -> str:
    """The text of a message, reasoning left out."""
    return "".join(str(part["text"]) for part in message["parts"] if part["type"] == "text")


def shown(messages: Sequence[BubbleMessage]) -> list[tuple[str, str]]:
    """Ids and texts."""
    return [(message["id"], texts(message)) for message in messages]


# Random ones: few names, so that things meet; what one says is said in moves of several events; orphans and nonsense among them

_RUNS = st.sampled_from(["r", "r", "r", "s"])
_PEOPLE = st.sampled_from(["bot", "bot", "ann"])
_IDS = st.sampled_from(["1", "1", "1", "2"])
_CALLS = st.sampled_from(["c", "c", "d"])
_KINDS = st.sampled_from(["text", "text", "reasoning"])
_WORDS = st.text(st.sampled_from("ab é\0🫧\ud83d\ude00"), max_size=3)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | _WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "__proto__"]), inner, max_size=2),
    max_leaves=4,
)
_SPOKEN = st.tuples(_RUNS, _PEOPLE)


def _chunks(types: Sequence[str], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Event]:
    def make(type_: str, where: tuple[str, str], given: dict[str, Any]) -> Event:
        return chunk(type_, *where, **given)

    return st.builds(make, st.sampled_from(types), _SPOKEN, st.fixed_dictionaries({}, optional=fields))


def _natives(kind: st.SearchStrategy[Any], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Event]:
    def make(name: Any, where: tuple[str, str], given: dict[str, Any]) -> Event:  # noqa: ANN401 - kinds may be wrong
        return native(name, *where, **given)

    return st.builds(make, kind, _SPOKEN, st.fixed_dictionaries(fields))


_TOOL_CHUNKS = (
    "tool-input-start",
    "tool-input-available",
    "tool-input-error",
    "tool-output-available",
    "tool-output-error",
    "tool-output-denied",
    "tool-approval-request",
)
_ANY_CHUNK = (
    *_TOOL_CHUNKS,
    "text-start",
    "text-delta",
    "reasoning-end",
    "file",
    "start",
    "finish",
    "error",
    "data-x",
    "novel",
)


def _talk(run: str, who: str, block: str, kind: str, words: list[str], *, begins: bool, ends: bool) -> list[Event]:
    first, last = start(run, who, block, kind), end(run, who, block, kind)
    return [first] * begins + [delta(word, run, who, block, kind) for word in words] + [last] * ends


_TALK = st.builds(
    _talk,
    _RUNS,
    _PEOPLE,
    _IDS,
    _KINDS,
    st.lists(_WORDS, max_size=3),
    begins=st.booleans(),
    ends=st.sampled_from([False, False, True]),
)
_TOOLS = st.one_of(
    st.builds(tool, _CALLS, _RUNS, _PEOPLE),
    _chunks(["tool-input-delta"], toolCallId=_CALLS, inputTextDelta=st.sampled_from(['{"a":', "1", "}", "[", '"x'])),
    _chunks(
        _TOOL_CHUNKS,
        toolCallId=_CALLS,
        toolName=st.just("search"),
        input=_JSON,
        output=_JSON,
        errorText=_WORDS,
        approvalId=_WORDS,
        dynamic=st.booleans(),
    ),
    st.builds(approval, _CALLS, _RUNS, st.sampled_from(["ann", "bob"]), approved=st.just(value=True)),
    st.builds(approval, _CALLS, _RUNS, st.just("ann"), approved=st.just(value=False), reason=st.none() | _WORDS),
    st.builds(result, _CALLS, _RUNS, st.sampled_from(["ann", "bot"]), output=_JSON),
)
_OTHERS = st.one_of(
    _chunks(["start"], messageId=_IDS, messageMetadata=_JSON),
    _chunks(["message-metadata", "finish"], messageMetadata=_JSON),
    _chunks(["start-step", "finish-step", "abort", "novel-chunk"]),
    _chunks(["error"], errorText=_WORDS),
    _chunks(["file"], url=_WORDS, mediaType=_WORDS, filename=_WORDS),
    _chunks(["source-url"], sourceId=_IDS, url=_WORDS),
    _chunks(["data-x", "data-y"], id=_IDS, data=_JSON),
    _chunks(["data-x"], data=_JSON, transient=st.booleans()),
    _natives(st.just("agent_event"), name=st.sampled_from(["thinking", "empty", ""]), data=_JSON),
    _natives(st.just("artifact"), artifactId=_IDS, op=st.sampled_from(["create", "append", "delete"]), text=_WORDS),
    _natives(st.just("novel"), data=_JSON),
)
_LIFE = st.one_of(
    st.builds(started, _RUNS, st.just("bot"), st.sampled_from(["agent_work", "user_input", None])),
    st.builds(finished, _RUNS, _PEOPLE, st.sampled_from([None, "success", "failed"])),
    st.builds(interrupt, _RUNS, st.sampled_from(["ann", "bob"])),
    st.builds(joined),
    st.builds(titled, _WORDS),
)
_REACTIONS = st.builds(
    reaction,
    st.integers(1, 30),
    st.sampled_from(["ann", "bob"]),
    st.sampled_from(["👍", "__proto__"]),
    st.sampled_from(["add", "add", "remove", "both"]),
    st.sampled_from(["q", "r"]),
)
_NONSENSE = st.one_of(
    _chunks(
        _ANY_CHUNK,
        id=_JSON,
        toolCallId=_JSON,
        toolName=_JSON,
        delta=_JSON,
        data=_JSON,
        url=_JSON,
        transient=_JSON,
        messageId=_JSON,
        messageMetadata=_JSON,
        errorText=_JSON,
    ),
    _natives(_JSON, artifactId=_JSON, op=_JSON, text=_JSON),
    _natives(st.sampled_from(["agent_event", "reaction", "artifact"]), name=_JSON, id=_JSON, targetSeq=_JSON, op=_JSON),
)
# Chosen by index, because strategies that are put together with one_of are all equally likely, however deep they were.
_GROUPS: Final = (_TOOLS, _TOOLS, _OTHERS, _LIFE, _REACTIONS, _NONSENSE)


@st.composite
def _moves(draw: st.DrawFn) -> list[Event]:
    choice = draw(st.integers(-5, len(_GROUPS) - 1))
    return draw(_TALK) if choice < 0 else [draw(_GROUPS[choice])]


def logs(*, min_size: int = 0) -> st.SearchStrategy[list[SequencedEvent]]:
    """Random logs of up to 40 events or so, as stores give them."""
    short, long = st.lists(_moves(), min_size=min_size, max_size=6), st.lists(_moves(), min_size=8, max_size=16)
    return st.one_of(short, long).map(chain.from_iterable).map(numbered).filter(lambda log: len(log) >= min_size)
