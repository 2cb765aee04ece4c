"""What many watchers of one bot cost together, and what one costs that does not read."""

from __future__ import annotations

import asyncio
import gc
import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from bubble.client import BubbleConnection
from bubble.protocol.events import EncodedEvent, encoded
from bubble.protocol.sse import SseEvent
from bubble.server.messages import following
from bubble.server.watching import slices
from bubble.server.watching.slices import Slice
from bubble.store.memory import MemoryStore
from bubble.watch import WatchDecoder
from bubble.watch.frames import WatchFrame
from tests.server.messages.views import THREAD
from tests.server.serving import serving
from tests.server.watchers import BOT, Stage, a_stage, folded, with_bot
from tests.server.world import ADMIN_TOKEN

pytestmark = pytest.mark.anyio

MANY = 1_000
SOME = 100


@pytest.fixture
async def store() -> AsyncIterator[MemoryStore]:
    """A thread on which the bot's run `b` is open and has begun a text."""
    async with MemoryStore() as opened:
        await with_bot(opened)
        await opened.append(THREAD, {"type": "run_started", "principalId": BOT, "runId": "b"})
        await opened.append(THREAD, said(type="text-start", id="t"))
        yield opened


@pytest.fixture
async def stage(store: MemoryStore) -> AsyncIterator[Stage]:
    async with a_stage(store) as it:
        yield it


def said(**chunk: object) -> EncodedEvent:
    """A chunk of the bot's run."""
    of_run = {"principalId": BOT, "runId": "b"}
    return encoded({"type": "message_part", "version": "ai-sdk-v6", "part": chunk, **of_run})


def native(**part: object) -> EncodedEvent:
    """A native part of the bot's run."""
    return encoded({"type": "message_part", "version": "bubble-v1", "part": part, "principalId": BOT, "runId": "b"})


def text_of(events: list[SseEvent]) -> object:
    return folded(events)["b"][1]


