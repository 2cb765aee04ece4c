"""The socket against a server that plays scripts: every way it can end, and how the client comes back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus

import anyio
import pytest

from bubble.client import Backoff, BubbleConnection, ThreadSubscription
from bubble.client.follower import Follower
from bubble.client.socket import SupervisedSocket
from bubble.client.supervision import beside
from bubble.client.tokens import TokenSource
from bubble.client.transport import Socket, websocket_connector
from bubble.protocol.errors import (
    BubbleError,
    Forbidden,
    InvalidRequest,
    NotFound,
    Unauthenticated,
    Unavailable,
)
from tests.client.peers import QUICK, Dialogue, Peer, stored

pytestmark = pytest.mark.anyio


async def read(events: ThreadSubscription, count: int) -> list[int]:
    with anyio.fail_after(10):
        return [(await anext(events)).seq for _ in range(count)]


def opens(
    *seqs: int, through: int = 9, then: Callable[[Dialogue], Awaitable[None]]
) -> Callable[[Dialogue], Awaitable[None]]:
    """Expects a subscription that begins at the first of `seqs`, sends them, and does `then`."""

    async def script(dialogue: Dialogue) -> None:
        assert await dialogue.open(through=through) == seqs[0]
        await dialogue.events("t", *seqs)
        await then(dialogue)

    return script


def closing(code: int, reason: str = "") -> Callable[[Dialogue], Awaitable[None]]:
    async def close(dialogue: Dialogue) -> None:
        await dialogue.close(code, reason)

    return close


async def cut(dialogue: Dialogue) -> None:
    dialogue.cut()


async def stay(dialogue: Dialogue) -> None:
    await dialogue.until_gone()


@pytest.mark.requirement("WS-20")
async def test_a_connection_that_breaks_off_is_resumed_at_the_next_unseen_event(peer: Peer) -> None:
    peer.plays(opens(1, 2, then=cut), opens(3, 4, then=cut), opens(5, then=stay))
    async with peer.client() as bubble, bubble.subscribe_thread("t") as events:
        assert await read(events, 5) == [1, 2, 3, 4, 5]
        assert events.through_seq == 9
        assert events.statistics().opened == 3
    await peer.played()


@pytest.mark.requirement("PR-7-17", "PR-7-26", "PR-7-27")
@pytest.mark.parametrize("code", [1000, 1001, 1009, 1011, 1012, 4408, 4999])
async def test_after_this_close_code_the_client_comes_back_and_goes_on(peer: Peer, code: int) -> None:
    peer.plays(opens(1, 2, then=closing(code)), opens(3, then=stay))
    async with peer.client() as bubble, bubble.subscribe_thread("t") as events:
        assert await read(events, 3) == [1, 2, 3]


class Waits:
    """A socket whose waits between connections are noted, not waited."""

    def __init__(self, peer: Peer, backoff: Backoff) -> None:
        self.waits: list[float] = []
        self.noted = asyncio.Event()
        self._connect = websocket_connector()
        self._url = f"ws://127.0.0.1:{peer.port}/v1/ws"
        self.socket = SupervisedSocket(self._open, TokenSource("t-1"), backoff=backoff, sleep=self._sleep)
        self.follower = Follower("t", from_seq=1, max_events=10, max_bytes=10_000)

    async def _open(self, token: str) -> Socket:
        return await self._connect(self._url, {"Authorization": f"Bearer {token}"})

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.noted.set()
        await asyncio.sleep(0)

    async def first(self, peer: Peer, code: int, reason: str = "") -> float:
        peer.plays(opens(1, then=closing(code, reason)), opens(2, then=stay))
        self.socket.attach(self.follower)
        async with beside(self.socket.run()):
            with anyio.fail_after(10):
                await self.noted.wait()
        return self.waits[0]


@pytest.mark.requirement("PR-7-27")
async def test_after_1012_it_comes_back_within_a_second_with_jitter(peer: Peer) -> None:
    waits = Waits(peer, Backoff(first=40, longest=40, random=lambda: 0.6))
    assert await waits.first(peer, 1012) == 0.6


async def test_after_a_broken_connection_it_waits_with_backoff(peer: Peer) -> None:
    waits = Waits(peer, Backoff(first=40, longest=40, random=lambda: 0.6))
    assert await waits.first(peer, 1011) == 24


@pytest.mark.requirement("PR-7-29")
async def test_after_4429_it_waits_as_long_as_the_reason_says(peer: Peer) -> None:
    waits = Waits(peer, Backoff(first=1, longest=40, random=lambda: 0.5))
    assert await waits.first(peer, 4429, "17") == 17.5


@pytest.mark.requirement("PR-7-28")
async def test_after_4401_with_a_fixed_token_every_subscription_ends_and_the_client_stays_away(peer: Peer) -> None:
    async def revoke(dialogue: Dialogue) -> None:
        await dialogue.open("t")
        await dialogue.open("u")
        await dialogue.expect("grants.subscribe")
        await dialogue.say("grants.snapshot", grants=[])
        await dialogue.say("error", code="unauthenticated", message="The token was revoked.")
        await dialogue.close(4401)

    peer.plays(revoke)
    async with (
        peer.client() as bubble,
        bubble.subscribe_thread("t") as t,
        bubble.subscribe_thread("u") as u,
        bubble.subscribe_grants() as grants,
    ):
        for each in (t, u, grants):
            with pytest.raises(Unauthenticated, match="The token was revoked"), anyio.fail_after(10):
                await anext(each)
    await peer.played()
    assert peer.connections == 1


@pytest.mark.requirement("PR-7-28")
async def test_after_4401_a_callable_is_asked_and_the_subscription_goes_on_with_another_token(peer: Peer) -> None:
    tokens = iter(["old", "new"])
    peer.plays(opens(1, then=closing(4401)), opens(2, then=stay))
    async with peer.client(lambda: next(tokens)) as bubble, bubble.subscribe_thread("t") as events:
        assert await read(events, 2) == [1, 2]
    assert peer.bearers == ["old", "new"]


@pytest.mark.requirement("PR-7-28")
async def test_after_4401_the_same_token_again_is_not_tried_again(peer: Peer) -> None:
    peer.plays(opens(1, then=closing(4401)))
    async with peer.client(lambda: "same") as bubble, bubble.subscribe_thread("t") as events:
        assert await read(events, 1) == [1]
        with pytest.raises(Unauthenticated), anyio.fail_after(10):
            await anext(events)
    assert peer.connections == 1


async def test_a_callable_that_gives_ever_new_bad_tokens_is_given_up_on(peer: Peer) -> None:
    count = iter(range(100))
    peer.plays(*[closing(4401)] * 3)
    async with peer.client(lambda: f"bad-{next(count)}") as bubble:
        with pytest.raises(Unauthenticated), anyio.fail_after(10):
            await bubble.subscribe_thread("t").__aenter__()
    assert peer.connections == 3


async def test_what_a_broken_callable_raises_reaches_the_subscription(peer: Peer) -> None:
    def provide() -> str:
        raise LookupError("no key ring")

    async with peer.client(provide) as bubble:
        with pytest.raises(LookupError, match="no key ring"), anyio.fail_after(10):
            await bubble.subscribe_thread("t").__aenter__()


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (HTTPStatus.UNAUTHORIZED, Unauthenticated),
        (HTTPStatus.FORBIDDEN, Forbidden),
        (HTTPStatus.NOT_FOUND, NotFound),
        (HTTPStatus.BAD_REQUEST, InvalidRequest),
    ],
)
async def test_a_handshake_that_is_refused_for_good_is_a_typed_error(
    peer: Peer, status: HTTPStatus, kind: type[BubbleError]
) -> None:
    peer.refusals = [status]
    async with peer.client() as bubble:
        with pytest.raises(kind), anyio.fail_after(10):
            await bubble.subscribe_thread("t").__aenter__()
    assert peer.connections == 0


async def test_a_handshake_that_fails_for_a_while_is_tried_again(peer: Peer) -> None:
    peer.refusals = [HTTPStatus.BAD_GATEWAY, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE]
    peer.plays(opens(1, then=stay))
    async with peer.client() as bubble, bubble.subscribe_thread("t") as events:
        assert await read(events, 1) == [1]


async def test_a_server_that_is_not_there_is_unavailable_after_the_patience_and_says_why() -> None:
    async with BubbleConnection("http://127.0.0.1:9", token="t", retry_for=0.2, backoff=Backoff(first=0.01)) as bubble:
        with pytest.raises(Unavailable, match=r"Cannot reach ws://127\.0\.0\.1:9/v1/ws"), anyio.fail_after(10):
            await bubble.subscribe_thread("t").__aenter__()


async def test_a_client_that_does_not_retry_still_gives_the_server_the_time_to_answer(peer: Peer) -> None:
    async def slow(dialogue: Dialogue) -> None:
        await dialogue.expect("thread.subscribe")
        await asyncio.sleep(0)
        await dialogue.say("thread.subscription_opened", threadId="t", throughSeq=0)
        await dialogue.until_gone()

    peer.plays(slow)
    async with BubbleConnection(peer.url, token="t-1", retry_for=0.0) as bubble, bubble.subscribe_thread("t") as events:
        assert events.through_seq == 0


async def test_a_server_that_never_answers_is_unavailable_after_the_timeout(peer: Peer) -> None:
    async def mute(dialogue: Dialogue) -> None:
        await dialogue.expect("thread.subscribe")
        await dialogue.until_gone()

    peer.plays(mute)
    async with BubbleConnection(peer.url, token="t-1", retry_for=0.1, timeout=0.3) as bubble:
        with pytest.raises(Unavailable, match="did not answer"), anyio.fail_after(10):
            await bubble.subscribe_thread("t").__aenter__()


async def test_a_server_that_leaves_out_an_event_is_left_and_asked_again(peer: Peer) -> None:
    peer.plays(opens(1, 3, then=stay), opens(2, 3, then=stay))
    async with peer.client() as bubble, bubble.subscribe_thread("t") as events:
        assert await read(events, 3) == [1, 2, 3]


async def test_a_broken_frame_costs_the_connection_and_no_event(peer: Peer) -> None:
    async def garbage(dialogue: Dialogue) -> None:
        await dialogue.send(b'{"type":"thread.event"')
        await dialogue.until_gone()

    peer.plays(opens(1, then=garbage), opens(2, then=stay))
    async with peer.client() as bubble, bubble.subscribe_thread("t") as events:
        assert await read(events, 2) == [1, 2]


@pytest.mark.requirement("PR-1-18")
async def test_frames_and_events_of_the_future_are_passed_over(peer: Peer) -> None:
    async def future(dialogue: Dialogue) -> None:
        await dialogue.say("thread.presence", threadId="t", principals=["a"])
        event = stored(2, type_="run_paused").decode()
        await dialogue.send(f'{{"type":"thread.event","threadId":"t","event":{event}}}'.encode())
        await dialogue.events("t", 3)
        await dialogue.until_gone()

    peer.plays(opens(1, then=future))
    async with peer.client() as bubble, bubble.subscribe_thread("t") as events:
        assert await read(events, 2) == [1, 3]


@pytest.mark.requirement("WS-33")
async def test_a_subscription_that_the_server_ended_for_a_passing_reason_is_opened_again(peer: Peer) -> None:
    async def trouble(dialogue: Dialogue) -> None:
        await dialogue.say("error", threadId="t", code="unavailable", message="The store is out of reach.")
        await dialogue.say("thread.subscription_closed", threadId="t", reason="unavailable")
        assert await dialogue.open(through=3) == 3
        await dialogue.events("t", 3)
        await dialogue.until_gone()

    peer.plays(opens(1, 2, then=trouble))
    async with peer.client() as bubble, bubble.subscribe_thread("t") as events:
        assert await read(events, 3) == [1, 2, 3]
    assert peer.connections == 1


async def test_leaving_a_subscription_unsubscribes_and_leaves_the_others_alone(peer: Peer) -> None:
    async def script(dialogue: Dialogue) -> None:
        await dialogue.open("t")
        await dialogue.open("u")
        assert (await dialogue.expect("thread.unsubscribe"))["threadId"] == "t"
        await dialogue.events("t", 1)
        await dialogue.events("u", 1)
        await dialogue.until_gone()

    peer.plays(script)
    async with peer.client() as bubble, bubble.subscribe_thread("t") as t, bubble.subscribe_thread("u") as u:
        await t.__aexit__(None, None, None)
        assert await read(u, 1) == [1]
        with pytest.raises(StopAsyncIteration):
            await anext(t)


async def test_a_socket_that_nobody_needs_is_closed_and_comes_back_when_somebody_does(peer: Peer) -> None:
    waits = Waits(peer, Backoff(first=0.001))
    waits.socket._look_every = 0.01
    gone = asyncio.Event()

    async def until_gone(dialogue: Dialogue) -> None:
        await dialogue.open()
        await dialogue.expect("thread.unsubscribe")
        await dialogue.until_gone()
        gone.set()

    peer.plays(until_gone, until_gone)
    async with beside(waits.socket.run()):
        for opened in (1, 2):
            waits.socket.attach(waits.follower)
            with anyio.fail_after(10):
                while waits.follower.statistics().opened < opened:
                    await waits.follower.wait()
                gone.clear()
                waits.socket.detach(waits.follower)
                await gone.wait()


async def test_a_subscribe_that_is_never_answered_costs_the_connection(peer: Peer) -> None:
    waits = Waits(peer, Backoff(first=0.001))
    waits.socket._look_every = waits.socket._answer_within = 0.01

    async def mute(dialogue: Dialogue) -> None:
        await dialogue.expect("thread.subscribe")
        await dialogue.until_gone()

    peer.plays(mute, opens(1, then=stay))
    waits.socket.attach(waits.follower)
    async with beside(waits.socket.run()):
        with anyio.fail_after(10):
            while waits.follower.statistics().opened == 0:
                await waits.follower.wait()
    assert peer.connections == 2


@pytest.mark.requirement("PR-4-48")
async def test_another_token_is_told_to_the_open_socket(peer: Peer) -> None:
    tokens = iter(["old", "new", "newer", "newest"])
    seen: list[object] = []

    async def refresh(dialogue: Dialogue) -> None:
        await dialogue.open()
        seen.append((await dialogue.expect("auth.refresh"))["token"])
        await dialogue.events("t", 1)
        await dialogue.until_gone()

    peer.plays(refresh)
    bubble = BubbleConnection(peer.url, token=lambda: next(tokens, "newest"), refresh_every=0.05)
    async with bubble, bubble.subscribe_thread("t") as events:
        assert await read(events, 1) == [1]
    assert (peer.bearers, len(seen)) == (["old"], 1)
    assert seen[0] in ("new", "newer", "newest")


async def test_closing_the_client_ends_what_others_still_read(peer: Peer) -> None:
    peer.plays(opens(1, then=stay))
    bubble = peer.client()
    await bubble.__aenter__()
    events = await bubble.subscribe_thread("t").__aenter__()
    assert await read(events, 1) == [1]
    reading = asyncio.ensure_future(anext(events))
    await asyncio.sleep(0)
    await bubble.__aexit__(None, None, None)
    with pytest.raises(Unavailable, match="closed"), anyio.fail_after(10):
        await reading
    with pytest.raises(Unavailable, match="closed"):
        await bubble.subscribe_thread("t").__aenter__()
    await peer.played()


async def test_an_outage_is_told_once_with_its_problem_and_once_when_it_is_over(peer: Peer) -> None:
    told: list[BubbleError | None] = []
    peer.plays(opens(1, then=cut), cut, cut, opens(2, then=stay))
    client = BubbleConnection(peer.url, token="t-1", backoff=QUICK, on_outage=told.append)
    async with client as bubble, bubble.subscribe_thread("t") as events:
        assert await read(events, 2) == [1, 2]
    assert [type(each) for each in told] == [Unavailable, type(None)]
    await peer.played()


async def test_a_socket_that_cannot_be_opened_is_in_the_log_once_and_one_that_broke_off_is_not(
    peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    peer.refusals = [HTTPStatus.SERVICE_UNAVAILABLE] * 3
    peer.plays(opens(1, then=cut), opens(2, then=stay))
    async with peer.client() as bubble, bubble.subscribe_thread("t") as events:
        assert await read(events, 2) == [1, 2]
    said = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert said == [
        f"ws://127.0.0.1:{peer.port}/v1/ws answered 503 instead of opening a WebSocket. Trying again.",
    ]
    await peer.played()


async def test_a_socket_that_nobody_needs_any_longer_is_no_outage(peer: Peer) -> None:
    told: list[BubbleError | None] = []
    peer.plays(opens(1, then=stay))
    client = BubbleConnection(peer.url, token="t-1", backoff=QUICK, on_outage=told.append)
    async with client as bubble, bubble.subscribe_thread("t") as events:
        assert await read(events, 1) == [1]
    await peer.played()
    assert told == []


async def test_what_was_never_there_is_no_outage(peer: Peer) -> None:
    told: list[BubbleError | None] = []
    peer.plays(cut, cut, opens(1, then=stay))
    client = BubbleConnection(peer.url, token="t-1", backoff=QUICK, on_outage=told.append)
    async with client as bubble, bubble.subscribe_thread("t") as events:
        assert await read(events, 1) == [1]
    assert told == []
    await peer.played()
