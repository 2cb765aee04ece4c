"""`A2AClient`: an agent, as the rest of reef sees it."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Final
from urllib.parse import urlsplit

import httpx2

from bubble.client import Backoff
from bubble.reef.addresses import card_urls, is_private_address, is_private_name, origin
from bubble.reef.answers import EVENT_STREAM, JSON, events_of, object_of, refuse_errors
from bubble.reef.card import Interface, agent_name, choose
from bubble.reef.dialects import Dialect, Request, dialect_of
from bubble.reef.discretion import keep_secrets_of, quoted
from bubble.reef.events import AgentEvent
from bubble.reef.failures import AgentFailure, Broken, Busy, CardRefused, Refused, Unreachable
from bubble.reef.http import CONNECT_SECONDS, IDLE_SECONDS, AgentHttp, Bearer
from bubble.reef.messages import OutgoingMessage
from bubble.reef.peers import Peers
from bubble.reef.shared import Shared

__all__ = ["A2AClient", "KnownAgent"]

_logger = logging.getLogger("bubble.reef")

_TRIES: Final = 6
_LONGEST_WAIT: Final = 30.0
_CANCEL_SECONDS: Final = 3.0
# What a server answers that has no way to cancel.
_NO_CANCEL: Final = frozenset({404, 405, 501})


class KnownAgent:
    """What the card said, once it was read."""

    def __init__(self, *, name: str, card_url: str, interface: Interface) -> None:
        self.name = name
        self.card_url = card_url
        self.interface = interface


class A2AClient:
    """One agent, by the URL of its card. Safe for any number of conversations at once; `close()` it.

    `bearer` gives the token of the moment. `trusted_origins` are those, beside the card's own, that it goes to, and that a card on a public
    host may name though they are private. `tries` is how often a message is sent that nobody took.
    """

    def __init__(
        self,
        agent_card_url: str,
        *,
        bearer: Bearer = lambda: None,
        trusted_origins: Sequence[str] = (),
        idle_seconds: float = IDLE_SECONDS,
        connect_seconds: float = CONNECT_SECONDS,
        cancel_seconds: float = _CANCEL_SECONDS,
        tries: int = _TRIES,
        backoff: Backoff | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._card_urls = card_urls(agent_card_url)
        keep_secrets_of(agent_card_url)
        named = {origin(trusted) for trusted in trusted_origins}
        self._trusted = {origin(agent_card_url), *named}
        self._peers = Peers(allowed=named)
        self._http = AgentHttp(
            bearer=bearer,
            trusted=self._trusted,
            peers=self._peers,
            idle_seconds=idle_seconds,
            connect_seconds=connect_seconds,
            transport=transport,
        )
        self._cancel_seconds = cancel_seconds
        self._tries = tries
        self._backoff = backoff or Backoff(first=0.5, longest=8.0)
        self._sleep = sleep
        self._known = Shared(self._read_card)

    async def close(self) -> None:
        """Closes every connection; streams that are being read break."""
        await self._known.close()
        await self._http.close()

    # --- the card ---------------------------------------------------------------------------------------------------------------

    async def resolve_transport(self) -> KnownAgent:
        """Reads the card, chooses how to talk to the agent, and keeps the answer (spec 5, "Resolving the A2A agent").

        Whoever needs it while it is being read waits for the same attempt. Raises `CardRefused` for a card that cannot be used;
        `Unreachable` and the other failures are not kept, but tried again next time.
        """
        return await self._known.get()

    async def _read_card(self) -> KnownAgent:
        for url in self._card_urls[:-1]:
            try:
                return await self._read_card_at(url)
            except Refused as refused:
                if refused.status != 404:
                    raise
        return await self._read_card_at(self._card_urls[-1])

    async def _read_card_at(self, url: str) -> KnownAgent:
        self._peers.only_public = False  # this address is the operator's own word
        async with self._http.send(Request(method="GET", url=url), accept=JSON) as response:
            if response.status_code == 404:
                raise Refused(f"There is no agent card at {url}.", status=404)
            await refuse_errors(response)
            try:
                card = await object_of(response)
            except Broken:
                raise CardRefused(f"What is at {url} is no agent card, for it is no JSON.") from None
        interface = choose(card, card_url=url)
        keep_secrets_of(interface.url)
        await self._check_host(interface, card_url=url)
        return KnownAgent(name=agent_name(card), card_url=url, interface=interface)

    async def _check_host(self, interface: Interface, *, card_url: str) -> None:
        self._peers.only_public = not self._peers.is_private(card_url)
        if origin(interface.url) in self._trusted or not self._peers.only_public:
            return
        if any(await _are_private(interface.url)):
            raise CardRefused(
                f"The agent card at {card_url} names {interface.url}, which is an address of this machine or of a private network."
                " If that is meant, add its origin to a2a.trustedOrigins."
            )

    # --- conversation -----------------------------------------------------------------------------------------------------------

    async def send_streaming(self, message: OutgoingMessage) -> AsyncGenerator[AgentEvent, None]:
        """Sends a message; the events of the reply as they come. Close the iterator (`aclosing`) to stop listening.

        What nobody took (no connection, 429, 503) is sent again, with growing pauses. Any other failure is the caller's: the message may
        have been accepted.
        """
        for attempt in range(self._tries):
            begun = False
            try:
                dialect = await self._dialect()
                async with aclosing(self._listen(dialect.stream(message), dialect)) as events:
                    async for event in events:
                        begun = True
                        yield event
                return
            except Unreachable as failure:
                if begun or attempt + 1 == self._tries:
                    raise
                await self._pause(attempt, failure)

    async def rejoin(self, task_id: str) -> AsyncGenerator[AgentEvent, None]:
        """Takes up the stream of a task whose connection was lost. Raises like `send_streaming`, and tries once."""
        dialect = await self._dialect()
        async with aclosing(self._listen(dialect.rejoin(task_id), dialect)) as events:
            async for event in events:
                yield event

    async def get_task(self, task_id: str) -> AgentEvent | None:
        """The task as it is, or None if the answer says nothing."""
        dialect = await self._dialect()
        async with self._http.send(dialect.get(task_id), accept=JSON) as response:
            await refuse_errors(response, dialect)
            return dialect.read(await object_of(response))

    async def cancel_task(self, task_id: str) -> None:
        """Asks the agent to stop, and waits `cancel_seconds` at most. Where it cannot, nothing happens; its answer is only logged."""
        try:
            async with asyncio.timeout(self._cancel_seconds):
                await self._cancel(task_id)
        except TimeoutError:
            _logger.warning("The agent did not answer when task %s was cancelled.", quoted(task_id))
        except Refused as refused:
            if refused.status not in _NO_CANCEL:
                _logger.info("Task %s was not cancelled: %s", quoted(task_id), refused.message)
        except AgentFailure as failure:
            _logger.warning("Task %s could not be cancelled: %s", quoted(task_id), failure.message)

    async def _cancel(self, task_id: str) -> None:
        dialect = await self._dialect()
        async with self._http.send(dialect.cancel(task_id), accept=JSON) as response:
            await refuse_errors(response, dialect)
            dialect.read(await object_of(response))

    async def _dialect(self) -> Dialect:
        return dialect_of((await self.resolve_transport()).interface)

    async def _listen(self, request: Request, dialect: Dialect) -> AsyncGenerator[AgentEvent, None]:
        async with (
            self._http.send(request, accept=EVENT_STREAM) as response,
            aclosing(events_of(response, dialect)) as events,
        ):
            async for event in events:
                yield event

    async def _pause(self, attempt: int, failure: Unreachable) -> None:
        wait = self._backoff.wait(attempt)
        if isinstance(failure, Busy) and failure.retry_after is not None:
            wait = max(wait, min(failure.retry_after, _LONGEST_WAIT))
        _logger.info("%s Trying again in %.1f s.", failure.message, wait)
        await self._sleep(wait)


async def _are_private(url: str) -> Sequence[bool]:
    """For each address of a URL's host, whether it is one of this machine or of a private network."""
    host = urlsplit(url).hostname or ""
    if is_private_name(host):
        return [True]
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:  # nobody will reach it
        return [False]
    return [is_private_address(str(address[0])) for *_, address in found]
