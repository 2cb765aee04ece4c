"""One supervised WebSocket: there while somebody needs it, back again after it broke, with everything followed as before.

*Theory of operation.* One task (`run`) owns the socket. It waits until a channel wants something, connects, and then reads; beside it a
writer sends what the channels say is due. Nothing is queued for sending: a channel that changed is noted, and asked when its turn comes,
so after a reconnect every channel simply finds itself absent and says subscribe again. Losing a socket is therefore not a special case.

How it comes back is decided by the close code (`closing`): with backoff, soon, after the seconds it was told, or only with another bearer.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from bubble.client.backoff import Backoff
from bubble.client.channels import Channel, ThreadChannel
from bubble.client.closing import come_back, seconds_in
from bubble.client.follower import Follower, Gap
from bubble.client.grants import GrantsChannel
from bubble.client.outage import Outage, Reach
from bubble.client.supervision import beside
from bubble.client.tokens import TokenSource
from bubble.client.transport import Socket, SocketClosed
from bubble.client.wire import read_frame
from bubble.protocol.errors import (
    BubbleError,
    InternalError,
    RateLimited,
    Unauthenticated,
    Unavailable,
    error_from_code,
)
from bubble.protocol.frames import (
    AuthRefresh,
    ErrorFrame,
    GrantsChanged,
    GrantsSnapshot,
    ServerFrame,
    SubscriptionClosed,
    SubscriptionOpened,
    ThreadEvent,
    encode_frame,
)

__all__ = ["SupervisedSocket"]

_logger = logging.getLogger("bubble.client")

# Between so many frames the readers get their turn, or a burst would look as if they did not keep up.
_FRAMES_PER_TURN = 64
# A socket that lived so long was a good one: the next loss begins with short waits again.
_GOOD_LIFE = 10.0
# How often to look for a socket that nobody needs any longer, and for a subscribe that is never answered.
_LOOK_EVERY = 10.0
_ANSWER_WITHIN = 60.0
_SOON = 1.0
_REFUSALS_IN_A_ROW = 3


class SupervisedSocket:
    """`run()` it in a task that somebody owns; attach and detach at any time."""

    def __init__(
        self,
        open_socket: Callable[[str], Awaitable[Socket]],
        tokens: TokenSource,
        *,
        backoff: Backoff,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        look_every: float = _LOOK_EVERY,
        answer_within: float = _ANSWER_WITHIN,
        on_outage: Callable[[BubbleError | None], None] | None = None,
        reach: Reach | None = None,
    ) -> None:
        self.last_problem: BubbleError | None = None
        self.connections = 0
        self.grants = GrantsChannel(touched=self._touch)
        self._open_socket = open_socket
        self._tokens = tokens
        self._backoff = backoff
        self._sleep = sleep
        self._monotonic = monotonic
        self._look_every = look_every
        self._answer_within = answer_within
        self._threads: dict[str, ThreadChannel] = {}
        self._touched: dict[Channel, None] = {}
        self._opening_since: dict[Channel, float] = {}
        self._wake = asyncio.Event()
        self._holders: set[object] = set()
        self._sent_token = ""
        self._failures = 0
        self._refusals = 0
        self._outage = Outage(on_outage)
        self._reach = reach or Reach("the server")
        tokens.on_change(self._wake.set)

    # --- what is wanted ---------------------------------------------------------------------------------------------------------

    def is_free_for(self, thread_id: str) -> bool:
        """Whether nobody follows the thread here: a connection holds one subscription per thread (spec 2)."""
        channel = self._threads.get(thread_id)
        return channel is None or not channel.is_taken

    @property
    def followed(self) -> int:
        """How many threads are followed here, or were until a moment ago."""
        return len(self._threads)

    def attach(self, follower: Follower) -> None:
        """Follows the follower's thread here."""
        channel = self._threads.get(follower.thread_id)
        if channel is None:
            channel = ThreadChannel(follower.thread_id, backoff=self._backoff, touched=self._touch)
            self._threads[follower.thread_id] = channel
        channel.attach(follower)

    def detach(self, follower: Follower) -> None:
        """Follows it no longer."""
        channel = self._threads.get(follower.thread_id)
        if channel is not None:
            channel.detach(follower)

    def hold(self, holder: object) -> None:
        """Keeps the socket open though nobody follows anything, so that the server knows that the caller is there."""
        self._holders.add(holder)
        self._wake.set()

    def release(self, holder: object) -> None:
        """Ends the holder's `hold`."""
        self._holders.discard(holder)

    @property
    def _is_needed(self) -> bool:
        return (
            bool(self._holders) or not self.grants.is_idle or any(not each.is_idle for each in self._threads.values())
        )

    def _touch(self, channel: Channel) -> None:
        self._touched[channel] = None
        self._wake.set()

    def fail(self, error: BaseException) -> None:
        """Ends everything that is followed here with `error`; whoever only held the socket open no longer does."""
        self.last_problem = error if isinstance(error, BubbleError) else None
        self._holders.clear()
        for channel in self._channels():
            channel.fail(error)
        self._threads.clear()

    def _channels(self) -> list[Channel]:
        return [self.grants, *self._threads.values()]

    # --- one life after the other -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                while not self._is_needed:
                    self._wake.clear()
                    await self._wake.wait()
                await self._sleep(await self._live_once())
        except Exception as error:
            self.fail(error)
            raise

    async def _live_once(self) -> float:
        """One connection from its opening to its end; how long to wait before the next one, in seconds."""
        token = ""
        started = self._monotonic()
        try:
            token = await self._tokens.get()
            socket = await self._open_socket(token)
            self._reach.found()
            started = self._monotonic()
            await self._serve(socket, token)
        except SocketClosed as closed:
            return await self._after(closed, token, lived=self._monotonic() - started)
        except Unauthenticated as error:
            return await self._with_another_token(token, error)
        except RateLimited as error:
            return self._told_to_wait(error)
        except (Unavailable, OSError, TimeoutError) as error:
            self._reach.lost(error)
            return self._lost(error)
        except Exception as error:  # noqa: BLE001 - it goes to everybody who follows something here
            self.fail(error)
        return 0.0

    async def _after(self, closed: SocketClosed, token: str, *, lived: float) -> float:
        if lived >= _GOOD_LIFE:
            self._failures = 0
        if not self._is_needed:
            return 0.0
        way = come_back(closed)
        if way == "with_another_token":
            problem = self.last_problem if isinstance(self.last_problem, Unauthenticated) else None
            return await self._with_another_token(
                token, problem or Unauthenticated("The server closed the connection.")
            )
        if way == "after_seconds":
            return self._told_to_wait(
                RateLimited("Too many connections or frames.", retry_after=seconds_in(closed.reason))
            )
        wait = self._lost(Unavailable(f"The connection was {closed}."))
        return min(wait, self._backoff.random() * _SOON) if way == "soon" else wait

    def _lost(self, problem: Exception) -> float:
        self.last_problem = problem if isinstance(problem, BubbleError) else Unavailable(f"{problem}.")
        wait = self._backoff.wait(self._failures)
        self._failures += 1
        self._outage.begins(self.last_problem)
        _logger.info("%s Trying again in %.1f s.", self.last_problem, wait)
        return wait

    def _told_to_wait(self, error: RateLimited) -> float:
        self.last_problem = error
        self._outage.begins(error)
        return error.retry_after + self._backoff.wait(0)

    async def _with_another_token(self, refused: str, error: Unauthenticated) -> float:
        self._refusals += 1
        self.last_problem = error
        if self._refusals >= _REFUSALS_IN_A_ROW:
            self._refusals = 0
            self.fail(error)
            return 0.0
        try:
            await self._tokens.renew(refused=refused)
        except Unauthenticated:
            self.fail(error)
        except (Unavailable, OSError, TimeoutError) as problem:
            return self._lost(problem)
        except Exception as problem:  # noqa: BLE001 - as above
            self.fail(problem)
        return 0.0 if self._refusals == 1 else self._backoff.wait(self._refusals)

    async def _serve(self, socket: Socket, token: str) -> None:
        self.connections += 1
        self._sent_token = token
        self.last_problem = None
        self._start_over()
        try:
            async with beside(self._write(socket)):
                await self._read(socket)
        finally:
            self._start_over()
            await socket.close()

    def _start_over(self) -> None:
        self._opening_since.clear()
        for channel in self._channels():
            channel.disconnected()

    # --- out --------------------------------------------------------------------------------------------------------------------

    async def _write(self, socket: Socket) -> None:
        with suppress(SocketClosed):  # the reader hears of it too, and knows the code
            while self._is_needed and not self._waits_in_vain():
                self._wake.clear()
                await self._send_what_is_due(socket)
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._look_every):
                        await self._wake.wait()
            await socket.close()

    async def _send_what_is_due(self, socket: Socket) -> None:
        token = self._tokens.current
        if token is not None and token != self._sent_token:
            self._sent_token = token
            await socket.send(encode_frame(AuthRefresh(token=token)))
        while self._touched:
            channel = next(iter(self._touched))
            del self._touched[channel]
            while (frame := channel.due()) is not None:
                await socket.send(encode_frame(frame))
            self._note_opening(channel)
            self._forget_if_idle(channel)

    def _note_opening(self, channel: Channel) -> None:
        if channel.wire == "opening":
            self._opening_since.setdefault(channel, self._monotonic())
        else:
            self._opening_since.pop(channel, None)

    def _waits_in_vain(self) -> bool:
        return any(self._monotonic() - since > self._answer_within for since in self._opening_since.values())

    def _forget_if_idle(self, channel: Channel) -> None:
        if isinstance(channel, ThreadChannel) and channel.is_idle and self._threads.get(channel.thread_id) is channel:
            del self._threads[channel.thread_id]

    # --- in ---------------------------------------------------------------------------------------------------------------------

    async def _read(self, socket: Socket) -> None:
        received = 0
        while True:
            text = await socket.receive()
            try:
                frame = read_frame(text)
                if frame is not None:
                    self._handle(frame)
            except (Gap, InternalError) as error:
                raise Unavailable(f"The connection was given up. {error}") from None
            received += 1
            if received % _FRAMES_PER_TURN == 0:
                await asyncio.sleep(0)

    def _handle(self, frame: ServerFrame) -> None:
        if isinstance(frame, ThreadEvent):
            if (channel := self._threads.get(frame.thread_id)) is not None:
                channel.event(bytes(frame.event))
        elif isinstance(frame, SubscriptionOpened):
            self._refusals = 0
            self._outage.is_over()
            if (channel := self._threads.get(frame.thread_id)) is not None:
                channel.opened(frame.through_seq)
        elif isinstance(frame, SubscriptionClosed):
            if (channel := self._threads.get(frame.thread_id)) is not None:
                message = f'The server ended the subscription to thread "{frame.thread_id}": {frame.reason}.'
                channel.closed(error_from_code(frame.reason, message))
        elif isinstance(frame, GrantsSnapshot):
            self._refusals = 0
            self._outage.is_over()
            self.grants.snapshot(frame)
        elif isinstance(frame, GrantsChanged):
            self.grants.changed(frame)
        else:
            self._error(frame)

    def _error(self, frame: ErrorFrame) -> None:
        details = frame.details if isinstance(frame.details, dict) else None
        error = error_from_code(frame.code, frame.message, details=details)
        if isinstance(frame.thread_id, str):
            if (channel := self._threads.get(frame.thread_id)) is not None:
                channel.error(error)
            return
        self.last_problem = error
        _logger.info("The server said: %s", error)
        if self.grants.refused(error):
            raise InternalError(str(error))
