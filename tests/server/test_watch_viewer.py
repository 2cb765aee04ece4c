"""One watcher's way through a session, step by step: with a board that stands still until the test moves it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgspec
import pytest

from bubble.server.watching.board import BotBoard
from bubble.server.watching.clearing import BeforeClear
from bubble.server.watching.following import BotFollowing
from bubble.server.watching.history import read_session
from bubble.server.watching.session import Aside, roster_change
from bubble.server.watching.slices import counter_of
from bubble.server.watching.stretches import Stretches
from bubble.server.watching.viewer import Viewer
from bubble.store.memory import MemoryStore
from bubble.watch import WatchCursor
from bubble.watch.frames import AgentState, BoxState, Cleared, RosterChanged, Rows, TurnFailed, WatchFrame
from tests.server.messages.views import THREAD, a_view
from tests.server.watchers import BOT, with_bot

pytestmark = pytest.mark.anyio

Json = dict[str, Any]


@pytest.fixture
async def store() -> AsyncIterator[MemoryStore]:
    """A thread on which the bot's run `b` is open."""
    async with MemoryStore() as opened:
        await with_bot(opened)
        await opened.append(THREAD, of_run({"type": "run_started"}))
        yield opened


def of_run(event: Json, run_id: str = "b") -> Json:
    return {**event, "principalId": BOT, "runId": run_id}


def said(**chunk: object) -> Json:
    return of_run({"type": "message_part", "version": "ai-sdk-v6", "part": chunk})


def control(name: str, run_id: str = "b", **data: object) -> Json:
    part = {"kind": "agent_event", "name": name, **({"data": data} if data else {})}
    return of_run({"type": "message_part", "version": "bubble-v1", "part": part}, run_id)


@dataclass
class Standing:
    """A following that does not follow."""

    board: BotBoard
    stretches: Stretches
    error: None = None


async def standing(store: MemoryStore, *, after: BotBoard | None = None) -> Standing:
    """With a board as of now that reaches back to nothing, in the place of another."""
    view = a_view(store)
    head = (await store.position(THREAD)).head
    session = await read_session(view.log, await store.get_principal(BOT), head=head)
    board = BotBoard(session, [], head=head, covers=head, before={}, tells_from=0, after=after)
    return Standing(board, Stretches(view, BeforeClear(view)))


def viewer_of(following: Standing, *, through: int, cursor: WatchCursor | None = None) -> Viewer:
    return Viewer(cast("BotFollowing", following), cursor=cursor, through=through, now_ms=0)


async def taken(viewer: Viewer, *, released: int) -> list[WatchFrame]:
    """All that there is for it."""
    frames: list[WatchFrame] = []
    while (some := await viewer.take(released=released)) is not None:
        frames += some.frames
    return frames


def entry_ids(frames: Sequence[WatchFrame]) -> list[str | None]:
    return [entry.entry_id for frame in frames if isinstance(frame, Rows) for entry in frame.entries]


@pytest.mark.requirement("WA-76", "WA-80")
async def test_nobody_is_sent_what_the_board_does_not_know_yet_to_be_deleted(store: MemoryStore) -> None:
    following = await standing(store)
    before = following.board.head
    await store.append_many(THREAD, [said(type="text-start", id="1"), said(type="text-delta", id="1", delta="oh")])
    head = (await store.append(THREAD, control("message_deleted", entryId="b"))).seq
    viewer = viewer_of(following, through=head)
    assert "b" not in entry_ids(await taken(viewer, released=head))
    texts = await a_view(store).log.texts(before + 1, head)
    following.board.show(texts, [], head=head, before={})
    frames = await taken(viewer, released=head)
    assert "b" not in entry_ids(frames)
    assert [gone.entry_id for frame in frames if isinstance(frame, Rows) for gone in frame.deletes] == ["b"]


