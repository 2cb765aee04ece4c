"""What many viewers of one thread cost together."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Mapping
from typing import cast

import pytest

from bubble.assembler import BubbleMessage, MessageChanges
from bubble.hub import Connection
from bubble.protocol.errors import NotFound
from bubble.protocol.events import EncodedEvent, encoded
from bubble.server.messages import encoding, following, forms, growing, paging, stream
from bubble.server.messages.board import Board
from bubble.server.messages.growing import Growing
from bubble.server.messages.portion import View, last_seq
from bubble.server.messages.stream import MessageStream
from bubble.store.memory import MemoryStore
from tests.hub.sinks import OWNER, identity, make_thread, part
from tests.server.messages.viewers import Gallery, Viewer, a_gallery
from tests.server.messages.views import THREAD

pytestmark = pytest.mark.anyio

MANY = 100


@pytest.fixture
async def store() -> AsyncIterator[MemoryStore]:
    """A thread in which the owner's run `r` is open, with a text begun (event 4)."""
    async with MemoryStore() as opened:
        await make_thread(opened, THREAD, ("bob", "participant"))
        await opened.append(THREAD, said(type="text-start", id="t"))
        yield opened


@pytest.fixture
async def gallery(store: MemoryStore) -> AsyncIterator[Gallery]:
    async with a_gallery(store) as it:
        yield it


def said(**chunk: object) -> EncodedEvent:
    """A chunk of run `r`."""
    of_run = {"principalId": OWNER, "runId": "r"}
    return encoded({"type": "message_part", "version": "ai-sdk-v6", "part": chunk, **of_run})


class Encodings:
    """Which messages were encoded, by the seq of their last change."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seqs: list[int] = []
        self.bytes = 0
        encode = encoding.message_json

        def counted(message: BubbleMessage) -> bytes:
            text = encode(message)
            self.bytes += len(text)
            self.seqs.append(last_seq(message))
            return text

        monkeypatch.setattr(forms, "message_json", counted)


def restless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has every change shown at once, however long the messages are."""
    for name in ("SHORTEST_REST", "LONGEST_REST"):
        monkeypatch.setattr(following, name, 0.0)


