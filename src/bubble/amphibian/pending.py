"""What others said that the agent was not told yet. Pure.

Events wait by run. A run that is over waits for the next drain, all of them together; one that goes on keeps its events here until it is
over. A run that is over and whose beginning did not go by is **torn**: it waits for its beginning, because half of what somebody said is no
question. Own runs are only noted: what they are, which tools they called and who has answered, and what they have answered themselves.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import msgspec
from msgspec import UNSET

from bubble.protocol.events import MessagePart, RunFinished, RunKind, RunStarted, SequencedEvent, ToolCallResult
from bubble.protocol.jsontext import mask_lone_surrogates

__all__ = ["Call", "OwnRuns", "PendingRun", "PendingRuns", "ResultsInTheLog", "in_order", "tool_called_in"]

# Own calls whose results may still come; those of older runs are looked up in the log.
_MOST_CALLS: Final = 1_000
_TOOL_MARK: Final = b'"tool-input-'


@dataclass(slots=True)
class PendingRun:
    """A run of somebody else's. `author` and `kind` are None as long as its beginning is not here."""

    run_id: str
    author: str | None = None
    kind: RunKind | None = None
    events: list[SequencedEvent] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """Whether its beginning is here."""
        return self.author is not None

    def begin(self, event: RunStarted) -> None:
        """Notes how it began."""
        self.author, self.kind = event.principal_id, None if event.kind is UNSET else event.kind

    @property
    def seqs(self) -> Iterator[int]:
        """Its events' seqs."""
        return (stored.seq for stored in self.events)

    @property
    def begins_at(self) -> int:
        """The seq of its first event here."""
        return self.events[0].seq

    @property
    def ends_at(self) -> int:
        """The seq of its last event here."""
        return self.events[-1].seq


class PendingRuns:
    """Runs of others: open ones, torn ones, and those that wait for a drain, in the order in which they ended."""

    def __init__(self) -> None:
        self._open: dict[str, PendingRun] = {}
        self._torn: list[PendingRun] = []
        self._finished: list[PendingRun] = []

    @property
    def finished(self) -> Sequence[PendingRun]:
        """The runs that wait for a drain."""
        return tuple(self._finished)

    @property
    def torn(self) -> Sequence[PendingRun]:
        """The runs that are over and wait for their beginning."""
        return tuple(self._torn)

    @property
    def open(self) -> Mapping[str, PendingRun]:
        """The runs that go on, by id."""
        return self._open

    def start(self, stored: SequencedEvent, event: RunStarted) -> None:
        """A run began."""
        run = self._open.setdefault(event.run_id, PendingRun(event.run_id))
        run.begin(event)
        run.events.append(stored)

    def add(self, stored: SequencedEvent, event: MessagePart) -> None:
        """Something was said in a run."""
        self._open.setdefault(event.run_id, PendingRun(event.run_id)).events.append(stored)

    def finish(self, stored: SequencedEvent, event: RunFinished) -> PendingRun:
        """A run ended. It waits for a drain, or, if its beginning is not here, to be mended or dropped."""
        run = self._open.pop(event.run_id, None) or PendingRun(event.run_id)
        run.events.append(stored)
        (self._finished if run.is_whole else self._torn).append(run)
        return run

    def mend(self, run: PendingRun, beginning: Sequence[SequencedEvent]) -> None:
        """What of a torn run was said before what is here: a `run_started` and what follows. It waits for a drain now."""
        first = beginning[0].event
        if not isinstance(first, RunStarted):
            raise TypeError("A run begins with its run_started.")
        run.begin(first)
        run.events[:0] = beginning
        self._torn.remove(run)
        self._finished.append(run)

    def drop(self, run: PendingRun) -> None:
        """Forgets a torn run."""
        self._torn.remove(run)

    def take_finished(self) -> Sequence[PendingRun]:
        """The runs that wait for a drain; they are the caller's now."""
        taken, self._finished = self._finished, []
        return taken

    def keep_back(self, runs: Sequence[PendingRun]) -> None:
        """Puts runs that were taken back in front."""
        self._finished[:0] = runs

    def take_answered(self, snapshot_seq: int) -> Sequence[PendingRun]:
        """Takes the runs out that an own run answered which began from the thread's state at `snapshot_seq`."""
        answered = [run for run in (*self._finished, *self._torn) if run.ends_at <= snapshot_seq]
        self._finished = [run for run in self._finished if run.ends_at > snapshot_seq]
        self._torn = [run for run in self._torn if run.ends_at > snapshot_seq]
        return answered


class _Chunk(msgspec.Struct, rename="camel"):
    type: str = ""
    tool_call_id: str = ""
    tool_name: str | None = None


_chunks = msgspec.json.Decoder(_Chunk)


