"""`BubbleConnection`: the client. A thin face; what it does is in `threads`, `events`, `subscriptions`, `runs`, `messages`, `outbound`,
and what it inherits in `administration` and `participation`.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

import httpx2
from msgspec import UNSET, Raw, UnsetType

from bubble.assembler import Assembler, Grouping
from bubble.client.administration import Administration
from bubble.client.answers import ProtocolInfo, Ticket
from bubble.client.backoff import Backoff
from bubble.client.events import AnyEvent, EventLog, Unknown
from bubble.client.follower import Follower
from bubble.client.http import HttpClient
from bubble.client.listening import Listening
from bubble.client.listing import Listing
from bubble.client.message_pages import MessagePage, read_message_page
from bubble.client.messages import MessagesServices, MessagesSubscription
from bubble.client.negotiation import AssemblerProvider, Extensions
from bubble.client.outage import Reach
from bubble.client.outbound import AttachedFile, Outbound, SentMessage
from bubble.client.participation import Participation
from bubble.client.paths import server_url
from bubble.client.runs import Run, RunServices
from bubble.client.sizes import Sizes
from bubble.client.socket import SupervisedSocket
from bubble.client.sockets import Sockets
from bubble.client.subscriptions import GrantsSubscription, ThreadSubscription
from bubble.client.supervision import beside
from bubble.client.threads import Threads
from bubble.client.tokens import TokenProvider, TokenSource
from bubble.client.transport import Connector, Socket, websocket_connector
from bubble.protocol.errors import BubbleError
from bubble.protocol.events import RunKind, SequencedEvent
from bubble.protocol.identifiers import check_name, check_run_id, check_seq
from bubble.protocol.limits import Limits
from bubble.protocol.resources import (
    EventPage,
    JoinPolicy,
    Metadata,
    Principal,
    Thread,
    ThreadPage,
)

__all__ = ["BubbleConnection"]


class BubbleConnection(Administration, Participation):
    """A client of one server, as one principal. Use as `async with`.

    `token` is a bearer, or a plain or coroutine function that gives one: it is asked at first use, every `refresh_every` seconds (sooner
    for a JWT that ends sooner), and when the server refuses the one in use; open sockets go over to the new one. What may be repeated
    is, for up to `retry_for` seconds; an append always may, by its idempotency key. `timeout` is what one answer may take, in seconds.
    That nobody answers is in the log (`bubble.client`) at once, as a warning, and once as long as it lasts.

    Subscriptions share one WebSocket, opened when first needed. Each keeps at most `buffer_events` events and `buffer_bytes` bytes that
    its reader has not taken. `on_outage` is there to show how it goes: it is called with the problem when that WebSocket is lost, once
    however long it stays away, and with None when what was followed is followed again. `transport` and `connector` replace the network
    (see `bubble.testing.asgi`).

    `extensions.negotiate()` finds the extensions that the server has too, and `assembler` makes assemblers with their part handlers
    (spec 4, "Negotiated providers").
    """

    def __init__(
        self,
        base_url: str,
        *,
        token: TokenProvider,
        timeout: float = 30.0,
        retry_for: float = 30.0,
        backoff: Backoff | None = None,
        refresh_every: float = 300.0,
        buffer_events: int = 4_096,
        buffer_bytes: int = 8 * 1024 * 1024,
        subscriptions_per_socket: int = Limits().subscriptions,
        ssl_context: ssl.SSLContext | None = None,
        on_outage: Callable[[BubbleError | None], None] | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
        connector: Connector | None = None,
    ) -> None:
        self.base_url = server_url(base_url)
        self._tokens = TokenSource(token)
        self._retry_for = retry_for
        self._timeout = timeout
        self._backoff = backoff or Backoff()
        self._on_outage = on_outage
        self._refresh_every = refresh_every
        self._buffer_events = buffer_events
        self._buffer_bytes = buffer_bytes
        self._reach = Reach(self.base_url)
        http = HttpClient(
            self.base_url,
            self._tokens,
            transport=transport,
            ssl_context=ssl_context,
            timeout=timeout,
            retry_for=retry_for,
            backoff=self._backoff,
            reach=self._reach,
        )
        super().__init__(http)
        self._connector = connector or websocket_connector(ssl_context=ssl_context)
        self._sockets = Sockets(self._new_socket, subscriptions_per_socket=subscriptions_per_socket)
        self._threads = Threads(self._http)
        self._events = EventLog(self._http)
        self._sizes = Sizes(self.protocol)
        self._listening = Listening(
            lambda thread_id, seq: self.subscribe_thread(thread_id, from_seq=seq),
            lambda thread_id, seq: self.iter_events(thread_id, from_seq=seq),
        )
        self.assembler = AssemblerProvider()
        self.extensions = Extensions(self.protocol, self.assembler)
        self._outbound = Outbound(
            principal_id=self._own_id, events=self._events, sizes=self._sizes, assembler=self._negotiated
        )
        self._messages = MessagesServices(
            assembler=self._negotiated,
            provider=self.assembler,
            threads=self._threads,
            events=self._events,
            subscribe=lambda thread_id, seq: self.subscribe_thread(thread_id, from_seq=seq, unknown="keep"),
        )
        self._runs = RunServices(
            principal_id=self._own_id,
            events=self._events,
            sockets=self._sockets,
            listening=self._listening,
            sizes=self._sizes,
        )
        self._principal_id: str | None = None
        self._stack = AsyncExitStack()

    # --- life -------------------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._http.close)
            stack.push_async_callback(self._sockets.close)
            if self._tokens.can_renew:
                await stack.enter_async_context(beside(self._tokens.keep_fresh(every=self._refresh_every)))
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def _new_socket(self) -> SupervisedSocket:
        return SupervisedSocket(
            self._open_socket, self._tokens, backoff=self._backoff, on_outage=self._on_outage, reach=self._reach
        )

    async def _open_socket(self, token: str) -> Socket:
        url = f"ws{self.base_url.removeprefix('http')}/v1/ws"
        return await self._connector(url, {"Authorization": f"Bearer {token}"})

    # --- who, and what ----------------------------------------------------------------------------------------------------------

    async def who_am_i(self) -> Principal:
        """The principal that the bearer stands for."""
        return await self._http.get("/v1/whoami", Principal)

    async def protocol(self) -> ProtocolInfo:
        """What the server speaks: version, limits, extensions."""
        return await self._http.get("/v1/protocol", ProtocolInfo)

    async def mint_ticket(self) -> Ticket:
        """A ticket that opens one WebSocket within 30 s, for a browser."""
        return await self._http.post("/v1/ws/tickets", Ticket, b"{}")

    async def _own_id(self) -> str:
        if self._principal_id is None:
            self._principal_id = (await self.who_am_i()).principal_id
        return self._principal_id

    async def _negotiated(self) -> Assembler:
        if not self.assembler.ready:
            await self.extensions.negotiate()
        return self.assembler.create()

    # --- threads ----------------------------------------------------------------------------------------------------------------

    async def create_thread(
        self,
        *,
        title: str | None = None,
        thread_id: str | None = None,
        join_policy: JoinPolicy = "invite",
        metadata: Metadata | None = None,
        participants: Mapping[str, str] | None = None,
    ) -> Thread:
        """Creates a thread; the caller owns it. `participants` maps principals to roles. Choosing the id needs `threads.name`."""
        return await self._threads.create(
            thread_id=thread_id,
            title=title,
            join_policy=join_policy,
            metadata=metadata,
            participants=participants or {},
        )

    async def get_thread(self, thread_id: str) -> Thread:
        """One thread, with its head and the caller's role. `NotFound` also where the caller may not know it."""
        return await self._threads.get(thread_id)

    def list_threads(self, *, query: str | None = None, limit: int | None = None) -> Listing[ThreadPage, Thread]:
        """The threads that the caller can see, latest activity first; `limit` is the size of a page."""
        return self._threads.listing(query=query, limit=limit)

    async def update_thread(
        self,
        thread_id: str,
        *,
        title: str | UnsetType | None = UNSET,
        join_policy: JoinPolicy | None = None,
        metadata: Metadata | UnsetType | None = UNSET,
    ) -> Thread:
        """Changes what is given; None clears title or metadata."""
        return await self._threads.update(thread_id, title=title, join_policy=join_policy, metadata=metadata)

    async def delete_thread(self, thread_id: str) -> None:
        """Deletes a thread for good; its id is never given again."""
        await self._threads.delete(thread_id)

    async def import_thread(
        self,
        thread_id: str,
        events: Sequence[SequencedEvent | Raw | bytes],
        *,
        title: str | None = None,
        join_policy: JoinPolicy = "invite",
        metadata: Metadata | None = None,
        owner: str | None = None,
        keep_participants: bool = True,
    ) -> Thread:
        """Creates a thread with exactly these stored events, dense from seq 1. For admins; `owner` None makes it the caller's.

        Who joined by the events and did not leave takes part again, unless `keep_participants` is False: then the owner is alone there.
        """
        texts = [each.text if isinstance(each, SequencedEvent) else bytes(each) for each in events]
        return await self._threads.import_thread(
            thread_id,
            texts,
            title=title,
            join_policy=join_policy,
            metadata=metadata,
            owner=owner,
            keep_participants=keep_participants,
        )

    # --- events -----------------------------------------------------------------------------------------------------------------

    async def append_event(
        self, thread_id: str, event: AnyEvent, *, idempotency_key: str | None = None, expected_head: int | None = None
    ) -> SequencedEvent:
        """Appends one event, durable on return (spec 1, "Appending Events"). Sent again safely, under a key made here if none is given.

        `expected_head` appends only if the head is that seq, else `Conflict` with `{"headSeq": N}` in its details.
        """
        return await self._events.append(thread_id, event, idempotency_key=idempotency_key, expected_head=expected_head)

    async def append_events(
        self,
        thread_id: str,
        events: Sequence[AnyEvent],
        *,
        idempotency_key: str | None = None,
        expected_head: int | None = None,
    ) -> Sequence[SequencedEvent]:
        """Like `append_event` for several: all or none, consecutive seqs, in order; at most 1,000 and 8 MiB by default."""
        return await self._events.append_many(
            thread_id, events, idempotency_key=idempotency_key, expected_head=expected_head
        )

    async def get_event_page(
        self,
        thread_id: str,
        *,
        from_seq: int = 1,
        to_seq: int | None = None,
        limit: int | None = None,
        wait_ms: int = 0,
    ) -> EventPage:
        """One page of stored events (spec 1, "Reading History over HTTP"); `wait_ms` up to 30,000 waits for one where there is none."""
        return await self._events.page(thread_id, from_seq=from_seq, to_seq=to_seq, limit=limit, wait_ms=wait_ms)

    def iter_events(
        self, thread_id: str, *, from_seq: int = 1, to_seq: int | None = None, unknown: Unknown = "skip"
    ) -> AsyncIterator[SequencedEvent]:
        """The stored events up to `to_seq`, or to the head, page after page. It does not wait for new ones: see `subscribe_thread`."""
        return self._events.iterate(thread_id, from_seq=from_seq, to_seq=to_seq, unknown=unknown)

    def subscribe_thread(self, thread_id: str, *, from_seq: int = 1, unknown: Unknown = "skip") -> ThreadSubscription:
        """Follows a thread: backlog from `from_seq`, then live events. `async with` it, then `async for`."""
        follower = Follower(
            check_name(thread_id, path="thread_id"),
            from_seq=check_seq(from_seq, path="from_seq"),
            max_events=self._buffer_events,
            max_bytes=self._buffer_bytes,
            keep_unknown=unknown == "keep",
        )
        return ThreadSubscription(self._sockets, follower, retry_for=self._retry_for, timeout=self._timeout)

    # --- messages ---------------------------------------------------------------------------------------------------------------

    async def get_message_page(
        self, thread_id: str, *, before: int | None = None, limit: int | None = None, grouping: Grouping = "speaker"
    ) -> MessagePage:
        """One page of messages as the server assembles them: the newest that opened before the seq `before`, 50 by default, 200 at most.

        Fewer where they are long: a page has no more than 4 MiB, unless it is one message.
        """
        return await read_message_page(self._http, thread_id, before=before, limit=limit, grouping=grouping)

    def follow_messages(
        self, thread_id: str, *, grouping: Grouping = "speaker", from_seq: int | None = None
    ) -> MessagesSubscription:
        """Follows a thread as messages (spec 4): at first its last 1,000 events or those from `from_seq` on, then what changes.

        `async with` it, then `async for` its updates. Extensions are negotiated before, if they were not.
        """
        return MessagesSubscription(
            self._messages,
            thread_id=check_name(thread_id, path="thread_id"),
            grouping=grouping,
            from_seq=None if from_seq is None else check_seq(from_seq, path="from_seq"),
        )

    async def send_message(
        self,
        thread_id: str,
        text: str = "",
        *,
        files: Sequence[AttachedFile] = (),
        message: Mapping[str, object] | None = None,
        idempotency_key: str | None = None,
    ) -> SentMessage:
        """Says something as a person does: a whole run of kind `user_input`, appended at once or not at all, and sent again safely.

        A file is a URL, a `pathlib.Path` that is read here, or `(filename, bytes, media_type)`. `message` is a UI message of the AI SDK,
        whose parts come after text and files. With an `idempotency_key` of its own, a message may be sent again by a later call, if it is
        the same. Raises `InvalidRequest` where there is nothing to send or a part that cannot be, and `PayloadTooLarge`: a file may have
        about 760 KB, a message 8 MiB, by default.
        """
        return await self._outbound.send(thread_id, text, files=files, message=message, idempotency_key=idempotency_key)

    # --- runs -------------------------------------------------------------------------------------------------------------------

    def run(
        self,
        thread_id: str,
        *,
        kind: RunKind | None = None,
        run_id: str | None = None,
        snapshot_seq: int | None = None,
        watch_interrupts: bool = False,
    ) -> Run:
        """A run as a block of code, finished however the block is left. `watch_interrupts` sets `run.interrupted` on request."""
        return Run(
            self._runs,
            thread_id=check_name(thread_id, path="thread_id"),
            run_id=None if run_id is None else check_run_id(run_id, path="run_id"),
            kind=kind,
            snapshot_seq=snapshot_seq,
            watch_interrupts=watch_interrupts,
        )

    # --- grants --------------------------------------------------------------------------------------------------

    def subscribe_grants(self) -> GrantsSubscription:
        """Follows the caller's own grants: how a bot discovers its threads. `async with` it, then `async for`."""
        return GrantsSubscription(self._sockets, retry_for=self._retry_for, timeout=self._timeout)
