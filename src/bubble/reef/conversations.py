"""The conversations that are under way, by thread, and whose each task is."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bubble.amphibian import Reply
from bubble.reef.hearing import Hearing
from bubble.reef.pointers import TaskOwners, TaskPointer
from bubble.reef.translator import Translator

__all__ = ["Conversation", "Conversations"]


@dataclass(eq=False, slots=True)
class Conversation:
    """One message and what answers it. `tasks` are those that the answer named, of which the translator knows the latest."""

    reply: Reply
    translator: Translator
    caller: asyncio.Task[object] | None
    hearing: Hearing = field(default_factory=Hearing)
    tasks: set[str] = field(default_factory=set)
    is_cancelled: bool = False

    @property
    def task_id(self) -> str | None:
        """The task that it is about."""
        return self.translator.task_id

    @property
    def is_leaving(self) -> bool:
        """Whether it is being cut off."""
        return self.caller is not None and self.caller.cancelling() > 0


class Conversations:
    """All of them. A task is a thread's from when it is claimed until no conversation is about it and no session holds it."""

    def __init__(self) -> None:
        self._under_way: defaultdict[str, list[Conversation]] = defaultdict(list)
        self._abandoned: defaultdict[str, set[str]] = defaultdict(set)
        self._owners = TaskOwners()

    @contextmanager
    def hold(self, reply: Reply, translator: Translator) -> Iterator[Conversation]:
        """A conversation of the caller's, for as long as the block lasts. Its task is cut off if the block is cancelled."""
        thread_id = reply.thread_id
        conversation = Conversation(reply, translator, asyncio.current_task())
        among = self._under_way[thread_id]
        among.append(conversation)
        try:
            yield conversation
        except asyncio.CancelledError:
            if not conversation.is_cancelled and translator.task_id is not None:
                self._abandoned[thread_id].add(translator.task_id)
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
        cut_off = self._abandoned.pop(thread_id, set())
        for conversation in self._under_way.get(thread_id, ()):
            if conversation.task_id is not None and conversation.is_leaving:
                conversation.is_cancelled = True
                cut_off.add(conversation.task_id)
        return cut_off

    def claim(self, thread_id: str, task_id: str) -> bool:
        """Makes the task the thread's. False where it is another one's."""
        return self._owners.claim(task_id, thread_id)

    def release(self, thread_id: str, task_id: str) -> None:
        """The thread has done with the task, unless another conversation is about it."""
        if self.about(thread_id, task_id) is None:
            self._owners.release(task_id, thread_id)

    def _going_on(self, thread_id: str) -> Iterator[Conversation]:
        return (each for each in self._under_way.get(thread_id, ()) if not each.is_leaving)
