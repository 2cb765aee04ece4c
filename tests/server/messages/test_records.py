"""Messages as server-sent events: slices, ids, removals, and what JSON has no word for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubble.assembler import BubbleMessage, MessageChanges
from bubble.protocol.sse import SseDecoder, SseEvent
from bubble.server.messages import records
from bubble.server.messages.board import Board
from bubble.server.messages.encoding import message_json
from bubble.server.messages.forms import Form
from bubble.server.messages.growing import Growing
from bubble.server.messages.records import Change, Paged, cut_slice
from bubble.store.memory import MemoryStore
from tests.server.messages.logs import Writer
from tests.server.messages.views import THREAD, a_view


def message(id: str, *, first: int = 1, last: int = 1, text: str = "") -> BubbleMessage:
    bubble = {"firstSeq": first, "lastSeq": last}
    made = {"id": id, "role": "user", "parts": [{"type": "text", "text": text}], "metadata": {"bubble": bubble}}
    return cast("BubbleMessage", made)


def events_of(data: bytes) -> list[SseEvent]:
    return SseDecoder().feed(data)


# --- slices of changes ------------------------------------------------------------------------------------------------------------


def sliced(changes: Sequence[Change], head: int) -> list[tuple[list[SseEvent], int]]:
    """All slices that a viewer gets who has none of the changes, each with its position."""
    found, position = [], 0
    while rest := [change for change in changes if change[0] > position]:
        part = cut_slice(rest, head=head, form=Form("json"))
        position = part.position
        found.append((events_of(part.data), position))
    return found


@pytest.mark.requirement("PR-6-27")
@given(
    seqs=st.lists(st.integers(1, 12), min_size=1, max_size=12).map(sorted),
    sizes=st.lists(st.integers(0, 60), min_size=12, max_size=12),
    most=st.integers(100, 500),
)
def test_a_viewer_that_gets_slice_by_slice_gets_every_change_once_and_can_come_back_from_each_id(
    seqs: list[int], sizes: list[int], most: int
) -> None:
    changes: list[Change] = [
        (seq, message(str(place), first=20 - place, last=seq, text="x" * sizes[place]))
        for place, seq in enumerate(seqs)
    ]
    with pytest.MonkeyPatch.context() as small:
        small.setattr(records, "SLICE_BYTES", most)
        slices = sliced(changes, head=20)
    told = [json.loads(event.data)["id"] for events, _ in slices for event in events]
    assert sorted(told) == sorted(str(place) for place in range(len(seqs)))
    assert slices[-1][1] == 20
    for events, position in slices:
        lasts = [json.loads(event.data)["metadata"]["bubble"]["lastSeq"] for event in events]
        assert events[-1].id == str(max(lasts))
        assert position in (max(lasts), 20)
    # Whoever has got an id has got every change up to there.
    for number, (events, _) in enumerate(slices):
        got = sum(len(events) for events, _ in slices[: number + 1])
        assert got == sum(seq <= int(events[-1].id) for seq in seqs)


def test_within_a_slice_messages_are_in_their_own_order_and_only_the_last_has_an_id() -> None:
    changes: list[Change] = [(5, message("new", first=5, last=5)), (7, message("old", first=2, last=7))]
    part = cut_slice(changes, head=9, form=Form("json"))
    assert [json.loads(event.data)["id"] for event in events_of(part.data)] == ["old", "new"]
    assert part.data.count(b"id: ") == 1
    assert (events_of(part.data)[-1].id, part.position) == ("7", 9)


@pytest.mark.requirement("PR-6-27")
def test_a_message_that_is_gone_is_told_by_its_id() -> None:
    part = cut_slice([(5, message("here", first=5, last=5)), (6, 'gone "~1')], head=6, form=Form("json"))
    here, gone = events_of(part.data)
    assert (here.event, gone.event, gone.id) == ("message", "message.removed", "6")
    assert json.loads(gone.data) == {"id": 'gone "~1'}


@pytest.mark.anyio
async def test_a_board_tells_of_removals_whoever_had_not_heard_of_them() -> None:
    store = MemoryStore()
    writer = Writer(store, THREAD)
    await writer.say("a")
    view = a_view(store)
    growing = await Growing.with_messages(view, 50, head=4)
    board = Board(growing)
    await growing.grow(await view.log.texts(5, await writer.say("b")))
    board.show(growing, MessageChanges((), ("a",)))
    part = board.after(4)
    assert part is not None
    assert [(event.event, event.data, event.id) for event in events_of(part.data)] == [
        ("message.removed", '{"id":"a"}', "8")
    ]
    assert board.after(8) is None


# --- pages ------------------------------------------------------------------------------------------------------------------------


@given(sizes=st.lists(st.integers(0, 300), max_size=10), most=st.integers(50, 1_000))
def test_a_page_comes_in_its_order_in_slices_and_only_its_last_message_has_an_id(sizes: list[int], most: int) -> None:
    messages = [message(str(place), text="x" * size) for place, size in enumerate(sizes)]
    with pytest.MonkeyPatch.context() as small:
        small.setattr(records, "SLICE_BYTES", most)
        page = Paged(messages, head=77, form=Form("json"))
        slices: list[bytes] = []
        while (part := page.slice(len(slices))) is not None:
            slices.append(part)
    assert all(page.slice(number) is part for number, part in enumerate(slices))
    events = events_of(b"".join(slices))
    assert [json.loads(event.data)["id"] for event in events] == [str(place) for place in range(len(sizes))]
    assert [event.id for event in events] == [""] * (len(sizes) - 1) + ["77"] * bool(sizes)
    assert all(len(part) <= most + 500 for part in slices)


# --- texts ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("half", ["", "\ud83d", 'say "\udc00 Infinity, NaN\\"'])
def test_what_is_no_number_in_json_is_null_and_strings_are_left_alone(half: str) -> None:
    value = {"a": float("inf"), "b": [float("nan"), -float("inf"), 1.5, -0.0, 10**30], "c": half, "NaN": "-Infinity"}
    text = message_json(value)
    assert json.loads(text) == {"a": None, "b": [None, None, 1.5, -0.0, 10**30], "c": half, "NaN": "-Infinity"}
    assert b"\n" not in text
    assert b"\r" not in text


@pytest.mark.parametrize("half", ["", "\ud83d"])
def test_a_message_nests_as_deeply_as_an_event_may(half: str) -> None:
    value: object = half
    for _ in range(512):
        value = [value]
    assert json.loads(message_json({"parts": [value]}))["parts"] == [value]


def test_a_line_never_ends_within_a_message() -> None:
    text = "a\r\nb\nc\rd\u2028e\u2029f\x85g\x00h"
    part = cut_slice([(1, message("m", text=text))], head=1, form=Form("json"))
    [event] = events_of(part.data)
    assert json.loads(event.data)["parts"][0]["text"] == text


def test_a_message_is_written_once_as_long_as_it_is_the_same() -> None:
    form = Form("json")
    one, other = message("m", text="x"), message("m", text="y")
    assert form.encode(one) is form.encode(one)
    assert json.loads(form.encode(other))["parts"][0]["text"] == "y"
    assert json.loads(form.encode(one))["parts"][0]["text"] == "x"


def test_what_was_written_is_remembered_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bubble.server.messages.forms.REMEMBERED_BYTES", 1_000)
    form = Form("json")
    for number in range(50):
        form.encode(message(str(number), text="x" * 150))
        form.encode(message("long", text="x" * 2_000))
    assert form._size <= 1_000
    assert form._size == sum(len(text) for _, text in form._written.values())
