"""What is sent for a thread, and what becomes of the answers, without a socket."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from bubble.client.backoff import Backoff
from bubble.client.channels import ThreadChannel
from bubble.client.follower import Follower
from bubble.protocol.errors import Forbidden, NotFound, Unavailable
from bubble.protocol.events import sequence
from bubble.protocol.frames import ThreadSubscribe, ThreadUnsubscribe

pytestmark = pytest.mark.anyio


def text(seq: int) -> bytes:
    when = "2026-05-06T12:34:56.789Z"
    return sequence(b'{"type":"run_started","principalId":"p","runId":"r%d"}' % seq, seq=seq, created_at=when)


class Line:
    """A channel, its follower, and whether it asked for its turn."""

    def __init__(self, *, from_seq: int = 1, max_events: int = 8) -> None:
        self.touched = asyncio.Event()
        self.channel = ThreadChannel(
            "t", backoff=Backoff(first=0.001, longest=0.001), touched=lambda _: self.touched.set()
        )
        self.follower = Follower("t", from_seq=from_seq, max_events=max_events, max_bytes=100_000)
        self.channel.attach(self.follower)

    def open(self, through_seq: int = 0) -> None:
        assert isinstance(self.channel.due(), ThreadSubscribe)
        self.channel.opened(through_seq)


async def test_attaching_subscribes_once_from_where_the_reader_stands() -> None:
    line = Line(from_seq=5)
    assert line.channel.due() == ThreadSubscribe(thread_id="t", from_seq=5)
    assert line.channel.due() is None
    line.channel.opened(9)
    assert line.channel.due() is None


@pytest.mark.requirement("WS-20")
async def test_after_a_lost_socket_it_subscribes_from_the_next_unseen_seq() -> None:
    line = Line()
    line.open(3)
    line.channel.event(text(1))
    line.channel.event(text(2))
    line.channel.disconnected()
    assert line.channel.due() == ThreadSubscribe(thread_id="t", from_seq=3)


async def test_a_reader_that_lags_is_unsubscribed_and_subscribed_again_where_it_stopped() -> None:
    line = Line(max_events=4)
    line.open(9)
    for seq in range(1, 7):
        line.channel.event(text(seq))
    assert line.channel.due() == ThreadUnsubscribe(thread_id="t")
    assert line.channel.due() is None
    while line.follower.take() is not None:
        pass
    assert line.channel.due() == ThreadSubscribe(thread_id="t", from_seq=5)


async def test_a_reader_that_lagged_and_caught_up_within_one_turn_is_subscribed_anew() -> None:
    line = Line(max_events=1)
    line.open(2)
    line.channel.event(text(1))
    line.channel.event(text(2))
    assert line.follower.take() is not None
    assert line.follower.wants
    assert line.channel.due() == ThreadUnsubscribe(thread_id="t")
    assert line.channel.due() == ThreadSubscribe(thread_id="t", from_seq=2)


@pytest.mark.requirement("WS-30")
async def test_events_that_arrive_after_unsubscribing_are_ignored() -> None:
    line = Line()
    line.open(5)
    line.channel.event(text(1))
    line.channel.detach(line.follower)
    assert line.channel.due() == ThreadUnsubscribe(thread_id="t")
    line.channel.event(text(2))
    another = Follower("t", from_seq=1, max_events=8, max_bytes=100_000)
    line.channel.attach(another)
    assert line.channel.due() == ThreadSubscribe(thread_id="t", from_seq=1)
    line.channel.event(text(2))
    line.channel.event(text(3))
    line.channel.opened(5)
    line.channel.event(text(1))
    assert (line.follower.statistics().received, another.statistics().received) == (1, 1)


async def test_a_reader_that_leaves_before_the_answer_is_unsubscribed_after_it() -> None:
    line = Line()
    assert isinstance(line.channel.due(), ThreadSubscribe)
    line.channel.detach(line.follower)
    assert (line.channel.due(), line.channel.is_idle) == (None, False)
    line.channel.opened(0)
    assert line.channel.due() == ThreadUnsubscribe(thread_id="t")
    assert line.channel.is_idle


async def test_an_answer_for_a_reader_that_left_is_not_taken_for_the_next_ones() -> None:
    line = Line(from_seq=100)
    assert isinstance(line.channel.due(), ThreadSubscribe)
    line.channel.detach(line.follower)
    another = Follower("t", from_seq=1, max_events=8, max_bytes=100_000)
    line.channel.attach(another)
    assert line.channel.due() is None
    line.channel.opened(7)
    assert another.through_seq is None
    assert line.channel.due() == ThreadUnsubscribe(thread_id="t")
    assert line.channel.due() == ThreadSubscribe(thread_id="t", from_seq=1)


async def test_a_refused_subscription_ends_with_the_reason() -> None:
    line = Line()
    assert isinstance(line.channel.due(), ThreadSubscribe)
    line.channel.error(NotFound("no such thread"))
    with pytest.raises(NotFound, match="no such thread"):
        line.follower.take()
    assert line.channel.is_idle


@pytest.mark.requirement("WS-13")
async def test_an_error_alone_ends_no_subscription() -> None:
    line = Line()
    line.open()
    line.channel.error(Forbidden("an append was refused"))
    line.channel.event(text(1))
    assert line.follower.take() is not None


async def test_the_error_that_explains_is_what_the_reader_hears() -> None:
    line = Line()
    line.open()
    line.channel.error(NotFound("you were removed"))
    line.channel.closed(NotFound("not_found"))
    with pytest.raises(NotFound, match="you were removed"):
        line.follower.take()


async def test_an_earlier_error_about_something_else_does_not_explain_the_end() -> None:
    line = Line()
    line.open()
    line.channel.error(Forbidden("an append was refused"))
    line.channel.closed(NotFound("the end"))
    with pytest.raises(NotFound, match="the end"):
        line.follower.take()


@pytest.mark.requirement("WS-33")
async def test_a_subscription_that_ends_for_a_passing_reason_is_opened_again_after_a_while() -> None:
    line = Line()
    line.open(1)
    line.channel.event(text(1))
    line.channel.closed(Unavailable("the store is out of reach"))
    assert line.channel.due() is None
    line.touched.clear()
    with anyio.fail_after(10):
        await line.touched.wait()
    assert line.channel.due() == ThreadSubscribe(thread_id="t", from_seq=2)


async def test_a_late_end_of_an_old_subscription_ends_nothing() -> None:
    line = Line(max_events=1)
    line.open(5)
    line.channel.event(text(1))
    line.channel.event(text(2))
    assert isinstance(line.channel.due(), ThreadUnsubscribe)
    line.channel.closed(NotFound("late"))
    assert line.follower.error is None