@pytest.mark.requirement("WA-77", "WA-80")
async def test_what_failed_before_a_clear_is_told_before_it(store: MemoryStore) -> None:
    following = await standing(store)
    before = following.board.head
    viewer = viewer_of(following, through=before)
    assert isinstance((await taken(viewer, released=before))[0], AgentState)
    await store.append_many(
        THREAD,
        [
            of_run({"type": "run_finished", "outcome": "failed"}),
            {"type": "participant_joined", "principalId": BOT, "byPrincipalId": BOT},
            of_run({"type": "run_started"}, "c"),
            control("session_cleared", "c"),
            of_run({"type": "run_finished", "outcome": "failed"}, "c"),
        ],
    )
    head = (await store.position(THREAD)).head
    following.board.show(await a_view(store).log.texts(before + 1, head), [], head=head, before={})
    told = [frame for frame in await taken(viewer, released=head) if not isinstance(frame, AgentState)]
    assert [type(frame) for frame in told] == [TurnFailed, RosterChanged, Cleared, TurnFailed]
    assert [frame.turn_id for frame in told if isinstance(frame, TurnFailed)] == ["b", "c"]


@pytest.mark.requirement("WA-77", "WA-78", "WA-80")
async def test_nothing_is_missed_where_another_board_takes_the_place_of_one(store: MemoryStore) -> None:
    following = await standing(store)
    viewer = viewer_of(following, through=following.board.head)
    [begun, *_] = await taken(viewer, released=following.board.head)
    assert isinstance(begun, AgentState)
    assert [row["runId"] for row in begun.live] == ["b"]
    await store.append(THREAD, control("box_state", state={"n": 1}))
    await store.append(THREAD, of_run({"type": "run_finished", "outcome": "failed"}))
    following.board = (await standing(store, after=following.board)).board
    told = await taken(viewer, released=following.board.head)
    assert [frame.turn_id for frame in told if isinstance(frame, TurnFailed)] == ["b"]
    assert [frame.live for frame in told if isinstance(frame, AgentState)] == [[]]
    assert [frame.state for frame in told if isinstance(frame, BoxState)] == [{"n": 1}]


@pytest.mark.requirement("WA-78", "WA-80")
@pytest.mark.parametrize("ends", [True, False])
async def test_who_comes_back_is_told_how_things_stand_again_if_that_changed_on_the_way(
    store: MemoryStore,
    ends: bool,  # noqa: FBT001
) -> None:
    cursor = WatchCursor(bot_id=BOT, session_id=THREAD, generation=0, after_updated_seq=0)
    following = await standing(store)
    viewer = viewer_of(following, through=following.board.head, cursor=cursor)
    begun = await viewer.take(released=following.board.head)
    assert begun is not None
    assert isinstance(begun.frames[0], AgentState)
    before = following.board.head
    await store.append(THREAD, of_run({"type": "run_finished"}) if ends else said(type="text-start", id="1"))
    following.board.show(await a_view(store).log.texts(before + 1, before + 1), [], head=before + 1, before={})
    following.board.forget(before + 1)
    told = await taken(viewer, released=before + 1)
    assert [frame.live for frame in told if isinstance(frame, AgentState)] == ([[]] if ends else [])


@pytest.mark.requirement("WA-12", "WA-78", "WA-80")
@pytest.mark.parametrize("name", ["Another name", None])
async def test_who_comes_back_is_told_how_the_bot_is_listed_again_if_that_changed_on_the_way(
    store: MemoryStore, name: str | None
) -> None:
    seq = (await store.position(THREAD)).head
    cursor = WatchCursor(bot_id=BOT, session_id=THREAD, generation=0, after_updated_seq=counter_of(seq))
    await store.append(THREAD, said(type="text-start", id="1"))
    following = await standing(store)
    board = following.board
    viewer = viewer_of(following, through=board.head, cursor=cursor)
    begun = await viewer.take(released=board.head)
    assert begun is not None
    assert isinstance(begun.frames[-1], RosterChanged)
    if name is not None:
        board.session.bot = msgspec.structs.replace(board.session.bot, display_name=name)
        board.tell([Aside(board.head, roster_change(board.session.bot, kind="updated", at_ms=0))])
    told = [frame for frame in await taken(viewer, released=board.head) if isinstance(frame, RosterChanged)]
    assert [frame.agent["displayName"] for frame in told if frame.agent] == ([] if name is None else [name])
