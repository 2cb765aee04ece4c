"""Whenever a page came, however often it went away and came back: in the end it shows the same, and was told of every failure."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubble.assembler import create_assembler
from bubble.protocol.errors import Conflict
from bubble.protocol.events import SequencedEvent
from bubble.protocol.jsontext import JSONValue
from bubble.protocol.sse import SseEvent
from bubble.server.watching.rows import rows_of
from bubble.store.memory import MemoryStore
from tests.server.messages.logs import RUNS, Move, Writer, moves
from tests.server.messages.views import THREAD
from tests.server.watchers import BOT, PLACED, Stage, State, Watcher, a_stage, all_in_small, folded, with_bot

#: What the bot says about its session: the name, in which of its runs, and a number for the details.
Control = tuple[str, int, int]
Step = Move | Control

NAMES = ("session_cleared", "message_deleted", "message_deleted", "box_state", "failure", "failure")


def controls(chance: Random, *, most: int) -> list[Control]:
    return [(chance.choice(NAMES), chance.randrange(RUNS), chance.randrange(41)) for _ in range(chance.randrange(most))]


class BotWriter(Writer):
    """Writes controls as well. What is deleted is mostly a row that is there."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store, THREAD)
        self.rows: list[str] = []

    async def control(self, control: Control) -> None:
        """In whichever run is open, or in a new one."""
        name, place, number = control
        for at in [*range(place, RUNS), *range(place)]:
            run_id = f"r{at}.{self._lives[at]}"
            if await self._said(name, run_id, number):
                return
        await self.write([(BOT, place, "begin run", number)])
        await self._said(name, f"r{place}.{self._lives[place]}", number)

    async def _said(self, name: str, run_id: str, number: int) -> bool:
        part: dict[str, JSONValue] = {"kind": "agent_event", "name": name}
        if name == "message_deleted":
            part["data"] = {"entryId": self.rows[number % len(self.rows)] if self.rows else run_id}
        elif name == "box_state":
            part["data"] = {"state": {"n": number}}
        elif number % 3:
            part["id"] = str(number % 2)  # in the place of what was said with it before
        event: dict[str, JSONValue] = {"type": "message_part", "version": "bubble-v1", "part": part}
        if name == "failure":
            event |= {"version": "ai-sdk-v6", "part": {"type": "error", "errorText": str(number)}}
        try:
            self.head = (await self._store.append(THREAD, event | {"principalId": BOT, "runId": run_id})).seq
        except Conflict:
            return False
        return True

    async def go(self, steps: Iterable[Step]) -> None:
        for step in steps:
            if len(step) == 3:
                await self.control(step)
            else:
                await self.write([step])


def interleaved(made: list[Move], said: list[Control], chance: Random) -> list[Step]:
    steps: list[Step] = list(made)
    for control in said:
        steps.insert(chance.randrange(len(steps) + 1), control)
    return steps


def is_complete(state: State) -> bool:
    """Whether the last message is there, with all that it says."""
    return "marker" in state and state["marker"][1]["content"] == "0 "


async def everything_of(stage: Stage) -> Watcher:
    """A watcher that has got everything up to the message `marker`."""
    watcher = stage.watcher()
    await watcher.watch()
    await watcher.until(lambda: is_complete(folded(watcher.events)))
    await watcher.leave()
    return watcher


def texts_of(state: State) -> dict[str, str]:
    """What is said in the rows that are there."""
    texts = {id: shown if kind == "message" else shown.get("content") for id, (kind, shown) in state.items()}
    return {id: text for id, text in texts.items() if text}


def parts_of(state: State, *, but_for: set[str]) -> dict[str, list[str]]:
    """By message, what else is there; but for some of the messages."""
    rows = [(message_of(id), shown) for id, (kind, shown) in state.items() if kind == "entry"]
    return gathered((id, shown) for id, shown in rows if id not in but_for)


def message_of(entry_id: str) -> str:
    return entry_id.partition("~part-")[0]


def gathered(bodies: Iterable[tuple[str, Any]]) -> dict[str, list[str]]:
    by_message: defaultdict[str, list[str]] = defaultdict(list)
    for message_id, body in bodies:
        if "part" in body:
            by_message[message_id].append(json.dumps(body["part"], sort_keys=True))
    return {message_id: sorted(parts) for message_id, parts in by_message.items()}


