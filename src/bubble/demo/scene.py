"""The state of the play while it goes on: written by those who play, read by whoever shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from bubble.assembler import BubbleMessage
from bubble.client import MessagesUpdate
from bubble.demo.script import ADA, GRACE
from bubble.protocol.events import SequencedEvent

__all__ = ["Presence", "Reader", "Scene"]

Presence = Literal["arriving", "live", "away", "catching up", "done"]


@dataclass(slots=True)
class Reader:
    """A reader of the thread: what it got so far, and how it is going. `left_at` and `resumed_through` are seqs."""

    name: str
    seen: list[SequencedEvent] = field(default_factory=list)
    presence: Presence = "arriving"
    left_at: int | None = None
    resumed_through: int | None = None

    @property
    def seq(self) -> int:
        """The seq of the last event it got; 0 before the first."""
        return self.seen[-1].seq if self.seen else 0

    def resumed(self, through_seq: int) -> None:
        """It follows now (again); the events up to `through_seq` are backlog."""
        if self.left_at is None:
            self.presence = "live"
        else:
            self.presence, self.resumed_through = "catching up", through_seq

    def take(self, event: SequencedEvent) -> None:
        """The next event."""
        self.seen.append(event)
        if self.presence == "catching up" and self.resumed_through is not None and event.seq >= self.resumed_through:
            self.presence = "live"


@dataclass(slots=True)
class Scene:
    """`stage` is one line about what happens now; `messages` is the thread as the first reader sees it, live, `earlier` those of the thread
    before.
    """

    stage: str = "Starting a server…"
    messages: Sequence[BubbleMessage] = ()
    earlier: Sequence[BubbleMessage] = ()
    readers: Mapping[str, Reader] = field(
        default_factory=lambda: {member.principal_id: Reader(member.display_name) for member in (ADA, GRACE)}
    )
    _news: dict[str, BubbleMessage] = field(default_factory=dict)

    def take(self, update: MessagesUpdate) -> None:
        """The next state of the thread's messages."""
        self.messages = update.messages
        self._news |= {message["id"]: message for message in update.upserts}

    def begin_another(self) -> None:
        """What comes now is of another thread."""
        self.earlier, self.messages = [*self.earlier, *self.messages], ()
        self._news = {}

    def news(self) -> Sequence[BubbleMessage]:
        """The messages that are new or other than they were when this was asked for the last time."""
        news, self._news = self._news, {}
        return sorted(news.values(), key=lambda message: message["metadata"]["bubble"]["firstSeq"])
