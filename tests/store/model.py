"""A store against a Python list: a machine that does what callers do, and a model, a few dictionaries, that says what must come of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bubble.protocol.errors import Conflict, InvalidRequest, NotFound
from bubble.protocol.events import SequencedEvent
from bubble.store.base import BubbleStore
from bubble.store.commands import IdempotencyKey
from bubble.store.notices import Committed, Notice
from bubble.testing.store_suite import ManualClock
from bubble.testing.store_suite.base import Event, a_call, a_finish, a_part, a_start, an_approval

__all__ = ["StoreMachine"]

T = TypeVar("T")

THREADS: Final = st.sampled_from(["t", "u"])
RUNS: Final = st.sampled_from(["run-1", "run-2", "run-3"])
PEOPLE: Final = st.sampled_from(["ann", "bob"])
CALLS: Final = st.sampled_from(["call-1", "call-2"])
KEYS: Final = st.sampled_from(["key-1", "key-2"])
EVENTS: Final = st.one_of(
    st.builds(a_start, RUNS, PEOPLE),
    st.builds(a_part, RUNS, PEOPLE, st.text(max_size=3)),
    st.builds(a_finish, RUNS, PEOPLE),
    st.builds(a_call, st.sampled_from(["tool_call_result", "run_interrupt_requested"]), RUNS, PEOPLE, CALLS),
    st.builds(an_approval, RUNS, PEOPLE, CALLS, approved=st.booleans()),
)
BATCHES: Final = st.lists(EVENTS, min_size=1, max_size=6)


@dataclass
class ModelThread:
    """What a thread must be."""

    log: list[Event] = field(default_factory=list)
    runs: dict[str, str] = field(default_factory=dict)
    decided: set[tuple[str, str]] = field(default_factory=set)
    keys: dict[str, tuple[bytes, list[int]]] = field(default_factory=dict)
    cursors: dict[str, int] = field(default_factory=dict)

    def takes(self, events: list[Event]) -> bool:
        """Whether the lifecycle allows `events`, one after the other."""
        trial = ModelThread(runs=dict(self.runs), decided=set(self.decided))
        return all(trial.note(event) for event in events)

    def note(self, event: Event) -> bool:
        """Notes an event beside the log, if the lifecycle allows it."""
        run_id, kind = str(event["runId"]), event["type"]
        state = self.runs.get(run_id)
        if kind == "run_started":
            self.runs.setdefault(run_id, "open")
            return state is None
        if kind == "run_finished":
            self.runs[run_id] = "finished"
            return state == "open"
        if kind == "message_part":
            return state == "open"
        if kind == "tool_call_approval":
            call = (run_id, str(event["toolCallId"]))
            is_first = call not in self.decided
            self.decided.add(call)
            return state is not None and is_first
        return state is not None


class StoreMachine(RuleBasedStateMachine):
    """Subclass with an `open_store`."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.clock = ManualClock()
        self.store = self.run(self.open_store())
        self.threads: dict[str, ModelThread] = {}
        self.retired: set[str] = set()
        self.told: dict[str, list[bytes]] = {}
        self.store.listen(self.heard)

    async def open_store(self) -> BubbleStore:
        """An empty store on `self.clock`."""
        raise NotImplementedError

    def heard(self, notices: Sequence[Notice]) -> None:
        """Keeps every event that a listener is told of."""
        for notice in notices:
            if isinstance(notice, Committed):
                self.told.setdefault(notice.thread_id, []).extend(notice.events)

    def run(self, doing: Awaitable[T]) -> T:
        """Does something on the machine's event loop."""

        async def done() -> T:
            return await doing

        return self.runner.run(done())

    def teardown(self) -> None:
        self.run(self.store.close())
        self.runner.close()

    # --- what callers do ------------------------------------------------------------------------------------------------------

    @rule(thread_id=THREADS, events=BATCHES, off_by=st.sampled_from([None, None, 0, 0, 1, -1]))
    def append(self, thread_id: str, events: list[Event], off_by: int | None) -> None:
        """A batch, sometimes with an expected head."""
        model = self.threads.get(thread_id, ModelThread())
        expected = None if off_by is None else len(model.log) + off_by
        fits = thread_id not in self.retired and off_by in (None, 0) and model.takes(events)
        try:
            stored = self.run(self.store.append_many(thread_id, events, expected_head=expected))
        except Conflict:
            assert not fits
            return
        assert fits
        self.take(thread_id, events, [event.seq for event in stored])

    def take(self, thread_id: str, events: list[Event], seqs: list[int]) -> ModelThread:
        """Does to the model what the store did."""
        model = self.threads.setdefault(thread_id, ModelThread())
        assert seqs == list(range(len(model.log) + 1, len(model.log) + len(events) + 1))
        for event in events:
            assert model.note(event)
            model.log.append(event)
        return model

    @rule(thread_id=THREADS, events=BATCHES, key=KEYS)
    def append_once(self, thread_id: str, events: list[Event], key: str) -> None:
        """A batch under a key that may be taken already, by the same body or another."""
        digest = repr(events).encode().ljust(32)[:32]
        model = self.threads.get(thread_id, ModelThread())
        kept = model.keys.get(key)
        idempotency = IdempotencyKey(caller="ann", key=key, digest=digest)
        try:
            stored = self.run(self.store.append_many(thread_id, events, idempotency=idempotency))
        except Conflict:
            assert thread_id in self.retired or (kept[0] != digest if kept else not model.takes(events))
            return
        seqs = [event.seq for event in stored]
        if kept is not None:
            assert kept == (digest, seqs)
        else:
            self.take(thread_id, events, seqs).keys[key] = (digest, seqs)

    @rule(thread_id=THREADS, batches=st.lists(BATCHES, min_size=2, max_size=5))
    def append_at_once(self, thread_id: str, batches: list[list[Event]]) -> None:
        """Several batches in one group: each is decided after those before it."""

        async def all_together() -> list[Sequence[SequencedEvent] | BaseException]:
            appends = [self.store.append_many(thread_id, events) for events in batches]
            return list(await asyncio.gather(*appends, return_exceptions=True))

        for events, result in zip(batches, self.run(all_together()), strict=True):
            model = self.threads.get(thread_id, ModelThread())
            fits = thread_id not in self.retired and model.takes(events)
            assert fits == (not isinstance(result, BaseException))
            if not isinstance(result, BaseException):
                self.take(thread_id, events, [event.seq for event in result])

    @rule(thread_id=THREADS, name=PEOPLE, seq=st.integers(0, 12))
    def advance_cursor(self, thread_id: str, name: str, seq: int) -> None:
        """A cursor, sometimes backwards or too far."""
        model = self.threads.get(thread_id)
        try:
            reached = self.run(self.store.advance_cursor(thread_id, name, seq))
        except NotFound:
            assert model is None
            return
        except InvalidRequest:
            assert model is not None
            assert seq > len(model.log)
            return
        assert model is not None
        model.cursors[name] = max(seq, model.cursors.get(name, 0))
        assert reached == model.cursors[name]

    @rule(ms=st.integers(-2_000, 5_000))
    def let_time_pass(self, ms: int) -> None:
        """The clock may also be set back."""
        self.clock.advance(ms)

    @precondition(lambda self: self.threads)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        """A thread goes for good, which is rare."""
        if data.draw(st.integers(0, 3)) == 0:
            thread_id = data.draw(st.sampled_from(sorted(self.threads)))
            self.run(self.store.delete_thread(thread_id))
            self.retired.add(thread_id)
            del self.threads[thread_id]
            del self.told[thread_id]

    @precondition(lambda self: self.threads)
    @rule(data=st.data(), first=st.integers(1, 12), last=st.integers(1, 12), limit=st.integers(1, 5))
    def page(self, data: st.DataObject, first: int, last: int, limit: int) -> None:
        """Any page of any thread."""
        thread_id = data.draw(st.sampled_from(sorted(self.threads)))
        head = len(self.threads[thread_id].log)
        page = self.run(self.store.get_event_page(thread_id, from_seq=first, to_seq=last, limit=limit))
        seqs = [SequencedEvent.from_text(bytes(event)).seq for event in page.events]
        slice_ = list(range(first, min(last, head) + 1))
        assert seqs == slice_[:limit]
        assert page.next_seq == (slice_[limit] if len(slice_) > limit else None)

    # --- what must always hold ------------------------------------------------------------------------------------------------

    @invariant()
    def the_log_is_the_list(self) -> None:
        """Every event is there, in order, once; nothing else is; and listeners were told exactly that."""
        for thread_id, model in self.threads.items():
            texts = self.run(self.store.read(thread_id, from_seq=1, to_seq=10**6, limit=10**6, max_bytes=2**40))
            stored = [SequencedEvent.from_text(text).to_dict() for text in texts]
            times = [str(event.pop("createdAt")) for event in stored]
            assert times == sorted(times)
            assert stored == [{"seq": seq, **event} for seq, event in enumerate(model.log, start=1)]
            assert self.told[thread_id] == list(texts)

    @invariant()
    def the_records_agree(self) -> None:
        """Heads, runs and cursors are what the log makes of them."""
        positions = self.run(self.store.positions(["t", "u"]))
        assert {name: position.head for name, position in positions.items()} == {
            name: len(model.log) for name, model in self.threads.items()
        }
        for thread_id, model in self.threads.items():
            runs = self.run(self.store.list_runs(thread_id)).runs
            assert {run.run_id: run.state for run in runs} == model.runs
            for name, seq in model.cursors.items():
                assert self.run(self.store.get_cursor(thread_id, name)) == seq
        assert self.run(self.store.check()) == []
