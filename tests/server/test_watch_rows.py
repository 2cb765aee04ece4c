"""Which rows a message is, and with which counters: alone, without a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from bubble.assembler import BubbleMessage
from bubble.protocol.jsontext import load_json
from bubble.protocol.resources import Principal
from bubble.server.watching.board import BotBoard
from bubble.server.watching.posting import placed
from bubble.server.watching.rows import rows_of
from bubble.server.watching.session import Aside, BotSession
from bubble.server.watching.slices import LAST, Gone, counter_of, numbered_back, seq_behind, seq_of
from bubble.watch.frames import TurnFailed

BOT = Principal(principal_id="bot", kind="bot", display_name="Bot", created_at="2026-01-01T00:00:00.000Z")
TEXT: dict[str, Any] = {"type": "text", "text": "hi", "state": "done"}
TOOL: dict[str, Any] = {"type": "tool-look", "toolCallId": "c", "state": "input-available", "input": 1}
FACT: dict[str, Any] = {"type": "data-bubble-interrupt", "data": {"principalId": "ann"}}


def named(name: str) -> dict[str, Any]:
    return {"type": "data-bubble-agent-event", "data": {"name": name}}


def message(
    *parts: dict[str, Any], id: str = "r", who: str = "bot", first: int = 5, last: int = 9, run: str | None = "r"
) -> BubbleMessage:
    about: dict[str, Any] = {"principalId": who, "firstSeq": first, "lastSeq": last, "createdAt": "now"}
    if run is not None:
        about["runId"] = run
    return {"id": id, "role": "assistant", "parts": list(parts), "metadata": {"bubble": about}}  # type: ignore[typeddict-item]


def kinds(message: BubbleMessage) -> list[tuple[str, str]]:
    return [(row.entry_id, row.kind) for row in rows_of(message, "bot")]


@pytest.mark.requirement("WA-74")
def test_a_message_of_the_bot_is_its_text_and_a_row_for_everything_else() -> None:
    own = message({"type": "step-start"}, TOOL, TEXT, {"type": "reasoning", "text": "hm"}, FACT, named("mood"))
    assert kinds(own) == [
        ("r", "send-message"),
        ("r~part-1", "tool-call"),
        ("r~part-3", "event"),
        ("r~part-4", "event"),
        ("r~part-5", "event"),
    ]


@pytest.mark.requirement("WA-74")
def test_a_message_of_somebody_else_is_what_they_said_and_a_row_for_each_fact() -> None:
    approval = {"type": "data-bubble-approval", "data": {"approved": True}}
    [said, fact, event] = rows_of(message(TEXT, TOOL, approval, named("empty"), who="ann"), "bot")
    assert [(row.entry_id, row.kind) for row in (said, fact, event)] == [
        ("r", "message"),
        ("r~part-2", "approval"),
        ("r~part-3", "event"),
    ]
    assert load_json(said.body) == {
        "kind": "message",
        "id": "r",
        "principalId": "ann",
        "createdAt": "now",
        "runId": "r",
        "role": "assistant",
        "content": "hi",
        "parts": [TOOL],
    }


@pytest.mark.requirement("WA-74")
def test_a_fact_that_belongs_to_no_run_has_the_messages_own_id() -> None:
    title = {"type": "data-bubble-title", "data": {"title": "T"}}
    assert kinds(message(title, id="~7", who="ann", run=None)) == [("~7", "event")]


@pytest.mark.requirement("WA-76")
def test_what_the_bot_says_about_its_session_is_no_row() -> None:
    controls = ["session_cleared", "message_deleted", "computer_actions", "box_state", "state_changed", "empty"]
    assert kinds(message(*map(named, controls))) == []


def rows_after(
    before: Sequence[dict[str, Any] | None], *parts: dict[str, Any], who: str = "bot"
) -> list[tuple[str, object]]:
    """By row id, what is shown of a message that had the parts `before` when the session was cleared: the text, or the part."""
    bodies = [load_json(row.body) for row in rows_of(message(*parts, who=who), "bot", before=before)]
    return [(body["id"], _shown(body)) for body in bodies]  # type: ignore[index, call-overload, misc]


def _shown(body: Any) -> object:  # noqa: ANN401
    return body["message"]["content"] if "message" in body else body.get("content", body.get("part"))


@pytest.mark.requirement("WA-76", "WA-93")
def test_after_a_clear_only_what_came_after_it_in_the_message_is_left() -> None:
    before = [TEXT, TOOL, named("session_cleared")]
    assert rows_after(before, *before) == []
    assert rows_after(before, *before, TEXT | {"text": "new"}, TOOL) == [("r", "new"), ("r~part-4", TOOL)]


@pytest.mark.requirement("WA-93")
@pytest.mark.parametrize(
    ("then", "now", "rest"),
    [
        ("hel", "hello", "lo"),
        ("", "hello", "hello"),
        ("é😀", "é😀ß", "ß"),
        ("a\ud83d", "a😀b", "\ude00b"),  # the halves of a character came one by one
    ],
)
def test_of_a_text_that_was_open_at_a_clear_the_rest_is_shown(then: str, now: str, rest: str) -> None:
    for who, entry_id in (("bot", "r"), ("ann", "r")):
        before = [TEXT | {"text": then, "state": "streaming"}]
        assert rows_after(before, TEXT | {"text": now}, who=who) == [(entry_id, rest)]
    reasoning = {"type": "reasoning", "state": "streaming"}
    [(entry_id, part)] = rows_after([reasoning | {"text": then}], reasoning | {"text": now})
    assert (entry_id, part) == ("r~part-0", reasoning | {"text": rest})


@pytest.mark.requirement("WA-93")
def test_the_end_of_a_text_shows_nothing_of_it_after_a_clear() -> None:
    assert rows_after([TEXT | {"state": "streaming"}], TEXT) == []


@pytest.mark.requirement("WA-93")
def test_a_call_that_was_open_at_a_clear_is_shown_whole_once_it_changes_and_where_it_was() -> None:
    done = TOOL | {"state": "output-available", "output": 2}
    assert rows_after([TEXT, TOOL], TEXT, TOOL) == []
    assert rows_after([TEXT, TOOL], TEXT, done) == [("r~part-1", done)]


@pytest.mark.requirement("WA-93")
def test_what_was_said_again_after_a_clear_is_shown_though_it_is_the_same() -> None:
    assert rows_after([TEXT, FACT, None], TEXT, FACT, FACT) == [("r~part-2", FACT)]


def test_a_number_that_json_cannot_say_is_null_in_a_body() -> None:
    [row] = rows_of(message(TOOL | {"input": float("inf")}), "bot")
    assert load_json(row.body)["part"]["input"] is None  # type: ignore[index, call-overload]


@pytest.mark.requirement("WA-75")
def test_a_counter_tells_its_event_and_the_last_one_of_an_event_says_that_all_is_there() -> None:
    assert counter_of(7) == 7 * 65_536 + 65_535
    assert seq_of(counter_of(7)) == seq_of(counter_of(7, 0)) == 7
    assert seq_behind(counter_of(7)) == 7
    assert seq_behind(counter_of(7, LAST - 1)) == 6
    assert seq_behind(0) == 0


def counters(*messages: BubbleMessage, **deleted: int) -> dict[str, int]:
    told = list(placed(messages, BotSession(BOT, "t"), deleted=deleted, before={}))
    rows = list(numbered_back(reversed(told)))[::-1]
    assert [row.counter for row in rows] == sorted({row.counter for row in rows})
    return {each.row.entry_id: each.counter for each in rows}


@pytest.mark.requirement("WA-75")
def test_no_two_rows_tie_and_the_last_one_of_an_event_has_the_last_number() -> None:
    found = counters(message(TEXT, TOOL, FACT), message(TEXT, id="r~1", first=7), message(TEXT, id="s", last=4), x=9)
    assert found == {
        "s": counter_of(4),
        "r": counter_of(9, LAST - 4),
        "r~part-1": counter_of(9, LAST - 3),
        "r~part-2": counter_of(9, LAST - 2),
        "r~1": counter_of(9, LAST - 1),
        "x": counter_of(9),
    }


@pytest.mark.requirement("WA-75")
def test_of_a_message_with_more_rows_than_an_event_has_numbers_the_newest_are_told_and_none_ties() -> None:
    told = list(placed([message(TEXT, *[TOOL] * 70_000)], BotSession(BOT, "t"), deleted={}, before={}))
    rows = list(numbered_back(reversed(told)))[::-1]
    assert [row.row for row in rows] == [row.row for row in told[-65_536:]]
    assert [row.counter for row in rows] == list(range(counter_of(told[0].seq, 0), counter_of(told[0].seq) + 1))


@pytest.mark.requirement("WA-75", "WA-80")
def test_a_row_that_somebody_has_not_got_never_gets_a_lower_counter_than_what_they_have() -> None:
    three = [message(TEXT, id=f"r~{number}", first=number) for number in (1, 2, 3)]
    before = counters(*three)
    changed = message(TEXT, id="r~1", first=1, last=12)
    after = counters(changed, *three[1:])
    # Whoever has got the first row alone, as it was, still gets the two others, which did not change.
    assert min(after["r~2"], after["r~3"]) > before["r~1"]
    assert (after["r~2"], after["r~3"]) >= (before["r~2"], before["r~3"])


def test_a_board_that_takes_the_place_of_another_goes_on_counting_what_it_told() -> None:
    told = [Aside(seq, TurnFailed(agent_id="bot")) for seq in (3, 4)]
    first = BotBoard(BotSession(BOT, "t"), [], head=4, covers=0, before={}, asides=told, tells_from=0)
    second = BotBoard(BotSession(BOT, "t"), [], head=9, covers=0, before={}, asides=told[1:], tells_from=3, after=first)
    # Whoever was told by the first one has to find out anew what it has not heard.
    assert first.heard < second.forgotten
    assert second.heard_by(counter_of(9)) == second.heard
    assert second.heard_by(counter_of(3)) == second.forgotten


@pytest.mark.requirement("WA-76")
def test_what_was_deleted_or_said_before_the_clear_is_not_posted() -> None:
    session = BotSession(BOT, "t", deleted={"r": 3}, cleared_seq=6)
    cleared = message(TEXT, named("session_cleared"), TEXT, id="s~1", first=6, run="s")
    told = [
        message(TEXT, id="r", first=7),
        message(TEXT, id="q", first=5, run="q"),
        message(TEXT, id="s", who="ann", first=5, run="s"),
        cleared,
    ]
    before = {"s~1": cleared["parts"][:2], "s": told[2]["parts"]}
    rows = [each.row for each in placed(told, session, deleted={"y": 9}, before=before)]
    assert [row.entry_id for row in rows] == ["s~1", "y"]
    assert rows[-1] == Gone("y", 9)
