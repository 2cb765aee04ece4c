"""Whatever happens between a reader and the log, in whatever order: every event once, in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from bubble.client.backoff import Backoff
from bubble.client.channels import ThreadChannel
from bubble.client.follower import Follower
from bubble.protocol.errors import Unavailable
from bubble.protocol.events import sequence
from bubble.protocol.frames import ThreadSubscribe

AT_ONCE = Backoff(first=0.0, longest=0.0)


def text(seq: int) -> bytes:
    event = b'{"type":"run_started","principalId":"p","runId":"r%d"}' % seq
    return sequence(event, seq=seq, created_at="2026-05-06T12:34:56.789Z")


class World:
    """A log that grows, a server with a cursor, a wire with frames under way, and the client's machine."""

    def __init__(self, *, from_seq: int, head: int, buffer: int) -> None:
        self.head = head
        self.first = min(from_seq, head + 1)
        self.taken: list[int] = []
        self._cursor: int | None = None
        self._wire: deque[Callable[[], None]] = deque()
        self.follower = Follower("t", from_seq=from_seq, max_events=buffer, max_bytes=1_000_000)
        self.channel = ThreadChannel("t", backoff=AT_ONCE, touched=lambda _: None)
        self.channel.attach(self.follower)
        self.client_sends()

    def client_sends(self) -> None:
        while (frame := self.channel.due()) is not None:
            if isinstance(frame, ThreadSubscribe):
                assert self._cursor is None, "subscribed twice"
                self._cursor = min(frame.from_seq, self.head + 1)
                head = self.head
                self._wire.append(lambda head=head: self.channel.opened(head))  # type: ignore[misc]
            else:
                self._cursor = None

    def server_sends(self, count: int) -> None:
        for _ in range(count):
            if self._cursor is not None and self._cursor <= self.head:
                self._wire.append(lambda seq=self._cursor: self.channel.event(text(seq)))  # type: ignore[misc]
                self._cursor += 1

    def server_gives_up(self) -> None:
        if self._cursor is not None:
            self._cursor = None
            error = Unavailable("The store is out of reach.")
            self._wire.append(lambda: self.channel.error(error))
            self._wire.append(lambda: self.channel.closed(error))

    def arrives(self, count: int) -> None:
        for _ in range(min(count, len(self._wire))):
            self._wire.popleft()()

    def is_cut(self) -> None:
        self._wire.clear()
        self._cursor = None
        self.channel.disconnected()

    def reads(self, count: int) -> None:
        for _ in range(count):
            event = self.follower.take()
            if event is not None:
                self.taken.append(event.seq)

    def play(self, step: str, count: int) -> None:
        if step == "append":
            self.head += count
        elif step == "server sends":
            self.server_sends(count)
        elif step == "arrives":
            self.arrives(count)
        elif step == "reads":
            self.reads(count)
        elif step == "client sends":
            self.client_sends()
        elif step == "cut":
            self.is_cut()
        else:
            self.server_gives_up()

    async def settle(self) -> None:
        """Time passes and nothing bad happens any longer."""
        for _ in range(10_000):
            if self.taken and self.taken[-1] >= self.head:
                return
            await asyncio.sleep(0)
            self.client_sends()
            self.server_sends(50)
            self.arrives(100)
            self.reads(50)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "server sends", "arrives", "reads", "client sends", "cut", "server gives up"]),
        st.integers(1, 12),
    ),
    max_size=60,
)


@given(steps=STEPS, from_seq=st.sampled_from([1, 1, 5, 2**53 - 1]), head=st.integers(0, 30), buffer=st.integers(1, 9))
def test_every_event_is_read_once_and_in_order_whatever_happens(
    steps: Sequence[tuple[str, int]], from_seq: int, head: int, buffer: int
) -> None:
    async def story() -> World:
        world = World(from_seq=from_seq, head=head, buffer=buffer)
        world.arrives(1)  # confirmed: from here on the reader's place is fixed
        for step, count in steps:
            world.play(step, count)
            await asyncio.sleep(0)
        world.head += 1
        await world.settle()
        return world

    world = asyncio.run(story())
    assert world.taken == list(range(world.first, world.head + 1))
