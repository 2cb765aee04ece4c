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
# Of a task that goes on and on, the latest artifacts are those that it may send again.
_MOST_ARTIFACTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPointer:
    """A task of a thread, and the artifacts that it has brought so far; `task_id` is None where there is none.

    A task waits for somebody, or `is_at_work` on a turn. A pointer to one at work, found where no turn is under way, was left by a process
    that was killed: that turn was cut off.
    """

    task_id: str | None = None
    artifacts: Sequence[str] = ()
    is_at_work: bool = False

    @classmethod
    def of(cls, session: Session) -> TaskPointer:
        """The pointer in a thread's session."""
        kept = session.get()
        task_id, artifacts = kept.get(_TASK), kept.get(_ARTIFACTS)
        if not isinstance(task_id, str):
            return cls()
        listed = artifacts if isinstance(artifacts, list) else []
        return cls(
            task_id=task_id,
            artifacts=[each for each in listed if isinstance(each, str)],
            is_at_work=kept.get(_AT_WORK) is True,
        )

    def at_work(self) -> TaskPointer:
        """The same task, at work."""
        return replace(self, is_at_work=True)

    def waiting(self) -> TaskPointer:
        """The same task, waiting."""
        return replace(self, is_at_work=False)

    async def keep_in(self, session: Session) -> None:
        """Keeps the pointer, durably, in place of the one before; no write where it is the same."""
        if self == TaskPointer.of(session):
            return
        kept: dict[str, JSONValue] = {}
        if self.task_id is not None:
            kept = {_TASK: self.task_id, _ARTIFACTS: [*self.artifacts[-_MOST_ARTIFACTS:]]}
            if self.is_at_work:
                kept[_AT_WORK] = True
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
