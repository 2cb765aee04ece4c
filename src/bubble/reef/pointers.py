"""What reef keeps about a thread between two conversations: the task that waits, if one does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bubble.amphibian import Session
from bubble.protocol.jsontext import JSONValue

__all__ = ["TaskPointer"]

_TASK = "taskId"
_ARTIFACTS = "artifacts"
# Of a task that goes on and on, the latest artifacts are those that it may send again.
_MOST_ARTIFACTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPointer:
    """A task to continue, and the artifacts that it has brought so far; `task_id` is None where there is none."""

    task_id: str | None = None
    artifacts: Sequence[str] = ()

    @classmethod
    def of(cls, session: Session) -> TaskPointer:
        """The pointer in a thread's session."""
        kept = session.get()
        task_id, artifacts = kept.get(_TASK), kept.get(_ARTIFACTS)
        if not isinstance(task_id, str):
            return cls()
        listed = artifacts if isinstance(artifacts, list) else []
        return cls(task_id=task_id, artifacts=[each for each in listed if isinstance(each, str)])

    async def keep_in(self, session: Session) -> None:
        """Keeps the pointer, durably, in place of the one before; no write where it is the same."""
        if self == TaskPointer.of(session):
            return
        kept: dict[str, JSONValue] = {}
        if self.task_id is not None:
            kept = {_TASK: self.task_id, _ARTIFACTS: [*self.artifacts[-_MOST_ARTIFACTS:]]}
        await session.set(kept)
