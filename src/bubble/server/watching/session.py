"""A bot's session as the log of its thread tells it, beside the messages: how often it was cleared, what was deleted, which runs are
open, and what is passed on to watchers as it happens.

A run has failed if its last chunk was an `error`, or if it ended as `failed` or `lost`. What comes after an error and says nothing (the end
of a step or of a message) does not change that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from bubble.protocol.errors import InvalidRequest
from bubble.protocol.events import (
    BubbleEvent,
    MessagePart,
    ParticipantJoined,
    ParticipantLeft,
    RunFinished,
    RunStarted,
    SequencedEvent,
    ThreadTitleUpdated,
)
from bubble.protocol.jsontext import JSONValue, load_json
from bubble.protocol.resources import Principal, Run
from bubble.protocol.timestamps import parse_ms
from bubble.server.messages.glances import NATIVE, glance
from bubble.server.watching.controls import MessageDeleted, SessionCleared, read_control
from bubble.watch.frames import AgentState, BoxState, PageTitleChanged, RosterChanged, TurnFailed, WatchFrame

__all__ = ["TITLES", "Aside", "BotSession", "Failure", "OpenRun", "failure_of", "roster_change"]

#: The `storeId` of thread titles.
TITLES: Final = "threads"

_LOST: Final = frozenset({"failed", "lost"})
# Chunks after which an error before them is still how the run went.
_SAYING_NOTHING: Final = frozenset({"finish", "finish-step", "abort", "text-end", "reasoning-end", "message-metadata"})


class Aside(NamedTuple):
    """Something that is told beside the transcript, because of the event `seq`."""

    seq: int
    frame: WatchFrame


@dataclass(frozen=True, slots=True)
class Failure:
    """What an `error` chunk says."""

    code: str | int
    summary: str


_WITHOUT_WORDS: Final = Failure("INTERNAL", "")


@dataclass(slots=True)
class OpenRun:
    """A run of the bot; `failure` is its last chunk, if that was an error."""

    run_id: str
    started_at_ms: int
    kind: str | None
    failure: Failure | None = None

    @classmethod
    def of(cls, run: Run, *, failure: Failure | None) -> OpenRun:
        """A run as the store knows it."""
        kind = run.kind if isinstance(run.kind, str) else None
        return cls(run.run_id, parse_ms(run.started_at), kind, failure)


@dataclass(slots=True)
class BotSession:
    """The session up to some event. `read` takes what follows."""

    bot: Principal
    thread_id: str
    generation: int = 0
    #: The event that cleared it last; 0 if none did.
    cleared_seq: int = 0
    #: Of the present generation: the row, and the event that deleted it.
    deleted: dict[str, int] = field(default_factory=dict)
    #: Whether the bot left the thread, and did not come back.
    has_left: bool = False
    box: BoxState | None = None
    runs: dict[str, OpenRun] = field(default_factory=dict)
    _own: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._own = b'"principalId":"%b"' % self.bot_id.encode("ascii")  # in the text of each event of the bot's

    @property
    def bot_id(self) -> str:
        """The bot's principal."""
        return self.bot.principal_id

    def live(self) -> AgentState:
        """What the bot is doing here: all of it."""
        return AgentState(snapshot=True, live=[self._live(run) for run in self.runs.values()])

    def listed(self, *, at_ms: int) -> RosterChanged:
        """How the bot is listed here, or that it has left."""
        return roster_change(self.bot, kind="left" if self.has_left else "listed", at_ms=at_ms)

    def read(self, texts: Sequence[bytes]) -> list[Aside]:
        """Takes stored events; what is to be told of them. Of states that follow each other only the last is."""
        asides = [Aside(glance(text).seq, frame) for text in texts for frame in self._read(text)]
        last = {type(aside.frame): aside for aside in asides}
        return [aside for aside in asides if not isinstance(aside.frame, AgentState) or last[AgentState] is aside]

    def cleared_seq_after(self, texts: Iterable[bytes]) -> int:
        """The event that will have cleared it last, once it has read the texts."""
        ahead = BotSession(self.bot, self.thread_id)
        ahead.read([text for text in texts if text.endswith(NATIVE)])
        return ahead.cleared_seq or self.cleared_seq

    def _read(self, text: bytes) -> Iterator[WatchFrame]:
        seen = glance(text)
        is_mine = self._own in text
        if seen.finishes:
            if seen.run_id in self.runs:
                yield from self._take(text)
        elif seen.run_id is None or (is_mine and (seen.starts or self._may_matter(text, seen.run_id))):
            yield from self._take(text)

    def _may_matter(self, text: bytes, run_id: str) -> bool:
        run = self.runs.get(run_id)
        has_failed = run is not None and run.failure is not None
        return has_failed or b"error" in text or b"agent_event" in text or b"\\u" in text

    def _take(self, text: bytes) -> Iterator[WatchFrame]:
        stored = SequencedEvent.from_stored(text)
        try:
            event = stored.event
        except InvalidRequest:  # a type of a later version
            return
        yield from self._take_event(event, seq=stored.seq, at_ms=parse_ms(stored.created_at))

    def _take_event(self, event: BubbleEvent, *, seq: int, at_ms: int) -> Iterator[WatchFrame]:
        if isinstance(event, RunStarted):
            if event.principal_id == self.bot_id:
                kind = event.kind if isinstance(event.kind, str) else None
                self.runs[event.run_id] = OpenRun(event.run_id, at_ms, kind)
                yield self.live()
        elif isinstance(event, RunFinished):
            yield from self._finish(event, at_ms)
        elif isinstance(event, MessagePart):
            if event.principal_id == self.bot_id:
                yield from self._take_part(event, seq, at_ms)
        elif isinstance(event, ThreadTitleUpdated):
            yield PageTitleChanged(store_id=TITLES, document_id=self.thread_id, title=event.title, changed_at_ms=at_ms)
        elif isinstance(event, ParticipantJoined | ParticipantLeft) and event.principal_id == self.bot_id:
            has_joined = isinstance(event, ParticipantJoined)
            self.has_left = not has_joined
            yield roster_change(self.bot, kind="joined" if has_joined else "left", at_ms=at_ms)

    def _finish(self, event: RunFinished, at_ms: int) -> Iterator[WatchFrame]:
        run = self.runs.pop(event.run_id)
        failure = run.failure or (_WITHOUT_WORDS if event.outcome in _LOST else None)
        if failure is not None:
            yield TurnFailed(
                agent_id=self.bot_id,
                session_id=self.thread_id,
                turn_id=run.run_id,
                code=failure.code,
                summary=failure.summary,
                failed_at_ms=at_ms,
            )
        yield self.live()

    def _take_part(self, event: MessagePart, seq: int, at_ms: int) -> Iterator[WatchFrame]:
        run = self.runs.get(event.run_id)
        if run is not None:
            run.failure = failure_of(event, before=run.failure)
        control = read_control(event, at_ms=at_ms)
        if isinstance(control, SessionCleared):
            self.generation += 1
            self.cleared_seq = seq
            self.deleted.clear()
        elif isinstance(control, MessageDeleted):
            self.deleted[control.entry_id] = seq
        elif control is not None:
            if isinstance(control.frame, BoxState):
                self.box = control.frame
            yield control.frame

    def _live(self, run: OpenRun) -> dict[str, JSONValue]:
        row: dict[str, JSONValue] = {"agentId": self.bot_id, "sessionId": self.thread_id, "runId": run.run_id}
        if run.kind is not None:
            row["kind"] = run.kind
        return {**row, "startedAtMs": run.started_at_ms}


def failure_of(event: MessagePart, *, before: Failure | None) -> Failure | None:
    """How the run stands after the part, if it stood at `before`."""
    if event.version != "ai-sdk-v6":
        return None
    part = load_json(bytes(event.part))
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in _SAYING_NOTHING:
        return before
    if kind != "error" or not isinstance(part, dict):
        return None
    code, text = part.get("code"), part.get("errorText")
    if not isinstance(code, str | int) or isinstance(code, bool) or code == "":
        code = "INTERNAL"
    return Failure(code, text if isinstance(text, str) else "")


def roster_change(bot: Principal, *, kind: str, at_ms: int, changed: Sequence[str] = ()) -> RosterChanged:
    """A change of the bot as it is listed; it is not listed here any more when it has left."""
    agent: dict[str, JSONValue] | None = None
    if kind != "left":
        agent = {"principalId": bot.principal_id, "kind": bot.kind, "displayName": bot.display_name}
        if isinstance(bot.disabled_at, str):
            agent["disabledAt"] = bot.disabled_at
    return RosterChanged(agent_id=bot.principal_id, kind=kind, agent=agent, changed_fields=changed, changed_at_ms=at_ms)
