"""A cursor is the same place for every board, server and stretch of the log, whoever gave it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bubble.protocol.events import EncodedEvent, encoded
from bubble.protocol.sse import SseEvent
from bubble.server.watching.slices import seq_of
from bubble.store.memory import MemoryStore
from tests.server.messages.views import THREAD
from tests.server.watchers import BOT, PLACED, Stage, Watcher, a_stage, all_in_small, folded, with_bot

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store() -> AsyncIterator[MemoryStore]:
    async with MemoryStore() as opened:
        await with_bot(opened)
        yield opened


def event(who: str, run: str, kind: str) -> EncodedEvent:
    return encoded({"type": kind, "principalId": who, "runId": run})


def said(who: str, run: str, part: dict[str, Any], *, version: str = "ai-sdk-v6") -> EncodedEvent:
    of_run = {"principalId": who, "runId": run}
    return encoded({"type": "message_part", "version": version, "part": part, **of_run})


def speech(who: str, run: str, text: str) -> list[EncodedEvent]:
    start, delta = {"type": "text-start", "id": run}, {"type": "text-delta", "id": run, "delta": text}
    return [event(who, run, "run_started"), said(who, run, start), said(who, run, delta)]


def seqs(watcher: Watcher) -> dict[str, int]:
    """By row, the seq in its newest counter."""
    rows = [json.loads(each.data) for each in watcher.events if each.event in PLACED]
    return {row["entryId"]: seq_of(int(row["updatedSeq"])) for row in rows}


async def caught_up(stage: Stage, *, after: str | None = None, before: list[SseEvent] | None = None) -> Watcher:
    """A watcher that has the last message, `end`."""
    watcher = stage.watcher()
    await watcher.watch(after=after)
    await watcher.until(lambda: folded(watcher.events, folded(before or [])).get("end", ("", {}))[1] != {})
    await watcher.until(lambda: "the end" in str(folded(watcher.events, folded(before or [])).get("end")))
    await watcher.leave()
    return watcher


async def assert_resumes(stage: Stage, gave: Watcher, whole: Watcher) -> None:
    for cut, each in enumerate(gave.events, start=1):
        if each.event in PLACED:
            before = gave.events[:cut]
            again = await caught_up(stage, after=each.id, before=before)
            assert folded(again.events, folded(before)) == folded(whole.events), each.id


@pytest.mark.requirement("WA-75", "WA-80")
async def test_a_row_is_not_lost_to_whoever_left_in_an_order_that_this_board_does_not_have(store: MemoryStore) -> None:
    async with a_stage(store) as first, a_stage(store) as second:
        early = first.watcher()
        await early.watch()
        await store.append_many(THREAD, speech(BOT, "answer", "42"))
        await early.until(lambda: "42" in str(folded(early.events).get("answer")))
        await store.append_many(THREAD, [*speech("ann", "q", "thanks"), event("ann", "q", "run_finished")])
        await early.shows("q")
        await store.append(THREAD, event(BOT, "answer", "run_finished"))  # which changes nothing that is shown
        await store.append_many(THREAD, speech("ann", "end", "the end"))
        await early.until(lambda: "the end" in str(folded(early.events).get("end")))
        late = await caught_up(second)
        for stage in (first, second):
            for gave in (early, late):
                await assert_resumes(stage, gave, early)


@pytest.mark.requirement("WA-75", "WA-80")
async def test_a_row_is_not_lost_to_whoever_left_amid_what_one_event_changed(store: MemoryStore) -> None:
    talk = [*speech(BOT, "b", "one"), *speech("ann", "q", "?"), said(BOT, "b", {"type": "text-start", "id": "2"})]
    talk += [said(BOT, "b", {"type": "text-delta", "id": "2", "delta": "two"}), *speech("ann", "p", "??")]
    talk += [said(BOT, "b", {"type": "text-start", "id": "3"})]
    talk += [said(BOT, "b", {"type": "text-delta", "id": "3", "delta": "three"})]
    await store.append_many(THREAD, talk)
    third = (await store.position(THREAD)).head
    await store.append(THREAD, event(BOT, "b", "run_finished"))  # changes three messages
    reaction = {"kind": "reaction", "targetSeq": third, "emoji": "👍", "op": "add"}

    async with a_stage(store) as first, a_stage(store) as second:
        early = first.watcher()
        await early.watch()
        await early.until(lambda: "three" in str(folded(early.events)))
        for number in range(20):
            await store.append_many(THREAD, speech("ann", f"s{number}", "more"))
        await store.append(THREAD, said("ann", "q", reaction, version="bubble-v1"))  # and this one of them again
        await store.append_many(THREAD, speech("ann", "end", "the end"))
        await early.until(lambda: "the end" in str(folded(early.events).get("end")))
        late = await caught_up(second)
        for stage in (first, second):
            for gave in (early, late):
                await assert_resumes(stage, gave, early)
    with all_in_small():  # stretches that end before the last of the three is changed again
        async with a_stage(store) as small:
            for gave in (early, late):
                await assert_resumes(small, gave, early)


@pytest.mark.requirement("WA-75", "WA-89")
async def test_a_row_that_shows_the_same_is_not_sent_again_while_its_message_grows(store: MemoryStore) -> None:
    calls = [{"type": "data-x", "data": number} for number in range(50)]
    await store.append_many(THREAD, [*speech(BOT, "b", "well"), *(said(BOT, "b", call) for call in calls)])
    async with a_stage(store) as stage:
        watcher = stage.watcher()
        await watcher.watch()
        await watcher.until(lambda: "b~part-50" in folded(watcher.events))
        before = len(watcher.events)
        for number in range(5):
            await store.append(THREAD, said(BOT, "b", {"type": "text-delta", "id": "b", "delta": f" {number}"}))
            await watcher.until(lambda number=number: str(folded(watcher.events)["b"][1]).endswith(f" {number}"))  # type: ignore[misc]
        assert [json.loads(each.data)["entryId"] for each in watcher.events[before:]] == ["b"] * 5
        again = stage.watcher()
        await again.watch(after=watcher.ids[-1])
        await store.append(THREAD, said(BOT, "b", {"type": "text-delta", "id": "b", "delta": "!"}))
        await again.until(lambda: "!" in str(folded(again.events).get("b")))
        before = len(again.events)
        for word in ("?", "."):
            await store.append(THREAD, said(BOT, "b", {"type": "text-delta", "id": "b", "delta": word}))
            await again.until(lambda word=word: str(folded(again.events)["b"][1]).endswith(word))  # type: ignore[misc]
        assert [json.loads(each.data)["entryId"] for each in again.events[before:]] == ["b"] * 2
