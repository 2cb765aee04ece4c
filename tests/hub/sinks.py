"""A sink that records, and may be told to take nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from bubble.auth.identity import Identity
from bubble.auth.policy import Policy
from bubble.hub import JSON_MESSAGES, Chunk, Connection, Encoding, Hub
from bubble.protocol.errors import BubbleError
from bubble.protocol.events import EncodedEvent, encoded
from bubble.protocol.jsontext import load_json
from bubble.protocol.resources import Grant, Principal, PrincipalKind
from bubble.store.base import BubbleStore
from bubble.store.notices import GrantChange
from bubble.store.records import NewPrincipal, NewThread, Participant

OWNER = "alice"


class RecordingSink:
    """Keeps all that the hub says, in order, as `(kind, thread_id, value)`."""

    encoding: Encoding = JSON_MESSAGES

    def __init__(self) -> None:
        self.said: list[tuple[str, str, object]] = []
        self.chunk_sizes: list[int] = []
        self.room = 10**9
        self.connection: Connection | None = None
        self._changed = asyncio.Event()

    def write(self, chunk: Chunk) -> None:
        self.chunk_sizes.append(chunk.size)
        self.room -= chunk.size
        for piece in chunk.pieces:
            frame = load_json(piece)
            assert isinstance(frame, dict)
            event = frame["event"]
            assert isinstance(event, dict)
            self._say("event", str(frame["threadId"]), event["seq"])

    def is_writable(self) -> bool:
        return self.room > 0

    def thaw(self) -> None:
        """Takes everything from now on."""
        self.room = 10**9
        assert self.connection is not None
        self.connection.pump()

    def subscription_opened(self, thread_id: str, through_seq: int) -> None:
        self._say("opened", thread_id, through_seq)

    def subscription_closed(self, thread_id: str, error: BubbleError) -> None:
        self._say("closed", thread_id, error.code)

    def grants_snapshot(self, grants: Sequence[Grant]) -> None:
        self._say("snapshot", "", [(grant.thread_id, grant.role) for grant in grants])

    def grants_changed(self, change: GrantChange, grant: Grant) -> None:
        self._say(change, grant.thread_id, grant.role)

    def end(self, error: BubbleError) -> None:
        self._say("ended", "", error.code)

    def _say(self, kind: str, thread_id: str, value: object) -> None:
        self.said.append((kind, thread_id, value))
        self._changed.set()

    def seqs(self, thread_id: str) -> list[object]:
        """The seqs delivered for a thread."""
        return [value for kind, of, value in self.said if kind == "event" and of == thread_id]

    async def until(self, kind: str, thread_id: str = "", value: object = None) -> None:
        """Waits until something was said."""
        async with asyncio.timeout(10):
            while not any(
                said[0] == kind and (not thread_id or said[1] == thread_id) and (value is None or said[2] == value)
                for said in self.said
            ):
                self._changed.clear()
                await self._changed.wait()


def identity(principal_id: str, *, kind: PrincipalKind = "user") -> Identity:
    """An identity that is not narrowed."""
    principal = Principal(
        principal_id=principal_id, kind=kind, display_name=principal_id, created_at="2026-01-01T00:00:00.000Z"
    )
    return Identity(principal=principal, source="token", credential_id=f"token-of-{principal_id}")


def connect(hub: Hub, principal_id: str) -> RecordingSink:
    """A connected recording sink."""
    sink = RecordingSink()
    sink.connection = hub.connect(sink, identity(principal_id))
    return sink


async def make_thread(store: BubbleStore, thread_id: str, *members: tuple[str, str]) -> None:
    """A thread of `OWNER` with an open run `r`; members are `(principal, role)`, registered if they are not."""
    for principal_id in (OWNER, *(name for name, _ in members)):
        try:
            await store.get_principal(principal_id)
        except BubbleError:
            await store.create_principal(
                NewPrincipal(principal_id=principal_id, kind="user", display_name=principal_id)
            )
    policy = Policy()
    participants = [
        Participant(principal_id=name, role=role, appends=policy.role_appends(role)) for name, role in members
    ]
    await store.create_thread(NewThread(thread_id=thread_id, creator=OWNER, participants=participants))
    await store.append(thread_id, {"type": "run_started", "principalId": OWNER, "runId": "r"})


def part(number: int, *, size: int = 100) -> EncodedEvent:
    """One text delta of run `r`."""
    delta = f"{number}:" + "x" * size
    return encoded(
        {
            "type": "message_part",
            "principalId": OWNER,
            "runId": "r",
            "part": {"type": "text-delta", "id": "t", "delta": delta},
            "version": "ai-sdk-v6",
        }
    )
