"""What reef keeps about a thread's tasks: in its session the one to continue, in memory whose every task is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bubble.amphibian import Session
from bubble.protocol.jsontext import JSONValue

__all__ = ["TaskOwners", "TaskPointer"]

_TASK = "taskId"
_ARTIFACTS = "artifacts"
_AT_WORK = "atWork"
_QUESTION = "question"
_SINCE = "since"
_CALLS = "calls"
# Of a task that goes on and on, the latest artifacts are those that it may send again.
_MOST_ARTIFACTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPointer:
    """A task of a thread, and the artifacts that it has brought so far; `task_id` is None where there is none.

    A task waits for somebody, or `is_at_work`: on the `question` of a turn, told by its last seq, on the results of `calls`, or on both. A
    pointer to one at work, found where nothing is under way, was left behind: what it was at work on was cut off. Where `since` is not 0,
    it got only what was said to its end at that seq or later; the rest of the turn had been answered just before.
    """

    task_id: str | None = None
    artifacts: Sequence[str] = ()
    is_at_work: bool = False
    question: int | None = None
    since: int = 0
    calls: tuple[str, ...] = ()

    @classmethod
    def of(cls, session: Session) -> TaskPointer:
        """The pointer in a thread's session."""
        kept = session.get()
        task_id, question, since = kept.get(_TASK), kept.get(_QUESTION), kept.get(_SINCE)
        if not isinstance(task_id, str):
            return cls()
        return cls(
            task_id=task_id,
            artifacts=_texts(kept.get(_ARTIFACTS)),
            is_at_work=kept.get(_AT_WORK) is True,
            question=question if isinstance(question, int) else None,
            since=since if isinstance(since, int) else 0,
            calls=tuple(_texts(kept.get(_CALLS))),
        )

    @property
    def is_at_work_on_results(self) -> bool:
        """Whether it is at work on nothing but results, which are given to it again should that be cut off."""
        return self.is_at_work and self.question is None and bool(self.calls)

    def at_work_on_question(self, seq: int, *, since: int = 0) -> TaskPointer:
        """The same task, at work on the question that ends at `seq`, beside what it is at work on."""
        return replace(self, is_at_work=True, question=seq, since=since)

    def at_work_on_result(self, call_id: str) -> TaskPointer:
        """The same task, at work on a call's result, beside what it is at work on."""
        return replace(self, is_at_work=True, calls=(*(each for each in self.calls if each != call_id), call_id))

    def waiting(self) -> TaskPointer:
        """The same task, waiting."""
        return replace(self, is_at_work=False, question=None, since=0, calls=())

    async def keep_in(self, session: Session) -> None:
        """Keeps the pointer, durably, in place of the one before; no write where it is the same."""
        if self == TaskPointer.of(session):
            return
        kept: dict[str, JSONValue] = {}
        if self.task_id is not None:
            kept = {_TASK: self.task_id, _ARTIFACTS: [*self.artifacts[-_MOST_ARTIFACTS:]]}
            if self.is_at_work:
                kept[_AT_WORK] = True
            if self.question is not None:
                kept[_QUESTION] = self.question
            if self.since:
                kept[_SINCE] = self.since
            if self.calls:
                kept[_CALLS] = [*self.calls]
        await session.set(kept)


class TaskOwners:
    """Whose each task is, while it works or waits: no two threads share one."""

    def __init__(self) -> None:
        self._threads: dict[str, str] = {}

    def claim(self, task_id: str, thread_id: str) -> bool:
        """Makes the task the thread's. False where it is another one's."""
        return self._threads.setdefault(task_id, thread_id) == thread_id

    def release(self, task_id: str, thread_id: str) -> None:
        """The thread has done with it."""
        if self._threads.get(task_id) == thread_id:
            del self._threads[task_id]


def _texts(value: JSONValue) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
