"""One reader of a thread, without a socket."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from bubble.client.follower import Follower, Gap
from bubble.protocol.errors import NotFound
from bubble.protocol.events import SequencedEvent, sequence

pytestmark = pytest.mark.anyio


def event(seq: int, type_: str = "run_started") -> SequencedEvent:
    text = b'{"type":"%s","principalId":"p","runId":"r%d"}' % (type_.encode(), seq)
    when = "2026-05-06T12:34:56.789Z"
    return SequencedEvent(seq=seq, created_at=when, text=sequence(text, seq=seq, created_at=when))


def follower(*, from_seq: int = 1, max_events: int = 8, max_bytes: int = 100_000, keep: bool = False) -> Follower:
    return Follower("t", from_seq=from_seq, max_events=max_events, max_bytes=max_bytes, keep_unknown=keep)


def taken(one: Follower) -> list[int]:
    seqs = []
    while (each := one.take()) is not None:
        seqs.append(each.seq)
    return seqs


@pytest.mark.requirement("WS-20")
async def test_following_goes_on_after_the_last_event_that_went_in() -> None:
    one = follower(from_seq=3)
    one.opened(5)
    for seq in (3, 4, 5):
        one.accept(event(seq))
    assert one.next_seq == 6
    assert taken(one) == [3, 4, 5]


@pytest.mark.requirement("WS-24")
async def test_an_event_that_comes_again_is_not_given_again() -> None:
    one = follower()
    one.opened(2)
    for seq in (1, 2, 1, 2, 2, 3):
        one.accept(event(seq))
    assert taken(one) == [1, 2, 3]


async def test_a_missing_event_is_noticed_and_nothing_after_it_is_taken() -> None:
    one = follower()
    one.opened(9)
    one.accept(event(1))
    with pytest.raises(Gap, match="event 3 came where 2 was due"):
        one.accept(event(3))
    assert (one.next_seq, taken(one)) == (2, [1])


async def test_beyond_the_head_live_begins_right_after_the_head() -> None:
    one = follower(from_seq=2**53 - 1)
    one.opened(41)
    assert (one.through_seq, one.next_seq) == (41, 42)


async def test_the_boundary_that_was_pinned_first_stays_across_reconnects() -> None:
    one = follower()
    one.opened(2)
    one.accept(event(1))
    one.opened(7)
    assert (one.through_seq, one.next_seq) == (2, 2)


async def test_a_full_buffer_makes_it_want_nothing_and_lose_nothing() -> None:
    one = follower(max_events=4)
    changes: list[bool] = []
    one.on_change = lambda: changes.append(one.wants)
    one.opened(10)
    for seq in range(1, 11):
        one.accept(event(seq))
    assert (one.wants, one.next_seq, one.statistics().buffered) == (False, 5, 4)
    assert [one.take() is not None for _ in range(3)] == [True] * 3
    assert one.wants
    assert changes == [False, True]
    for seq in range(5, 8):
        one.accept(event(seq))
    assert taken(one) == [4, 5, 6, 7]
    assert one.statistics().lagged == 1


async def test_the_buffer_is_bounded_in_bytes_but_holds_one_event_of_any_size() -> None:
    one = follower(max_bytes=10)
    one.opened(2)
    one.accept(event(1))
    one.accept(event(2))
    assert (one.statistics().buffered, one.wants) == (1, False)
    assert taken(one) == [1]
    assert one.wants


async def test_its_end_comes_after_the_events_that_came_before() -> None:
    one = follower()
    one.opened(1)
    one.accept(event(1))
    one.fail(NotFound("gone"))
    assert one.take() is not None
    with pytest.raises(NotFound, match="gone"):
        one.take()
    assert not one.wants


@pytest.mark.requirement("PR-1-18")
async def test_events_of_an_unknown_type_are_passed_over_unless_they_are_wanted() -> None:
    for keep, seqs in ((False, [1, 3]), (True, [1, 2, 3])):
        one = follower(keep=keep)
        one.opened(3)
        for each in (event(1), event(2, "run_paused"), event(3)):
            one.accept(each)
        assert (taken(one), one.next_seq) == (seqs, 4)


async def test_waiting_ends_with_the_next_event() -> None:
    one = follower()
    one.opened(0)
    waiting = asyncio.create_task(one.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    one.accept(event(1))
    with anyio.fail_after(10):
        await waiting


async def test_who_waits_can_be_woken_though_there_is_nothing_new() -> None:
    one = follower()
    waiting = asyncio.create_task(one.wait())
    await asyncio.sleep(0)
    one.wake()
    with anyio.fail_after(5):
        await waiting
    assert one.take() is None