async def test_all_viewers_of_a_thread_share_one_assembler_and_one_encoding(
    store: MemoryStore, gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    encodings = Encodings(monkeypatch)
    viewers = [gallery.viewer() for _ in range(MANY)]
    for viewer in viewers:
        await viewer.look()
        await viewer.sees("r")
    folded = gallery.followings.statistics().folded
    assert folded < 20
    last = 0
    for number in range(30):
        last = (await store.append(THREAD, part(number))).seq
        for viewer in viewers:
            await viewer.has_got(last)
    statistics = gallery.followings.statistics()
    assert (statistics.followings, statistics.viewers) == (1, MANY)
    assert statistics.folded == folded + 30
    assert encodings.seqs == [1, 2, *range(4, 35)]  # the messages of the page, then each state of one of them
    assert gallery.hub.statistics().tails == 1


async def test_viewers_of_long_messages_share_a_page_too(
    store: MemoryStore, gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page of which a few messages are all that fits: whoever comes gets those, and nobody reads the thread for itself."""
    monkeypatch.setattr(paging, "PAGE_BYTES", 6_000)
    monkeypatch.setattr(paging, "LOOK_BACK", 16)
    for number in range(40):
        of_run = {"principalId": OWNER, "runId": f"long{number}"}
        text = {"type": "file", "url": f"data:,{'x' * 1_000}", "mediaType": "text/plain"}
        file = {"type": "message_part", "version": "ai-sdk-v6", "part": text, **of_run}
        await store.append_many(THREAD, [encoded({"type": "run_started", **of_run}), encoded(file)])
    folded = 0
    for _ in range(5):
        viewer = gallery.viewer()
        await viewer.look()
        await viewer.sees("long39")
        assert list(viewer.shown) == ["long36", "long37", "long38", "long39"]
        folded = folded or gallery.followings.statistics().folded
    assert gallery.followings.statistics().folded == folded


async def test_each_grouping_is_followed_once(gallery: Gallery) -> None:
    for grouping in ("speaker", "run", "speaker", "run"):
        viewer = gallery.viewer(grouping=grouping)
        await viewer.look()
        await viewer.sees("r")
    assert gallery.followings.statistics().followings == 2
    assert gallery.followings.statistics().viewers == 4


async def test_a_viewer_that_does_not_read_is_spared_all_that_was_only_for_a_while(
    store: MemoryStore, gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    restless(monkeypatch)
    frozen, other = gallery.viewer(), gallery.viewer()
    for viewer in (frozen, other):
        await viewer.look()
        await viewer.sees("r")
    frozen.freeze()
    before = len(frozen.events)
    last = 0
    for number in range(200):
        last = (await store.append(THREAD, part(number))).seq
        await other.has_got(last)
    assert len(other.events) >= 200
    frozen.thaw()
    await frozen.has_got(last)
    assert frozen.shown == other.shown
    # What was on its way when it stopped, what waited for it then, and the newest.
    assert len(frozen.events) - before <= 3


async def test_what_a_frozen_viewer_was_spared_is_not_kept_for_it(
    store: MemoryStore, gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    restless(monkeypatch)
    frozen, other = gallery.viewer(), gallery.viewer()
    for viewer in (frozen, other):
        await viewer.look()
        await viewer.sees("r")
    frozen.freeze()
    for number in range(100):
        await other.has_got((await store.append(THREAD, part(number))).seq)
    other.events.clear()
    gc.collect()
    states = [one for one in gc.get_objects() if isinstance(one, dict) and one.get("id") == "r" and "parts" in one]
    # What each of the two shows, and the newest for whoever asks.
    assert len(states) <= 5


class Bystander:
    """A viewer that only counts what it gets, until it was told that the run has succeeded."""

    def __init__(self, gallery: Gallery) -> None:
        self.bytes = 0
        self.states = 0
        self._gallery = gallery

    async def look(self) -> None:
        stream = MessageStream(self._gallery.hub, identity(OWNER), self._gallery.followings, keep_alive=60)
        try:
            await stream.watch(THREAD, grouping="speaker", limit=50, after=None)
            async for piece in stream.records():
                self.bytes += len(piece)
                self.states += piece.count(b'data: {"id":"r",')
                if b'"outcome":"success"' in piece[-1_000:]:
                    return
        finally:
            stream.close()


async def test_a_long_message_that_grows_fast_is_not_sent_each_time(
    store: MemoryStore, gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    encodings = Encodings(monkeypatch)
    bystanders = [Bystander(gallery) for _ in range(MANY)]
    looking = [asyncio.create_task(bystander.look()) for bystander in bystanders]
    began = asyncio.get_running_loop().time()
    for _ in range(2_000):
        await store.append_many(THREAD, [said(type="text-delta", id="t", delta="x" * 100)] * 5)
    end = {"type": "run_finished", "principalId": OWNER, "runId": "r", "outcome": "success"}
    await store.append(THREAD, end)
    async with asyncio.timeout(60):
        await asyncio.gather(*looking)
    seconds = asyncio.get_running_loop().time() - began
    # A megabyte grew by 10,000 deltas. It was sent once a second at most when it was long, and as seldom as its length asks for before;
    # and each state was encoded once, for all.
    most = 1_010_000 * (seconds / following.LONGEST_REST + 2)
    for bystander in bystanders:
        assert 1_000_000 < bystander.bytes < most
        assert bystander.states < 1_000
    assert len(encodings.seqs) == len(set(encodings.seqs))
    assert encodings.bytes < most


async def test_thousands_of_comings_and_goings_leave_nothing(store: MemoryStore, gallery: Gallery) -> None:
    async def come_and_go(number: int) -> None:
        viewer = Viewer(gallery, limit=1 + number % 3, grouping="run" if number % 5 == 0 else "speaker")
        await viewer.look(after=None if number % 2 else number % 6)
        if number % 3:
            await viewer.until(lambda: bool(viewer.events))
        if number % 4 == 0:
            await store.append(THREAD, part(number))
        await viewer.leave()

    async def nothing_is_left() -> int:
        await gallery.followings.tasks.settled(0)
        statistics = gallery.followings.statistics()
        assert (statistics.followings, statistics.viewers) == (0, 0)
        assert gallery.hub.statistics().tails == 0
        assert gallery.hub.statistics().connections == 0
        gc.collect()
        return len(gc.get_objects())

    for number in range(200):
        await come_and_go(number)
    before = await nothing_is_left()
    for number in range(0, 3_000, 10):
        await asyncio.gather(*(come_and_go(number + each) for each in range(10)))
    assert await nothing_is_left() - before < 3_000, "something stays behind of each coming and going"


async def test_who_may_not_see_the_thread_does_not_even_begin(gallery: Gallery) -> None:
    stranger = gallery.viewer(who="eve")
    with pytest.raises(NotFound):
        await stranger.look()
    assert gallery.followings.statistics().followings == 0


async def test_nothing_committed_after_a_revocation_is_shown_however_states_and_rights_cross(
    store: MemoryStore, gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    restless(monkeypatch)
    for number in range(40):
        viewer, other = gallery.viewer(who="bob"), gallery.viewer()
        await viewer.look()
        await other.look()
        appends = [store.append(THREAD, part(each)) for each in range(number % 7)]
        revoke = store.remove_grant(THREAD, "bob", by=OWNER)
        late = [store.append(THREAD, part(each)) for each in range(3)]
        done = await asyncio.gather(*appends, revoke, *late)
        await other.has_got(done[-1].seq)  # type: ignore[union-attr]
        await viewer.ended()
        left = done[len(appends) + 1].seq - 1  # type: ignore[union-attr]
        for message in viewer.shown.values():
            assert message["metadata"]["bubble"]["lastSeq"] < left
        assert viewer.events[-1].event == "subscription_closed"
        await store.put_grant(THREAD, "bob", "participant", by=OWNER, appends=True)
        await other.leave()


async def test_a_viewer_that_was_frozen_for_so_long_that_the_board_forgot_goes_through_the_log(
    store: MemoryStore, gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing, "LONG_EVENTS", 300)
    monkeypatch.setattr(growing, "KEPT_MESSAGES", 5)
    monkeypatch.setattr(stream, "STRETCH_EVENTS", 100)
    restless(monkeypatch)
    frozen, other = gallery.viewer(), gallery.viewer()
    for viewer in (frozen, other):
        await viewer.look()
        await viewer.sees("r")
    frozen.freeze()
    forgotten: list[int] = []
    forget = Board.forget

    def counted(board: Board, growing: Growing) -> None:
        forget(board, growing)
        forgotten.append(board.covers)

    monkeypatch.setattr(Board, "forget", counted)
    last = 0
    for number in range(400):
        run = {"principalId": OWNER, "runId": f"n{number}"}
        part_ = {"type": "text-start", "id": "1"}
        chunk = {"type": "message_part", "version": "ai-sdk-v6", "part": part_, **run}
        events: list[Mapping[str, object]] = [{"type": "run_started", **run}, chunk, {"type": "run_finished", **run}]
        last = (await store.append_many(THREAD, events))[-1].seq
        await other.has_got(last)
    assert forgotten[-1] > (frozen.last_id or 0)
    frozen.thaw()
    await frozen.has_got(last)
    assert frozen.shown == other.shown
    assert len(frozen.shown) > 400


async def test_a_state_is_not_shown_before_the_viewer_s_own_subscription_tells_of_it(
    store: MemoryStore, gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    viewer = gallery.viewer()
    await viewer.look()
    await viewer.sees("r")
    rung = asyncio.Event()
    with monkeypatch.context() as held_back:
        held_back.setattr(Connection, "pump", lambda _: None)
        following = next(iter(gallery.followings._running))
        following.bells[rung.set] = "json"
        last = (await store.append(THREAD, part(1))).seq
        await rung.wait()
        assert following.board is not None
        assert following.board.head == last
        for _ in range(20):
            await asyncio.sleep(0)
        assert viewer.last_id == last - 1
        del following.bells[rung.set]
    await store.append(THREAD, part(2))
    await viewer.has_got(last + 1)


async def test_what_a_viewer_was_still_reading_when_it_lost_its_right_is_not_shown(
    store: MemoryStore, gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, may_go_on = asyncio.Event(), asyncio.Event()
    after = Growing.after

    async def slowly(view: View, seq: int) -> Growing:
        growing = await after(view, seq)
        reading.set()
        await may_go_on.wait()
        return growing

    monkeypatch.setattr(Growing, "after", slowly)
    monkeypatch.setattr(paging, "LOOK_BACK", 1)
    monkeypatch.setattr(following, "FIRST_MESSAGES", 1)
    viewer = gallery.viewer(who="bob")
    await viewer.look(after=0)
    await reading.wait()
    await store.remove_grant(THREAD, "bob", by=OWNER)
    may_go_on.set()
    await viewer.ended()
    assert [event.event for event in viewer.events] == ["subscription_opened", "subscription_closed"]


async def test_who_comes_after_a_failure_does_not_inherit_it(store: MemoryStore, gallery: Gallery) -> None:
    one, other = asyncio.Event().set, asyncio.Event().set
    failed = gallery.followings.join("nowhere", "speaker", one)
    await gallery.followings.tasks.settled(0)
    assert isinstance(failed.error, NotFound)
    await store.append("nowhere", {"type": "run_started", "principalId": OWNER, "runId": "r"})
    fresh = gallery.followings.join("nowhere", "speaker", one)
    assert fresh.error is None
    gallery.followings.leave(failed, one)
    assert gallery.followings.join("nowhere", "speaker", other) is fresh
    for bell in (one, other):
        gallery.followings.leave(fresh, bell)


def test_what_came_about_in_two_steps_is_one_change() -> None:
    a, b, c, newer_b = (cast("BubbleMessage", {"id": id}) for id in "abcb")
    first = MessageChanges((a, b), ("x", "y"))
    then = MessageChanges((newer_b, c), ("a", "x"))
    together = following._together(first, then)
    assert [one for one in together.upserts if one is newer_b or one is c] == list(together.upserts)
    assert together.removals == ("a", "x", "y")
    back_again = following._together(MessageChanges((), ("a",)), MessageChanges((a,), ()))
    assert back_again == MessageChanges((a,), ())


@pytest.mark.parametrize(
    ("size", "worked", "rest"),
    [(0, 0.0, 0.01), (1_000, 0.002, 0.01), (256 * 1024, 0.1, 0.5), (1_000, 0.4, 0.4), (2**30, 0.1, 1.0), (0, 7.0, 1.0)],
)
def test_a_following_rests_for_what_it_showed_and_for_what_it_worked(size: int, worked: float, rest: float) -> None:
    assert following.rest_after(size, worked=worked) == rest
