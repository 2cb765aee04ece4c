"""Whatever an upstream sends and wherever the connection is cut: the reader that resumes has what the reader that stayed has."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubble.protocol.sse import SseDecoder
from bubble.watch import WatchCursor, WatchDecoder, WatchError, encode_event, parse_frame
from bubble.watch.events import WatchEvent
from tests.watch.catalogue import BOT, CATALOGUE, SESSION, body, rows, said

Json = dict[str, Any]


class Upstream:
    """A transcript with its history: generations one after the other, each with rows by counter. It serves any cursor."""

    def __init__(self, generations: Sequence[Sequence[Json]], *, batch: int, overlap: int) -> None:
        self._generations = generations
        self._batch = batch
        self._overlap = overlap

    def frames(self, cursor: WatchCursor | None) -> list[Json]:
        first = 0 if cursor is None else cursor.generation
        frames: list[Json] = [{"connected": {}}]
        for generation in range(first, len(self._generations)):
            if generation > first and generation % 2:
                frames.append({"cleared": {"agentId": BOT, "sessionId": SESSION, "newGeneration": generation}})
            after = cursor.after_updated_seq if cursor is not None and generation == first else 0
            frames += self._batches(generation, after)
        return frames

    def _batches(self, generation: int, after: int) -> list[Json]:
        wanted = [row for row in self._generations[generation] if row["updatedSeq"] > after - self._overlap]
        frames = []
        for start in range(0, max(1, len(wanted)), self._batch):
            some = wanted[start : start + self._batch]
            frames.append(
                rows(
                    *(row for row in some if "isDelete" not in row),
                    deletes=[row for row in some if "isDelete" in row],
                    generation=generation,
                )
            )
        return frames


@st.composite
def histories(draw: st.DrawFn) -> list[list[Json]]:
    def row(counter: int) -> Json:
        which = f"e{draw(st.integers(1, 6))}"
        kind = draw(st.sampled_from(["text", "entry", "gone", "omitted", "broken"]))
        base: Json = {"seq": counter, "updatedSeq": counter, "entryId": which}
        if kind == "text":
            return {**said(counter, draw(st.text(max_size=5))), **base}
        if kind == "gone":
            return {**base, "isDelete": True}
        return {**base, "body": {"entry": body({"n": counter}), "omitted": None, "broken": "e30x"}[kind]}

    generations: list[list[Json]] = []
    for _ in range(draw(st.integers(1, 4))):
        counters = sorted(draw(st.sets(st.integers(1, 30) | st.just(9007199254740993), max_size=8)))
        generations.append([row(counter) for counter in counters])
    return generations


def watched(upstream: Upstream, cursor: WatchCursor | None) -> list[WatchEvent]:
    decoder = WatchDecoder(bot_id=BOT, session_id=SESSION, cursor=cursor)
    return [event for frame in upstream.frames(cursor) for event in decoder.decode(frame)]


def placed(events: Sequence[WatchEvent]) -> list[bytes]:
    return [encode_event(event) for event in events if event.id is not None]


@pytest.mark.requirement("WA-31", "WA-69")
@given(histories(), st.integers(1, 9), st.integers(0, 9))
def test_cut_at_any_id_and_resumed_the_sequence_is_the_uninterrupted_one(
    history: list[list[Json]], batch: int, overlap: int
) -> None:
    upstream = Upstream(history, batch=batch, overlap=overlap)
    whole = [event for event in watched(upstream, None) if event.id is not None]
    for index, event in enumerate(whole):
        assert event.id is not None
        rest = watched(upstream, WatchCursor.decode(event.id))
        assert placed(whole[: index + 1]) + placed(rest) == placed(whole)


@pytest.mark.slow
@pytest.mark.requirement("WA-69")
def test_a_history_of_500_rows_with_deletes_resets_and_unavailable_rows_can_be_cut_after_every_id() -> None:
    def row(counter: int) -> Json:
        base: Json = {"seq": counter, "updatedSeq": counter, "entryId": f"e{counter % 40}"}
        if counter % 7 == 0:
            return {**base, "isDelete": True}
        return {**base, "bodyOmitted": True} if counter % 11 == 0 else {**said(counter, f"text {counter}"), **base}

    upstream = Upstream([[row(counter) for counter in range(1, 101)] for _ in range(5)], batch=13, overlap=5)
    whole = [event for event in watched(upstream, None) if event.id is not None]
    assert len(whole) == 504
    for index, event in enumerate(whole):
        assert event.id is not None
        rest = watched(upstream, WatchCursor.decode(event.id))
        assert [each for each in rest if each.id is not None] == whole[index + 1 :]


@pytest.mark.requirement("WA-69")
@given(histories(), st.lists(st.integers(0, 12), max_size=4))
def test_cut_several_times_nothing_is_lost_or_repeated(history: list[list[Json]], stays: list[int]) -> None:
    upstream = Upstream(history, batch=3, overlap=2)
    whole = placed(watched(upstream, None))
    got: list[bytes] = []
    cursor: WatchCursor | None = None
    for stay in [*stays, 1_000]:
        events = [event for event in watched(upstream, cursor) if event.id is not None][:stay]
        got += placed(events)
        if events:
            assert events[-1].id is not None
            cursor = WatchCursor.decode(events[-1].id)
    assert got == whole


@pytest.mark.requirement("WA-26", "WA-70")
@given(st.lists(st.text(st.characters(codec=None, categories=None)), min_size=1, max_size=5), st.data())
def test_any_text_comes_out_as_it_went_in_however_the_bytes_are_cut(texts: list[str], data: st.DataObject) -> None:
    decoder = WatchDecoder(bot_id=BOT, session_id=SESSION)
    frame = rows(*(said(number, text) for number, text in enumerate(texts, start=1)))
    stream = b"".join(encode_event(event) for event in decoder.decode(frame))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    reader = SseDecoder()
    events = [
        event
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)
        for event in reader.feed(stream[start:end])
    ]
    # What a pair of surrogates is called is the one freedom that JSON leaves.
    expected = [json.loads(json.dumps(text)) for text in texts]
    assert [json.loads(event.data)["text"] for event in events] == expected


@pytest.mark.requirement("WA-66", "WA-71")
@given(st.text(st.characters(codec=None, categories=None)))
def test_readers_that_split_lines_the_python_way_see_the_same_lines(text: str) -> None:
    [event] = WatchDecoder(bot_id=BOT, session_id=SESSION).decode(rows(said(1, text)))
    record = encode_event(event)
    assert record.isascii()
    lines = record.decode().splitlines()
    assert [line.partition(":")[0] for line in lines] == ["event", "id", "data", ""]
    assert json.loads(lines[2].removeprefix("data: "))["text"] == json.loads(json.dumps(text))


def _members(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    return st.dictionaries(st.sampled_from(MEMBERS), values, max_size=6)


#: Numbers of all kinds as texts, which stand in the JSON where a string has their name.
DIGITS = ["0", "-0", "1.0", "22", "1e3", "1e400", "-1e400", "9" * 5_000, "18446744073709551615", "1.5", "1e-400", "-1"]
MEMBERS = sorted(
    {"sinceMs", "nobodyKnows"}
    | {name for line in CATALOGUE for frame in line.frame.values() for name in frame}
    | {"seq", "updatedSeq", "entryId", "body", "blobHash", "bodyOmitted", "type", "x", "count", "button", "atMs"}
)
SCALARS = st.sampled_from([None, True, "", BOT, SESSION, "e30=", "22", "\ud800"]) | st.sampled_from(DIGITS).map(
    "#".__add__
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | _members(inner), max_leaves=12)


@pytest.mark.requirement("WA-51", "WA-52")
@given(st.sampled_from([name for line in CATALOGUE for name in line.frame]), _members(VALUES))
def test_whatever_a_frame_holds_it_is_refused_as_such_or_its_events_can_be_written(name: str, members: Json) -> None:
    own = {"agentId": BOT, "sessionId": SESSION}
    text = re.sub(r'"#([^"]*)"', r"\1", json.dumps({name: own | members}))
    decoder = WatchDecoder(bot_id=BOT, session_id=SESSION)
    try:
        frame = parse_frame(text.encode())
    except WatchError as refused:
        if refused.code != "protocol_error":
            raise
        frame = None
    for event in decoder.decode(frame) if frame is not None else ():
        [told] = SseDecoder().feed(encode_event(event))
        assert "Infinity" not in told.data
        json.loads(told.data)


@pytest.mark.requirement("WA-70")
@given(st.binary(max_size=200), st.data())
def test_the_decoder_gives_the_same_events_for_any_chunking_of_any_bytes(stream: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    whole, pieces = SseDecoder(), SseDecoder()
    expected = whole.feed(stream)
    got = [
        event
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)
        for event in pieces.feed(stream[start:end])
    ]
    assert got == expected
    assert (pieces.last_event_id, pieces.retry_ms) == (whole.last_event_id, whole.retry_ms)