@pytest.mark.requirement("WA-89")
async def test_what_a_thousand_watchers_get_is_decoded_and_encoded_once(
    store: MemoryStore, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    watchers = [stage.watcher() for _ in range(MANY)]
    for watcher in watchers:
        await watcher.watch()
        await watcher.shows("b")
    decoded: list[WatchFrame] = []
    decode = WatchDecoder.decode

    def counted(self: WatchDecoder, frame: WatchFrame) -> object:
        decoded.append(frame)
        return decode(self, frame)

    monkeypatch.setattr(WatchDecoder, "decode", counted)
    for number in range(10):
        await store.append(THREAD, said(type="text-delta", id="t", delta=f"{number} "))
        for watcher in watchers:
            await watcher.until(lambda watcher=watcher, number=number: f"{number} " in str(text_of(watcher.events)))  # type: ignore[misc]
    assert {text_of(watcher.events) for watcher in watchers} == {"0 1 2 3 4 5 6 7 8 9 "}
    assert len(decoded) <= 10


@pytest.mark.requirement("WA-89")
async def test_who_come_together_share_the_whole_history(
    store: MemoryStore, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(300):  # more messages than the board begins with
        await store.append_many(THREAD, talk(f"q{number}"))
    folds_before = stage.followings.statistics().folded
    first = stage.watcher()
    await first.watch()
    await first.shows("q299")
    alone = stage.followings.statistics().folded - folds_before
    made: list[Slice] = []
    encode = slices.encode_frames

    def counted(*args: object, **kwargs: object) -> bytes:
        made.append(args)  # type: ignore[arg-type]
        return encode(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(slices, "encode_frames", counted)
    others = [stage.watcher() for _ in range(SOME)]
    await asyncio.gather(*(other.watch() for other in others))
    for other in others:
        await other.shows("q299")
        assert folded(other.events) == folded(first.events)
    assert stage.followings.statistics().folded - folds_before - alone <= 2 * alone
    assert len(made) < SOME


@pytest.mark.requirement("WA-93")
async def test_a_reaction_to_what_ended_before_a_clear_is_not_looked_into(store: MemoryStore, stage: Stage) -> None:
    of_run = {"principalId": "ann", "runId": "old"}
    text = [{"type": "text-start", "id": "1"}, *({"type": "text-delta", "id": "1", "delta": "?"} for _ in range(200))]
    said_before = [{"type": "message_part", "version": "ai-sdk-v6", "part": part, **of_run} for part in text]
    await store.append_many(
        THREAD, [{"type": "run_started", **of_run}, *said_before, {"type": "run_finished", **of_run}]
    )
    await store.append(THREAD, native(kind="agent_event", name="session_cleared"))
    target = (await store.position(THREAD)).head - 5
    watcher = stage.watcher()
    await watcher.watch()
    await store.append(THREAD, said(type="text-delta", id="t", delta="goes on"))
    await watcher.until(lambda: folded(watcher.events) == {"b~1": ("message", "goes on")})
    folded_before = stage.followings.statistics().folded
    await store.append(THREAD, native(kind="reaction", targetSeq=target, emoji="👍", op="add"))
    await store.append(THREAD, said(type="text-delta", id="t", delta="!"))
    await watcher.until(lambda: folded(watcher.events) == {"b~1": ("message", "goes on!")})
    assert stage.followings.statistics().folded - folded_before < 10


def talk(run_id: str) -> list[dict[str, Any]]:
    of_run: dict[str, Any] = {"principalId": "ann", "runId": run_id}
    parts = [{"type": "text-start", "id": "1"}, {"type": "text-delta", "id": "1", "delta": "?"}]
    said = [{"type": "message_part", "version": "ai-sdk-v6", "part": part, **of_run} for part in parts]
    return [{"type": "run_started", **of_run}, *said, {"type": "run_finished", **of_run}]


@pytest.mark.requirement("WA-88")
async def test_a_watcher_that_does_not_read_costs_no_memory_and_then_gets_everything(
    store: MemoryStore, stage: Stage
) -> None:
    frozen, reader = stage.watcher(), stage.watcher()
    await frozen.watch()
    await frozen.shows("b")
    frozen.freeze()
    await reader.watch()
    await reader.shows("b")

    async def say(count: int) -> None:
        for _ in range(count):
            await store.append_many(THREAD, [said(type="text-delta", id="t", delta="x" * 50)] * 10)
            await asyncio.sleep(0)

    await say(20)
    seen = len(frozen.events)
    stream = frozen._stream
    assert stream is not None
    for _ in range(5):
        await say(20)
        assert stream._size <= slices.SLICE_BYTES  # what it has not taken yet, and nothing is put beside it
    await store.append(THREAD, {"type": "run_finished", "principalId": BOT, "runId": "b", "outcome": "failed"})
    assert len(frozen.events) == seen
    frozen.thaw()
    await frozen.until(lambda: any(event.event == "turn.failed" for event in frozen.events))
    await frozen.until(lambda: len(str(text_of(frozen.events))) == 120 * 10 * 50)
    await reader.until(lambda: len(str(text_of(reader.events))) == 120 * 10 * 50)
    assert folded(frozen.events) == folded(reader.events)
    # It was not sent each state that it had not read.
    assert len(frozen.events) - seen < 20


@pytest.mark.requirement("WA-88")
async def test_a_socket_that_is_not_read_gets_the_newest_state_and_not_all_that_it_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(following, "LONGEST_REST", 0.0)  # each state is told
    async with serving() as server, BubbleConnection(server.url, token=ADMIN_TOKEN) as admin:
        await admin.create_principal(BOT, kind="bot", owner_principal_id="admin")
        await admin.create_thread(thread_id=THREAD)
        await admin.put_grant(THREAD, BOT, "participant")
        token = (await admin.mint_token(BOT)).token
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(server.url).port, limit=4_096)
        request = f"GET /v1/bots/{BOT}/events?sessionId={THREAD} HTTP/1.1\r\nHost: x\r\n"
        writer.write(f"{request}Authorization: Bearer {ADMIN_TOKEN}\r\n\r\n".encode())
        await reader.readuntil(b"event: entry")
        states = 0
        async with BubbleConnection(server.url, token=token) as bot, bot.run(THREAD) as run:
            while states < 150:
                await run.text("x" * 2_000)
                await run.flush()
                states += 1
            await run.text("the end")
        received = bytearray()
        async with asyncio.timeout(60):
            while b'the end"' not in received[-70_000:]:
                received += await reader.read(65_536)
        writer.close()
    # All states together are more than twenty megabytes. What was on its way already fits into the buffers of sockets.
    assert len(received) < 10_000_000
    text = re.sub(rb"\r\n[0-9a-f]+\r\n", b"", received)  # without the lengths of HTTP's chunks
    assert b'"text":"%bthe end"' % (b"x" * 150 * 2_000) in text


@pytest.mark.requirement("WA-67")
async def test_nobody_is_left_behind_when_watchers_go(stage: Stage) -> None:
    watchers = [stage.watcher() for _ in range(10)]
    for watcher in watchers:
        await watcher.watch()
        await watcher.shows("b")
    assert stage.watches.statistics().watchers == 10
    assert stage.watches.statistics().sessions == 1
    for watcher in watchers:
        await watcher.leave()
    gc.collect()
    assert stage.watches.statistics().watchers == 0
