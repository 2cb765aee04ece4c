"""The conversations that are under way, by thread, and whose each task is."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bubble.amphibian import Reply
from bubble.protocol.errors import BubbleError
from bubble.reef.failures import AgentFailure
from bubble.reef.hearing import Hearing
from bubble.reef.pointers import TaskOwners, TaskPointer
from bubble.reef.translator import Translator

__all__ = ["Conversation", "Conversations"]


@dataclass(eq=False, slots=True)
class Conversation:
    """One message and what answers it. `tasks` are those that the answer named, of which the translator knows the latest.

    `working` is what the session says of the task meanwhile, whichever it turns out to be.
    """

    reply: Reply
    translator: Translator
    working: TaskPointer
    caller: asyncio.Task[object] | None
    hearing: Hearing = field(default_factory=Hearing)
    tasks: set[str] = field(default_factory=set)
    is_cancelled: bool = False

    @property
    def task_id(self) -> str | None:
        """The task that it is about."""
        return self.translator.task_id

    @property
    def cut_off(self) -> set[str]:
        """The tasks that nobody waits for once it is cut off: none where it is for a result, which is then given again."""
        if self.reply.comes_again and self.working.is_at_work_on_results:
            return set()
        return self.tasks | ({self.task_id} if self.task_id is not None else set())

    @property
    def is_leaving(self) -> bool:
        """Whether it is being cut off."""
        return self.caller is not None and self.caller.cancelling() > 0


class Conversations:
    """All of them. A task is a thread's from when it is claimed until no conversation is about it and no session holds it."""

    def __init__(self) -> None:
        self._under_way: defaultdict[str, list[Conversation]] = defaultdict(list)
        self._abandoned: defaultdict[str, list[Conversation]] = defaultdict(list)
        self._owners = TaskOwners()

    @contextmanager
    def hold(self, reply: Reply, translator: Translator, working: TaskPointer) -> Iterator[Conversation]:
        """A conversation of the caller's, for as long as the block lasts. Its tasks are cut off if the block is cancelled, or fails with
        what is not the agent's.
        """
        thread_id = reply.thread_id
        conversation = Conversation(reply, translator, working, asyncio.current_task())
        among = self._under_way[thread_id]
        among.append(conversation)
        try:
            yield conversation
        except AgentFailure:
            raise
        except (asyncio.CancelledError, BubbleError):
            if not conversation.is_cancelled:
                self._abandoned[thread_id].append(conversation)
            raise
        finally:
            conversation.hearing.end()
            among.remove(conversation)
            if not among:
                self._under_way.pop(thread_id, None)
            kept = TaskPointer.of(reply.session).task_id
            for task_id in conversation.tasks - {kept}:
                self.release(thread_id, task_id)

    def about(self, thread_id: str, task_id: str, *, beside: Conversation | None = None) -> Conversation | None:
        """The oldest one on the thread, other than `beside`, that is about the task and goes on."""
        same = (each for each in self._going_on(thread_id) if each is not beside and each.task_id == task_id)
        return next(same, None)

    def latest(self, thread_id: str) -> Conversation | None:
        """The youngest one on the thread that has a task and goes on."""
        having = [each for each in self._going_on(thread_id) if each.task_id is not None]
        return having[-1] if having else None

    def take_cut_off(self, thread_id: str) -> set[str]:
        """The tasks of those that were or are being cut off; each is given once."""
        leaving = [each for each in self._under_way.get(thread_id, ()) if each.is_leaving]
        for conversation in leaving:
            conversation.is_cancelled = True
        cut_off = [*self._abandoned.pop(thread_id, ()), *leaving]
        return set().union(*(conversation.cut_off for conversation in cut_off))

    def claim(self, thread_id: str, task_id: str) -> bool:
        """Makes the task the thread's. False where it is another one's."""
        return self._owners.claim(task_id, thread_id)

    def release(self, thread_id: str, task_id: str) -> None:
        """The thread has done with the task, unless another conversation is about it."""
        if self.about(thread_id, task_id) is None:
            self._owners.release(task_id, thread_id)

    def _going_on(self, thread_id: str) -> Iterator[Conversation]:
        return (each for each in self._under_way.get(thread_id, ()) if not each.is_leaving)
