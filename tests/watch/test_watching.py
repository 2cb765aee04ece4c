"""`watch_bot`: how a watch begins, goes on, and ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from bubble.client.backoff import Backoff
from bubble.protocol.errors import ERROR_CODES, error_from_code
from bubble.watch import RecordedSource, WatchCursor, WatchError, watch_bot
from bubble.watch.errors import WATCH_ERROR_CODES, WatchErrorCode, code_of, upstream_code
from bubble.watch.events import WatchEvent
from tests.watch.catalogue import BOT, CATALOGUE, SESSION, cursor_text, rows, said
from tests.watch.passing import passing_time
from tests.watch.upstreams import Held, Taking

pytestmark = pytest.mark.anyio

AT_ONCE = Backoff(random=lambda: 0.0)
STALE = {"cursorTooOld": {"agentId": BOT, "sessionId": SESSION}}


async def ids(events: object) -> list[str | None]:
    return [event.id async for event in events]  # type: ignore[attr-defined]


@pytest.mark.requirement("WA-31", "WA-63")
@pytest.mark.parametrize("resume_from", ["nonsense", cursor_text(1, bot="other"), cursor_text(1, session="other")])
async def test_a_bad_cursor_is_refused_before_anything_is_opened(resume_from: str) -> None:
    source = Held()
    with pytest.raises(WatchError) as refused:
        watch_bot(source, bot_id=BOT, session_id=SESSION, resume_from=resume_from)
    assert refused.value.code == "invalid_cursor"
    assert source.opened == []


@pytest.mark.requirement("WA-63")
@pytest.mark.parametrize("resume_from", [None, ""])
async def test_without_a_cursor_a_watch_is_fresh(resume_from: str | None) -> None:
    source = Taking([rows(said(1))])
    watch = watch_bot(source, bot_id=BOT, session_id=SESSION, resume_from=resume_from)
    assert watch.cursor is None
    assert await ids(watch) == [cursor_text(1)]
    assert source.opened == [None]


@pytest.mark.requirement("WA-31")
async def test_an_events_id_is_where_the_next_watch_goes_on() -> None:
    source = Taking([rows(said(1), said(2), said(3))], [rows(said(2), said(3), said(4))])
    first = await anext(watch := watch_bot(source, bot_id=BOT, session_id=SESSION))
    await watch.aclose()
    assert watch.cursor == first.id == cursor_text(1)
    again = watch_bot(source, bot_id=BOT, session_id=SESSION, resume_from=first.id)
    assert await ids(again) == [cursor_text(2), cursor_text(3), cursor_text(4)]
    assert source.opened == [None, WatchCursor.decode(cursor_text(1))]
    assert again.cursor == cursor_text(4)


@pytest.mark.requirement("WA-61")
async def test_a_clean_end_ends_the_iteration() -> None:
    source = Held()
    source.put(rows(said(1)), None)
    assert len(await ids(watch_bot(source, bot_id=BOT, session_id=SESSION))) == 1
    assert source.closed == 1


@pytest.mark.requirement("WA-09", "WA-55")
async def test_resync_required_ends_the_iteration_whatever_the_wire_does_next() -> None:
    source = Held()
    source.put(STALE, WatchError("internal", "too late"))
    events = [event async for event in watch_bot(source, bot_id=BOT, session_id=SESSION)]
    assert [event.type for event in events] == ["resync-required"]
    assert (source.pulled, source.closed) == (1, 1)


@pytest.mark.requirement("WA-61", "WA-65")
@pytest.mark.parametrize("code", ["stream_truncated", "protocol_error", "unavailable", "permission_denied"])
async def test_every_other_end_is_raised(code: WatchErrorCode) -> None:
    source = Held()
    source.put(rows(said(1)), WatchError(code, "because"))
    watch = watch_bot(source, bot_id=BOT, session_id=SESSION)
    await anext(watch)
    with pytest.raises(WatchError, match="because") as ended:
        await anext(watch)
    assert ended.value.code == code
    assert source.closed == 1


@pytest.mark.requirement("WA-61")
async def test_a_frame_that_is_none_ends_the_watch_and_closes_the_source() -> None:
    source = Held()
    source.put({"rows": {}, "cleared": {}})
    with pytest.raises(WatchError) as ended:
        await ids(watch_bot(source, bot_id=BOT, session_id=SESSION))
    assert ended.value.code == "protocol_error"
    assert source.closed == 1


@pytest.mark.requirement("WA-61")
async def test_a_source_that_says_nothing_for_a_minute_has_stalled() -> None:
    source = Held()
    with passing_time() as time:
        watch = watch_bot(source, bot_id=BOT, session_id=SESSION)
        step = asyncio.ensure_future(anext(watch))
        await time.by(0)
        await time.by(59)
        source.put({"heartbeat": {}})
        assert (await step).type == "heartbeat"
        step = asyncio.ensure_future(anext(watch))
        await time.by(0)
        await time.by(59)
        assert not step.done()
        await time.by(2)
        assert step.done()
        with pytest.raises(WatchError) as ended:
            await step
    assert ended.value.code == "stalled"
    assert source.closed == 1


@pytest.mark.requirement("WA-61")
async def test_the_time_that_a_reader_takes_is_not_the_sources_silence() -> None:
    source = Held()
    source.put({"heartbeat": {}}, {"heartbeat": {}})
    with passing_time() as time:
        watch = watch_bot(source, bot_id=BOT, session_id=SESSION)
        await anext(watch)
        await time.by(3_600)
        assert (await anext(watch)).type == "heartbeat"
        await watch.aclose()


@pytest.mark.requirement("WA-67")
async def test_leaving_the_block_closes_the_source() -> None:
    source = Held()
    source.put({"heartbeat": {}})
    async with watch_bot(source, bot_id=BOT, session_id=SESSION) as watch:
        await anext(watch)
        assert source.closed == 0
    assert source.closed == 1
    await watch.aclose()


@pytest.mark.requirement("WA-61")
async def test_a_timeout_of_the_source_itself_is_its_own() -> None:
    source = Held()
    source.put(TimeoutError("mine"))
    with pytest.raises(TimeoutError, match="mine"):
        await ids(watch_bot(source, bot_id=BOT, session_id=SESSION))


# --- reconnecting ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("WA-62")
async def test_a_reconnecting_watch_goes_on_from_its_newest_cursor_each_time() -> None:
    lost = WatchError("stream_truncated", "cut")
    source = Taking([rows(said(1), said(2)), lost], [lost], [rows(said(2), said(3)), lost], [rows(said(4))])
    watch = watch_bot(source, bot_id=BOT, session_id=SESSION, reconnecting=True, backoff=AT_ONCE)
    assert await ids(watch) == [cursor_text(1), cursor_text(2), cursor_text(3), cursor_text(4)]
    assert source.opened == [None, *(WatchCursor.decode(cursor_text(after)) for after in (2, 2, 3))]


@pytest.mark.requirement("WA-61", "WA-62")
async def test_by_itself_a_watch_does_not_reconnect() -> None:
    source = Taking([WatchError("unavailable", "gone")], [])
    with pytest.raises(WatchError):
        await ids(watch_bot(source, bot_id=BOT, session_id=SESSION))
    assert len(source.opened) == 1


@pytest.mark.requirement("WA-62")
@pytest.mark.parametrize("code", WATCH_ERROR_CODES)
async def test_only_what_may_pass_is_waited_for(code: WatchErrorCode) -> None:
    passing = {"stream_truncated", "stalled", "unavailable", "resource_exhausted", "deadline_exceeded", "aborted"}
    assert WatchError(code, "x").may_pass is (code in passing)
    source = Taking([WatchError(code, "x")], [rows(said(1))])
    watch = watch_bot(source, bot_id=BOT, session_id=SESSION, reconnecting=True, backoff=AT_ONCE)
    if code in passing:
        assert await ids(watch) == [cursor_text(1)]
    else:
        with pytest.raises(WatchError):
            await ids(watch)
        assert len(source.opened) == 1


@pytest.mark.requirement("WA-62")
async def test_what_was_found_out_here_does_not_pass_whatever_its_code() -> None:
    source = Taking([WatchError("resource_exhausted", "too large to be held", may_pass=False)], [rows(said(1))])
    with pytest.raises(WatchError, match="too large"):
        await ids(watch_bot(source, bot_id=BOT, session_id=SESSION, reconnecting=True, backoff=AT_ONCE))
    assert len(source.opened) == 1


@pytest.mark.requirement("WA-62")
async def test_an_error_that_is_none_of_a_watch_does_not_pass() -> None:
    source = Taking([KeyError("a bug")], [rows(said(1))])
    with pytest.raises(KeyError):
        await ids(watch_bot(source, bot_id=BOT, session_id=SESSION, reconnecting=True, backoff=AT_ONCE))
    assert len(source.opened) == 1


@pytest.mark.requirement("WA-61", "WA-62")
@pytest.mark.parametrize("last", [[], [STALE]])
async def test_a_clean_end_is_the_end_of_a_reconnecting_watch(last: list[dict[str, object]]) -> None:
    source = Taking(last)
    events = [e async for e in watch_bot(source, bot_id=BOT, session_id=SESSION, reconnecting=True, backoff=AT_ONCE)]
    assert len(events) == len(last)
    assert len(source.opened) == 1


@pytest.mark.requirement("WA-62")
async def test_the_waits_grow_until_something_new_has_come() -> None:
    lost = WatchError("unavailable", "gone")
    beat: dict[str, object] = {"heartbeat": {}}
    source = Taking([lost], [beat, lost], [lost], [rows(said(1)), lost], [rows(said(2))])
    with passing_time() as time:
        backoff = Backoff(first=10.0, longest=1_000.0, random=lambda: 1.0)
        watch = watch_bot(source, bot_id=BOT, session_id=SESSION, reconnecting=True, backoff=backoff)
        reading = asyncio.ensure_future(ids(watch))
        await time.by(0)
        for opened, wait in enumerate((10.0, 20.0, 40.0, 10.0), start=1):
            await time.by(wait - 1)
            assert len(source.opened) == opened
            await time.by(1.5)
            assert len(source.opened) == opened + 1
        await reading


# --- codes ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("WA-65")
def test_the_codes_are_a_closed_set() -> None:
    assert upstream_code("permission_denied") == "permission_denied"
    for foreign in ("sideways", "", None, 7, "stalled", "invalid_cursor"):
        assert upstream_code(foreign) == "unknown"


@pytest.mark.requirement("WA-18", "WA-65")
def test_every_error_has_one_of_them() -> None:
    of_bubble = {code: code_of(error_from_code(code, "x")) for code in ERROR_CODES}
    assert of_bubble["not_found"] == "not_found"
    assert of_bubble["forbidden"] == "permission_denied"
    assert set(of_bubble.values()) <= set(WATCH_ERROR_CODES)
    assert code_of(WatchError("stalled", "x")) == "stalled"
    assert code_of(KeyError("x")) == "internal"


def resumable(events: list[WatchEvent]) -> list[str]:
    return [event.id for event in events if event.id is not None]


@pytest.mark.requirement("WA-72")
async def test_a_recording_goes_on_after_each_of_its_cursors() -> None:
    frames = [
        {"connected": {}},
        rows(said(1), said(2), {"seq": 3, "updatedSeq": 3, "bodyOmitted": True}),
        {"cleared": {"agentId": BOT, "sessionId": SESSION, "newGeneration": 1}},
        rows(said(1), generation=1),
        rows(said(5), generation=4),
        {"heartbeat": {}},
    ]
    source = RecordedSource(frames)
    whole = [event async for event in watch_bot(source, bot_id=BOT, session_id=SESSION)]
    wanted = resumable(whole)
    assert len(wanted) == 7
    for index, cursor in enumerate(wanted):
        rest = [e async for e in watch_bot(source, bot_id=BOT, session_id=SESSION, resume_from=cursor)]
        assert resumable(rest) == wanted[index + 1 :]


@pytest.mark.requirement("WA-08", "WA-53", "WA-72")
@pytest.mark.parametrize("returns", ["by its rows", "cleared", "cleared as it is"])
async def test_where_a_generation_recurs_a_cursor_of_it_is_never_taken_for_the_other_transcript(returns: str) -> None:
    first = rows(said(1, "old 1"), said(2, "old 2"), said(3, "old 3"), said(4, "old 4"))
    between = [] if returns == "cleared as it is" else [rows(said(1, "between"), generation=1)]
    cleared = {"cleared": {"agentId": BOT, "sessionId": SESSION, "newGeneration": 0}}
    again = [*([] if returns == "by its rows" else [cleared]), rows(said(1, "new 1"), said(3, "new 3"))]
    source = RecordedSource([first, *between, *again, {"heartbeat": {}}])
    whole = [event async for event in watch_bot(source, bot_id=BOT, session_id=SESSION)]
    for index, event in enumerate(whole):
        if event.id is not None:
            watch = watch_bot(source, bot_id=BOT, session_id=SESSION, resume_from=event.id)
            rest = [each async for each in watch]
            assert page_after([*whole[: index + 1], *rest]) == {"e1": "new 1", "e3": "new 3"}
            is_second = index > len(whole) - 4
            assert not (is_second and any("old" in text for text in texts_of(rest)))
    # What only the first transcript had is where it was.
    rest = [e async for e in watch_bot(source, bot_id=BOT, session_id=SESSION, resume_from=cursor_text(2))]
    assert resumable(rest) == resumable(whole)[2:]


def texts_of(events: list[WatchEvent]) -> list[str]:
    return [event.data.text for event in events if event.type == "message"]


def page_after(events: list[WatchEvent]) -> dict[str, str]:
    page: dict[str, str] = {}
    for event in events:
        if event.type == "reset":
            page.clear()
        elif event.type == "message":
            page[event.data.entry_id] = event.data.text
    return page


@pytest.mark.requirement("WA-72")
async def test_a_recording_may_be_a_file_of_json_lines(tmp_path: Path) -> None:
    recording = tmp_path / "frames.jsonl"
    lines = [json.dumps(line.frame) for line in CATALOGUE] + ["", "{}", '{"somethingNew":1}']
    recording.write_text("\n".join(lines), encoding="utf-8")
    source = RecordedSource(recording)
    events = [event async for event in watch_bot(source, bot_id=BOT, session_id=SESSION)]
    assert [event.type for event in events] == [line.type for line in CATALOGUE]
    recording.write_text('{"heartbeat":{}}\nnonsense\n', encoding="utf-8")
    with pytest.raises(WatchError) as ended:
        await ids(watch_bot(source, bot_id=BOT))
    assert ended.value.code == "protocol_error"


@pytest.mark.requirement("WA-72")
async def test_a_cursor_that_a_recording_does_not_know_gets_all_that_is_new_to_it() -> None:
    source = RecordedSource([rows(said(1), said(5))])
    watch = watch_bot(source, bot_id=BOT, session_id=SESSION, resume_from=cursor_text(3))
    assert await ids(watch) == [cursor_text(5)]


@pytest.mark.requirement("WA-52", "WA-65")
@pytest.mark.parametrize("frame", [5, "x", None, [], b"{}"])
async def test_what_is_no_frame_is_against_the_protocol_whoever_gives_it(frame: Any) -> None:  # noqa: ANN401
    for source in (RecordedSource([frame]), Giving(frame)):
        with pytest.raises(WatchError) as ended:
            [event async for event in watch_bot(source, bot_id=BOT, session_id=SESSION)]
        assert ended.value.code == "protocol_error"


class Giving:
    """A source of one thing."""

    def __init__(self, thing: Any) -> None:  # noqa: ANN401
        self._thing = thing

    async def frames(self, **_: object) -> AsyncGenerator[Any, None]:
        """One stream."""
        yield self._thing


@pytest.mark.requirement("WA-65")
async def test_a_recording_that_is_not_there_or_no_file_has_a_code(tmp_path: Path) -> None:
    for path, code in ((tmp_path / "nowhere", "not_found"), (tmp_path, "internal")):
        with pytest.raises(WatchError) as ended:
            await anext(watch_bot(RecordedSource(path), bot_id=BOT, session_id=SESSION, reconnecting=True))
        assert ended.value.code == code