async def said_since_the_clear(store: MemoryStore) -> tuple[dict[str, str], dict[str, list[str]], set[str]]:
    """The same two, as the assembler's window tells them, and the messages of which something was deleted, whose parts are left out."""
    texts = await store.read(THREAD, from_seq=1, to_seq=10**6, limit=10**6, max_bytes=2**40)
    cleared = max((seq for seq, part in own_controls(texts) if part["name"] == "session_cleared"), default=0)
    deleted = {
        part["data"]["entryId"]
        for seq, part in own_controls(texts)
        if part["name"] == "message_deleted" and seq > cleared
    }
    async with create_assembler().open() as thread:
        await thread.apply([SequencedEvent.from_stored(text) for text in texts])
        await thread.clear_window(cleared)
        messages = (await thread.window()).messages
    said = {each["id"]: "\n\n".join(str(p["text"]) for p in each["parts"] if p["type"] == "text") for each in messages}
    bodies = [(message["id"], json.loads(row.body)) for message in messages for row in rows_of(message, BOT)]
    touched = set(map(message_of, deleted))
    parts = gathered((id, body) for id, body in bodies if id not in touched)
    return {id: text for id, text in said.items() if text and id not in deleted}, parts, touched


def own_controls(texts: Iterable[bytes]) -> list[tuple[int, Any]]:
    """The seqs and the parts of what the bot says by name."""
    events = [json.loads(text) for text in texts if b'"agent_event"' in text]
    return [(event["seq"], event["part"]) for event in events if event["principalId"] == BOT]


def failed_turns(events: list[SseEvent]) -> set[str]:
    return {json.loads(event.data)["turnId"] for event in events if event.event == "turn.failed"}


@pytest.mark.requirement("WA-69", "WA-76", "WA-77", "WA-80", "WA-93")
@settings(max_examples=100)
@given(made=moves(most=80), seed=st.integers(0, 2**32), joins=st.lists(st.integers(0, 80), max_size=3))
def test_every_way_of_watching_ends_with_the_same_page(made: list[Move], seed: int, joins: list[int]) -> None:
    chance = Random(seed)  # noqa: S311 - repeatable

    async def story() -> None:
        async with MemoryStore() as store:
            await with_bot(store)
            async with a_stage(store) as stage, a_stage(store) as other_server:
                writer = BotWriter(store)
                first = stage.watcher()
                await first.watch()
                steps = interleaved(made, controls(chance, most=10), chance)
                bounds = sorted(min(join, len(steps)) for join in joins)
                others: list[Watcher] = []
                for start, end in zip([0, *bounds], [*bounds, len(steps)], strict=True):
                    await writer.go(steps[start:end])
                    await first.until(lambda: bool(first.events))
                    writer.rows = list(folded(first.events))
                    others.append(stage.watcher())
                    await others[-1].watch()
                await writer.say("marker")
                for watcher in (first, *others):
                    await watcher.until(lambda watcher=watcher: is_complete(folded(watcher.events)))  # type: ignore[misc]
                last = await everything_of(stage)
                expected = folded(last.events)
                texts, parts, deleted = await said_since_the_clear(store)
                assert texts_of(expected) == texts
                assert parts_of(expected, but_for=deleted) == parts
                assert [folded(watcher.events) for watcher in (first, *others)] == [expected] * (1 + len(others))
                pages = [Page(watcher, told=failed_turns(watcher.events)) for watcher in (first, *others, last)]
                for _ in range(8):
                    came_from = chance.choice(pages)
                    if came_from.cuts:
                        at = chance.choice((stage, other_server))
                        pages.append(await resumed(at, came_from, chance.choice(came_from.cuts), stayed=first))

    with all_in_small():
        asyncio.run(story())


class Page:
    """A page that was shown: all that it got, over however many connections. `told`: which turns failed since it came first."""

    def __init__(self, watcher: Watcher, *, told: set[str], before: Sequence[SseEvent] = ()) -> None:
        self.events = [*before, *watcher.events]
        self.told = told

    @property
    def cuts(self) -> list[int]:
        """After how many events it may go away and come back."""
        return [count for count, event in enumerate(self.events, start=1) if event.event in PLACED]


async def resumed(stage: Stage, page: Page, cut: int, *, stayed: Watcher) -> Page:
    """Whoever leaves there and comes back, wherever that is, has what the one who stayed has."""
    before = page.events[:cut]
    again = stage.watcher()
    await again.watch(after=before[-1].id)
    await again.until(lambda: is_complete(folded(again.events, folded(before))))
    await again.leave()
    assert folded(again.events, folded(before)) == folded(stayed.events)
    # What failed in a session that was cleared since is of no concern to anybody.
    anew = max((index for index, event in enumerate(stayed.events) if event.event == "reset"), default=0)
    assert failed_turns(before) | failed_turns(again.events) >= failed_turns(stayed.events[anew:]) & page.told
    return Page(again, told=page.told, before=before)