def tool_called_in(event: MessagePart) -> tuple[str, str | None] | None:
    """The call id and the tool's name (None where it has none), if the part begins or completes a tool's input."""
    text = bytes(event.part)
    if _TOOL_MARK not in text or event.version != "ai-sdk-v6":
        return None
    masked, _ = mask_lone_surrogates(text)
    try:
        chunk = _chunks.decode(masked)
    except msgspec.DecodeError:  # not a chunk as the AI SDK has it
        return None
    if chunk.type not in ("tool-input-start", "tool-input-available") or not chunk.tool_call_id:
        return None
    return chunk.tool_call_id, chunk.tool_name


Call: TypeAlias = tuple[str, str]
"""The run's id and the call's."""


class ResultsInTheLog:
    """Which results were given, as far as a log tells: each that is forwarded begins a run of the bot's, in the same order.

    Such a run is `agent_work` and answers no question, so it has no `snapshotSeq`. If it failed, the agent did not take the result.
    """

    def __init__(self) -> None:
        self._own: set[str] = set()
        self._given: set[Call] = set()
        self._awaiting: deque[Call] = deque()
        self._in_runs: dict[str, Call] = {}

    def has(self, call: Call) -> bool:
        """Whether a call was given a result, and the agent took it or may do so."""
        return call in self._given

    def take_result(self, event: ToolCallResult) -> None:
        """A call was given a result."""
        call = (event.run_id, event.tool_call_id)
        if event.run_id in self._own and call not in self._given:
            self._given.add(call)
            self._awaiting.append(call)

    def start(self, event: RunStarted) -> None:
        """An own run began."""
        self._own.add(event.run_id)
        if self._awaiting and event.kind == "agent_work" and event.snapshot_seq is UNSET:
            self._in_runs[event.run_id] = self._awaiting.popleft()

    def finish(self, event: RunFinished) -> Call | None:
        """An own run ended; the call whose result was not taken in it, if that is what it tells."""
        call = self._in_runs.pop(event.run_id, None)
        if call is None or event.outcome not in ("failed", "lost"):
            return None
        self._given.discard(call)
        return call


@dataclass(slots=True)
class _OwnCall:
    name: str | None = None
    has_result: bool = False


class OwnRuns:
    """The bot's own runs, as far as they went by."""

    def __init__(self) -> None:
        self._open: dict[str, int | None] = {}
        self._asked_to_stop: set[str] = set()
        self._calls: OrderedDict[tuple[str, str], _OwnCall] = OrderedDict()
        self._other_results: OrderedDict[tuple[str, str], None] = OrderedDict()

    def start(self, event: RunStarted) -> None:
        """An own run began."""
        self._open[event.run_id] = None if event.snapshot_seq is UNSET else event.snapshot_seq

    def add(self, event: MessagePart) -> None:
        """Something was said in it."""
        if (called := tool_called_in(event)) is not None:
            call_id, name = called
            call = self._calls.setdefault((event.run_id, call_id), _OwnCall())
            call.name = name or call.name
            if len(self._calls) > _MOST_CALLS:
                self._calls.popitem(last=False)

    def take_result(self, event: ToolCallResult) -> bool:
        """Somebody gave a call its result. False if it has one: the first one counts, unless the agent did not take it."""
        key = (event.run_id, event.tool_call_id)
        if (call := self._calls.get(key)) is not None:
            is_first, call.has_result = not call.has_result, True
            return is_first
        is_first = key not in self._other_results  # of a call that did not go by, or is nobody's
        self._other_results[key] = None
        if len(self._other_results) > _MOST_CALLS:
            self._other_results.popitem(last=False)
        return is_first

    def give_back(self, call: Call) -> None:
        """The agent did not take a call's result: the next one counts."""
        if call in self._calls:
            self._calls[call].has_result = False
        self._other_results.pop(call, None)

    def is_open(self, run_id: str) -> bool:
        """Whether it is an own run that goes on."""
        return run_id in self._open

    def interrupt(self, run_id: str) -> None:
        """Somebody asked a run to stop."""
        if run_id in self._open:
            self._asked_to_stop.add(run_id)

    def finish(self, event: RunFinished) -> int | None:
        """An own run ended. The state it began from, if everything that had ended up to there counts as answered by it.

        A run that was cut off without anybody's asking answered nothing, whatever it called its outcome.
        """
        snapshot_seq = self._open.pop(event.run_id, None)
        was_asked = event.run_id in self._asked_to_stop
        self._asked_to_stop.discard(event.run_id)
        answers = event.outcome in (UNSET, "success") or (event.outcome == "interrupted" and was_asked)
        return snapshot_seq if answers else None

    def knows_call(self, run_id: str, tool_call_id: str) -> bool:
        """Whether the call went by."""
        return (run_id, tool_call_id) in self._calls

    def tool_name(self, run_id: str, tool_call_id: str) -> str | None:
        """The name of the tool of a call that went by."""
        call = self._calls.get((run_id, tool_call_id))
        return None if call is None else call.name


def in_order(runs: Iterable[PendingRun]) -> list[SequencedEvent]:
    """All events of the runs by seq."""
    return sorted((stored for run in runs for stored in run.events), key=lambda stored: stored.seq)
