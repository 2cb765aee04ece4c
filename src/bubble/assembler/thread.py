"""One thread's messages, kept up to date (spec 4, "Stateful threads").

Three things move a thread: events at its end (`apply`), older ones (`prepend`), and the line below which contributions are settled
(`clear_window`). Messages depend on the set of events alone, and a window on that and the line; so there is nothing to keep in step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeAlias

from bubble.assembler.handlers import Handlers, Reading
from bubble.assembler.messages import BubbleMessage, Grouping, RoleOf, default_role
from bubble.assembler.projection import Projection
from bubble.assembler.records import PartRecord, read_record
from bubble.assembler.retained import GivenEvent, KeptEvent, Retained, keep
from bubble.assembler.turns import Turns

__all__ = ["Applied", "ThreadAssembler", "ThreadSnapshot", "Window"]


@dataclass(frozen=True, slots=True)
class Applied:
    """What came of new events: whether the list of messages is another one now."""

    changed: bool


@dataclass(frozen=True, slots=True)
class ThreadSnapshot:
    """All messages in the order in which they were opened, and the range of seqs that they were made of (0 and None for no event).

    Messages that did not change since another snapshot are the same objects there. Nothing in a snapshot changes; do not change it either.
    """

    messages: tuple[BubbleMessage, ...]
    head_seq: int
    oldest_seq: int | None


@dataclass(frozen=True, slots=True)
class Window:
    """What the events above the last cleared seq contributed, up to and including `through_seq`, which is the head."""

    messages: tuple[BubbleMessage, ...]
    through_seq: int


_Native: TypeAlias = tuple[PartRecord, Reading]  # an event with a native part, and what that stands for


class ThreadAssembler:
    """The messages of one thread. Operations take effect one after the other, in the order in which they were called.

    After `close`, or after an `async with` block, every other operation is a `RuntimeError`.
    """

    def __init__(self, *, handlers: Handlers, grouping: Grouping = "speaker", role_of: RoleOf = default_role) -> None:
        if grouping not in ("speaker", "run"):
            raise ValueError(f'`grouping` must be "speaker" or "run", not {grouping!r}.')
        self._handlers = handlers
        self._grouping = grouping
        self._role_of = role_of
        self._retained = Retained()
        self._projection = self._new_projection()
        self._cleared = 0
        self._is_closed = False
        self._turns = Turns()

    async def apply(self, events: Iterable[GivenEvent]) -> Applied:
        """Folds in the events above the head; those at or below it are ignored, so overlaps do no harm. Gaps are fine.

        Folding itself does not wait for anything: give a long log in slices where others must run meanwhile.
        `ValueError` where the seqs do not ascend, `InvalidRequest` for what is no stored event, and whatever a part handler raises: then
        nothing has changed.
        """
        async with self._turns:
            self._check_open()
            kept = keep(events)
            _check_ascending(kept)
            fresh = [event for event in kept if event[0] > self._retained.head_seq]
            natives = await self._read_natives(fresh)
            self._retained.extend(fresh)
            return Applied(_project(self._projection, fresh, natives))

    async def snapshot(self) -> ThreadSnapshot:
        """The whole thread as it is now."""
        async with self._turns:
            self._check_open()
            return self._snapshot()

    async def prepend(self, events: Iterable[GivenEvent]) -> Applied:
        """Adds older events, in any order: those below the head that are not held yet; the others are ignored.

        Everything is folded anew and takes the place of what was there when that has succeeded; a part handler that raises leaves all as it
        was. So give several pages at once, or ever larger ones. Into an empty thread it adds everything.
        """
        async with self._turns:
            self._check_open()
            union = self._retained.with_older(keep(events))
            return Applied(union is not None and await self._replace(union))

    async def window(self) -> Window:
        """What uncleared events contributed: segments and ids are those of the snapshot, texts show only what was added since.

        A tool call or a data part that changed is shown whole. A reaction on what was cleared, metadata, and the end of a block or of a run
        show nothing. Reading a window consumes nothing.
        """
        async with self._turns:
            self._check_open()
            messages = self._projection.messages_since(self._cleared) if self._cleared else self._projection.messages()
            return Window(tuple(messages), self._retained.head_seq)

    async def clear_window(self, through_seq: int) -> None:
        """Settles everything up to and including `through_seq`, or nothing where that is settled already. `ValueError` beyond the head."""
        async with self._turns:
            self._check_open()
            if through_seq > self._retained.head_seq:
                raise ValueError(f"Cannot clear through {through_seq}: the head is {self._retained.head_seq}.")
            self._cleared = max(self._cleared, through_seq)

    async def close(self) -> None:
        """Lets go of everything, after the operations that were called before. Closing again does nothing."""
        async with self._turns:
            self._is_closed = True
            self._retained = Retained()
            self._projection = self._new_projection()

    async def read_by(self, handlers: Handlers) -> ThreadAssembler:
        """What `Assembler.reopen` gives."""
        async with self._turns:
            self._check_open()
            other = ThreadAssembler(handlers=handlers, grouping=self._grouping, role_of=self._role_of)
            await other._replace(Retained(self._retained))
            other._projection.adopt(self._projection.messages())
            other._cleared = self._cleared
            return other

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise RuntimeError("This thread assembler is closed.")

    def _new_projection(self) -> Projection:
        return Projection(grouping=self._grouping, role_of=self._role_of)

    async def _read_natives(self, events: Iterable[KeptEvent]) -> dict[int, _Native]:
        natives: dict[int, _Native] = {}
        for seq, text in events:
            if b'"bubble-v1"' in text:
                record = read_record(text)
                if isinstance(record, PartRecord) and record.version == "bubble-v1":
                    natives[seq] = record, await self._handlers.read(record.part)
        return natives

    def _snapshot(self) -> ThreadSnapshot:
        return ThreadSnapshot(tuple(self._projection.messages()), self._retained.head_seq, self._retained.oldest_seq)

    async def _replace(self, retained: Retained) -> bool:
        """Folds these events instead, once their native parts are read; whether the list of messages is another one then."""
        natives = await self._read_natives(retained)
        projection = self._new_projection()
        _project(projection, retained, natives)
        before = self._projection.messages()
        projection.adopt(before)
        self._retained, self._projection = retained, projection
        after = projection.messages()
        return len(before) != len(after) or any(one is not other for one, other in zip(before, after, strict=True))


def _check_ascending(events: Sequence[KeptEvent]) -> None:
    last = 0
    for seq, _ in events:
        if seq <= last:
            raise ValueError(f"Events must come in ascending order: {seq} comes after {last}.")
        last = seq


def _project(projection: Projection, events: Iterable[KeptEvent], natives: Mapping[int, _Native]) -> bool:
    changed = False
    for seq, text in events:
        record, reading = natives.get(seq) or (read_record(text), None)
        if record is not None:
            changed |= projection.project(record, reading)
    return changed
