"""What the reference of messages says in tables and pictures, the assembler does."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pytest

from bubble.assembler import BubbleMessage, Grouping, create_assembler
from bubble.assembler.chunks import _SHAPES
from bubble.extensions.artifacts import ArtifactHandler
from tests.docs.markdown import ROOT

PAGE = (ROOT / "docs" / "reference" / "messages.md").read_text(encoding="utf-8")
ASSEMBLER = create_assembler(part_handlers=[ArtifactHandler()])

pytestmark = pytest.mark.anyio

Event = dict[str, object]


def event(type: str, who: str | None = "helper", /, **members: object) -> Event:
    """An event of the run r, or of no run for who is None."""
    return {"type": type} | ({} if who is None else {"principalId": who, "runId": "r"}) | members


def chunk(type: str, who: str = "helper", /, **members: object) -> Event:
    return event("message_part", who, part={"type": type, **members}, version="ai-sdk-v6")


def native(kind: str, /, **members: object) -> Event:
    return event("message_part", part={"kind": kind, **members}, version="bubble-v1")


async def messages(events: Sequence[Event], grouping: Grouping = "speaker") -> Sequence[BubbleMessage]:
    return (await ASSEMBLER.assemble(numbered(events), grouping=grouping)).messages


def rows(heading: str) -> dict[str, list[str]]:
    """The cells of the first table below a heading, by the first cell."""
    section = PAGE.split(f"{heading}\n", 1)[1]
    (lines, *_) = re.findall(r"(?:^\|.*\|\n)+", section, re.MULTILINE)
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines.splitlines()]
    return {first: rest for first, *rest in cells[2:]}


# --- Bubble's own parts -----------------------------------------------------------------------------------------------------------------

CALL = chunk("tool-input-available", toolCallId="c", toolName="refund", input={})
OWN_PARTS: Mapping[str, Sequence[Sequence[Event]]] = {
    "data-bubble-approval": [
        [CALL, event("tool_call_approval", "alice", toolCallId="c", approved=True)],
        [CALL, event("tool_call_approval", "alice", toolCallId="c", approved=False, reason="no")],
    ],
    "data-bubble-tool-result": [[CALL, event("tool_call_result", "alice", toolCallId="c", input={}, output=1)]],
    "data-bubble-interrupt": [[event("run_interrupt_requested", "alice")]],
    "data-bubble-participant": [
        [event("participant_joined", None, principalId="bob", byPrincipalId="alice")],
        [event("participant_left", None, principalId="bob", byPrincipalId="alice")],
    ],
    "data-bubble-title": [[event("thread_title_updated", None, title="T", byPrincipalId="alice")]],
    "data-bubble-agent-event": [[native("agent_event", name="empty")], [native("agent_event", name="n", data=1)]],
    "data-bubble-artifact": [
        [native("artifact", artifactId="a", op="create", **content, name="n", mediaType="text/plain")]
        for content in ({}, {"text": "t"}, {"data": 1}, {"url": "https://example.com"})
    ]
    + [[native("artifact", artifactId="a", op="replace")], [native("artifact", artifactId="a", op="delete")]],
    "data-bubble-extension": [[native("unheard-of", x=1)], [native("agent_event", name="")]],
}


def shape_of(cell: str) -> tuple[set[str], set[str]]:
    """The members that are always there and all members, from `{a, b?}` or several such."""
    shapes = [shape.split(", ") for shape in re.findall(r"\{([^}]*)\}", cell)]
    always = set.intersection(*({name for name in shape if not name.endswith("?")} for shape in shapes))
    return always, {name.rstrip("?") for shape in shapes for name in shape}


def test_every_part_of_bubbles_own_is_in_the_table() -> None:
    assert {code.strip("`") for code in rows("### Bubble's own parts")} == set(OWN_PARTS)


@pytest.mark.parametrize("kind", [kind for kind in OWN_PARTS if kind != "data-bubble-extension"])
async def test_a_part_of_bubbles_own_holds_what_the_table_says(kind: str) -> None:
    always, members = shape_of(rows("### Bubble's own parts")[f"`{kind}`"][0])
    seen = []
    for events in OWN_PARTS[kind]:
        shown = [part for message in await messages(events) for part in message["parts"] if part["type"] == kind]
        assert len(shown) == 1
        data = shown[0]["data"]
        assert isinstance(data, dict)
        seen.append(set(data))
    assert set.intersection(*seen) == always
    assert set.union(*seen) == members


@pytest.mark.parametrize("events", OWN_PARTS["data-bubble-extension"])
async def test_an_unknown_part_is_shown_whole(events: Sequence[Event]) -> None:
    [message] = await messages(events)
    assert message["parts"] == [{"type": "data-bubble-extension", "data": events[0]["part"]}]


# --- who speaks -------------------------------------------------------------------------------------------------------------------------

BEFORE = [
    event("run_started", kind="agent_work"),
    chunk("start-step"),
    chunk("text-start", id="t"),
    chunk("reasoning-start", id="r"),
    chunk("data-x", id="d", data=1),
    chunk("tool-input-start", toolCallId="s", toolName="refund"),
    CALL,
    chunk("file", "alice", url="https://example.com/a.png", mediaType="image/png"),
]
FILE = {"url": "https://example.com/b.png", "mediaType": "image/png"}
NEW_CALL = {"toolCallId": "new", "toolName": "refund", "input": {}}
SPEAKING: Mapping[str, Sequence[Event]] = {
    "text-start": [chunk("text-start", id="new")],
    "reasoning-start": [chunk("reasoning-start", id="new")],
    "file": [chunk("file", **FILE)],
    "source-url": [chunk("source-url", sourceId="s", url="https://example.com")],
    "source-document": [chunk("source-document", sourceId="s", mediaType="text/plain", title="T")],
    "text-delta": [chunk("text-delta", id="t", delta="x")],
    "reasoning-delta": [chunk("reasoning-delta", id="r", delta="x")],
    "data-*": [chunk("data-x", data=2), chunk("data-x", id="new", data=2), chunk("data-y", id="d", data=2)],
    "tool-input-start": [chunk("tool-input-start", **NEW_CALL)],
    "tool-input-available": [chunk("tool-input-available", **NEW_CALL)],
    "tool-input-error": [chunk("tool-input-error", **NEW_CALL, errorText="no JSON")],
    "tool_call_approval": [event("tool_call_approval", "bob", toolCallId="c", approved=True)],
    "tool_call_result": [event("tool_call_result", "bob", toolCallId="c", input={}, output=1)],
    "run_interrupt_requested": [event("run_interrupt_requested", "bob")],
}
OLD_CALL = {"toolCallId": "c", "toolName": "refund", "input": {}}
SILENT: Mapping[str, Sequence[Event]] = {
    "text-delta": [chunk("text-delta", id="t", delta="")],
    "reasoning-delta": [chunk("reasoning-delta", id="r", delta="")],
    "text-end": [chunk("text-end", id="t")],
    "reasoning-end": [chunk("reasoning-end", id="r")],
    "data-*": [chunk("data-x", id="d", data=2), chunk("data-x", data=2, transient=True)],
    "tool-input-start": [chunk("tool-input-start", toolCallId="s", toolName="refund")],
    "tool-input-delta": [chunk("tool-input-delta", toolCallId="s", inputTextDelta="{")],
    "tool-input-available": [chunk("tool-input-available", **OLD_CALL)],
    "tool-input-error": [chunk("tool-input-error", **OLD_CALL, errorText="no JSON")],
    "tool-approval-request": [chunk("tool-approval-request", toolCallId="c", approvalId="c")],
    "tool-output-available": [chunk("tool-output-available", toolCallId="c", output=1)],
    "tool-output-error": [chunk("tool-output-error", toolCallId="c", errorText="no")],
    "tool-output-denied": [chunk("tool-output-denied", toolCallId="c")],
    "start": [chunk("start", messageId="m"), chunk("start", messageMetadata={"model": "m"})],
    "message-metadata": [chunk("message-metadata", messageMetadata={"model": "m"})],
    "finish": [chunk("finish", messageMetadata={"model": "m"})],
    "start-step": [chunk("start-step")],
    "finish-step": [chunk("finish-step")],
    "error": [chunk("error", errorText="no")],
    "abort": [chunk("abort")],
    "tool_call_approval": [event("tool_call_approval", "bob", toolCallId="unknown", approved=True)],
    "tool_call_result": [event("tool_call_result", "bob", toolCallId="unknown", input={}, output=1)],
    "reaction": [native("reaction", targetSeq=3, emoji="👍", op="add")],
    "run_finished": [event("run_finished")],
}


def test_the_table_of_what_speaks_names_everything_that_does() -> None:
    cells = rows("otherwise a continuation opens. These speak, and so may open a message:")
    assert {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)} == set(SPEAKING)
    assert {*_SHAPES, "data-*"} <= {*SPEAKING, *SILENT}


@pytest.mark.parametrize(("name", "index"), [(name, i) for name, each in SPEAKING.items() for i in range(len(each))])
async def test_what_speaks_opens_a_message_after_somebody_else_spoke(name: str, index: int) -> None:
    assert [message["id"] for message in await messages([*BEFORE, SPEAKING[name][index]])] == ["r", "r~1", "r~2"]


@pytest.mark.parametrize(("name", "index"), [(name, i) for name, each in SILENT.items() for i in range(len(each))])
async def test_what_does_not_speak_opens_no_message(name: str, index: int) -> None:
    assert [message["id"] for message in await messages([*BEFORE, SILENT[name][index]])] == ["r", "r~1"]


# --- the pictures -----------------------------------------------------------------------------------------------------------------------


def picture(page: str, number: int) -> str:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return text.split("<!-- not run: a picture -->\n")[number + 1].split("```")[1]


def numbered(events: Sequence[Event]) -> list[Event]:
    return [
        {"seq": seq, "createdAt": f"2026-05-06T12:00:00.{seq:03}Z", **each} for seq, each in enumerate(events, start=1)
    ]


def texts(shown: Sequence[BubbleMessage]) -> list[str]:
    return ["".join(str(part["text"]) for part in message["parts"]) for message in shown]


def conversation(*lines: tuple[str, str]) -> list[Event]:
    """Runs and what is said in them; every run is one text, and goes on while the others speak."""
    log: list[Event] = []
    for run, words in lines:
        who = "helper" if run == "answer-1" else "alice"
        if run not in [each["runId"] for each in log]:
            log += [event("run_started", who), chunk("text-start", who, id="t")]
        log += [chunk("text-delta", who, id="t", delta=words)]
        log = [{**each, "runId": run} if each["runId"] == "r" else each for each in log]
    return log


@pytest.mark.parametrize(
    ("grouping", "shown"),
    [
        ("speaker", ["answer-1   Sending it", "run-2      No insurance!", "answer-1~1 costs 8 euros."]),
        ("run", ["answer-1   Sending it costs 8 euros.", "run-2      No insurance!"]),
    ],
)
async def test_the_reference_shows_what_both_groupings_make_of_an_interruption(
    grouping: Grouping, shown: Sequence[str]
) -> None:
    log = conversation(("answer-1", "Sending it "), ("run-2", "No insurance!"), ("answer-1", "costs 8 euros."))
    found = await messages(log, grouping)
    rows = zip([message["id"] for message in found], texts(found), strict=True)
    assert [f"{name:10} {text.strip()}" for name, text in rows] == shown
    assert all(row in picture("reference/messages.md", 0) for row in shown)


@pytest.mark.parametrize(
    ("grouping", "shown"),
    [
        ("speaker", ["What is it?", "It is ", "Be brief!", "red and blue."]),
        ("run", ["What is it?", "It is red and blue.", "Be brief!"]),
    ],
)
async def test_why_shows_the_two_accounts_of_an_interruption(grouping: Grouping, shown: Sequence[str]) -> None:
    lines = [("run-1", "What is it?"), ("answer-1", "It is "), ("run-2", "Be brief!"), ("answer-1", "red ")]
    found = await messages(conversation(*lines, ("answer-1", "and blue.")), grouping)
    assert texts(found) == shown
    for message, text in zip(found, shown, strict=True):
        author = message["metadata"]["bubble"]["principalId"]
        assert f"{author:6} {text.strip()}" in picture("why.md", 0)


@pytest.mark.parametrize(("cleared", "window"), [(0, '"hello" 👍'), (2, '"lo"'), (3, "(empty)")])
async def test_why_shows_what_a_window_has_after_each_line(cleared: int, window: str) -> None:
    reaction = event("message_part", "alice", version="bubble-v1", part=REACTION)
    log = [chunk("text-start", id="t"), chunk("text-delta", id="t", delta="hel")]
    log += [chunk("text-delta", id="t", delta="lo"), reaction, event("run_finished")]
    thread = ASSEMBLER.open()
    await thread.apply(numbered(log))
    await thread.clear_window(cleared)
    found = [describe(message) for message in (await thread.window()).messages] or ["(empty)"]
    assert found == [window]
    assert re.search(rf"window  {re.escape(window)} +snapshot", picture("why.md", 1))
    assert [describe(message) for message in (await thread.snapshot()).messages] == ['"hello" 👍']


REACTION = {"kind": "reaction", "targetSeq": 2, "emoji": "👍", "op": "add"}


def describe(message: BubbleMessage) -> str:
    emojis = message["metadata"]["bubble"].get("reactions", {})
    return " ".join([f'"{texts([message])[0]}"', *emojis])
