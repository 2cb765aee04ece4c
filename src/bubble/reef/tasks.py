"""Which task of the agent a thread works on, in its session and at the agent."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from typing import Final

from bubble.amphibian import Session
from bubble.reef.client import A2AClient
from bubble.reef.conversations import Conversation, Conversations
from bubble.reef.discretion import quoted
from bubble.reef.events import WAITING, AgentEvent
from bubble.reef.failures import AgentFailure, Broken, Misdirected, Refused, Silent
from bubble.reef.pointers import TaskPointer

__all__ = ["Tasks"]

_logger = logging.getLogger("bubble.reef")

_ASKING_SECONDS: Final = 1.5


class Tasks:
    """The tasks of all threads: pointers to them in the sessions, conversations about them, and what the agent says of them."""

    def __init__(self, client: A2AClient, conversations: Conversations) -> None:
        self._client = client
        self._conversations = conversations

    async def pointer_to_continue(self, thread_id: str, session: Session) -> TaskPointer:
        """The task that takes the people's next words: one at work may, as well as one that waits, unless it was left behind."""
        pointer = await self.pointer_for(thread_id, session)
        if pointer.task_id is None or not pointer.is_at_work:
            return pointer
        if self._conversations.about(thread_id, pointer.task_id) is not None:
            return pointer
        event = await self.as_it_is(pointer.task_id)
        if event is not None and event.state in WAITING:
            await pointer.waiting().keep_in(session)
        elif event is not None and event.ends_the_task:
            await self.forget(session, pointer.task_id)
        else:
            await self.end_cut_off(pointer.task_id, session)
        return TaskPointer.of(session)

    async def pointer_for(self, thread_id: str, session: Session) -> TaskPointer:
        """The task of the thread: that of its latest conversation, or the one that the session holds, if it is the thread's."""
        pointer = TaskPointer.of(session)
        if (latest := self._conversations.latest(thread_id)) is not None:
            known = pointer if pointer.task_id == latest.task_id else latest.working
            return replace(known, task_id=latest.task_id, artifacts=latest.translator.artifacts)
        if pointer.task_id is not None and not self._conversations.claim(thread_id, pointer.task_id):
            _logger.warning(
                "Task %s is not continued on thread %s: it is another thread's.", quoted(pointer.task_id), thread_id
            )
            await TaskPointer().keep_in(session)
        return TaskPointer.of(session)

    async def end_cut_off(self, task_id: str, session: Session) -> None:
        """Cancels a task whose turn was cut off, and forgets it."""
        _logger.info("Task %s is cancelled: its turn was cut off.", quoted(task_id))
        await self._client.cancel_task(task_id)
        await self.forget(session, task_id)

    async def as_it_is(self, task_id: str) -> AgentEvent | None:
        """The task as the agent has it; None where it does not say."""
        with suppress(AgentFailure):
            return await self.as_it_is_in_time(task_id)
        return None

    async def as_it_is_in_time(self, task_id: str) -> AgentEvent | None:
        """The same. Raises what asking raises, `Silent` where no answer comes in time."""
        try:
            async with asyncio.timeout(_ASKING_SECONDS):
                return await self._client.get_task(task_id)
        except TimeoutError:
            raise Silent("The agent does not say what has become of its task.") from None

    async def may_be_over(self, task_id: str, failure: Refused | Broken) -> bool:
        """Whether the message was not taken because its task takes none any more: what the agent itself says, not a proxy's page."""
        if failure.begun:
            return False
        if isinstance(failure, Refused):
            return failure.about is not None
        # The official 0.3 server over HTTP+JSON breaks the stream off where others say what is wrong.
        return await self._end(task_id) is not None

    async def why_it_is_over(self, task_id: str, failure: Refused | Broken) -> str | None:
        """What the agent says of a task that does not take a message because it is over; None where it is not, or nobody can tell."""
        if failure.begun:
            return None
        if isinstance(failure, Refused) and failure.about != "message":
            return failure.message if failure.about == "task" else None
        return await self._end(task_id)

    async def _end(self, task_id: str) -> str | None:
        """Asks the agent whether the task is over or unknown; in words, if so."""
        try:
            event = await self._client.get_task(task_id)
        except Refused as refused:
            return refused.message if refused.about == "task" else None
        except AgentFailure:
            return None
        return "The agent's task is over." if event is not None and event.ends_the_task else None

    def claim(self, event: AgentEvent, conversation: Conversation) -> None:
        """Makes the event's task the thread's own. Raises `Misdirected` where it is another one's."""
        thread_id = conversation.reply.thread_id
        if event.task_id is None:
            return
        if not self._conversations.claim(thread_id, event.task_id):
            _logger.warning(
                "On thread %s the agent names task %s, which is another thread's.", thread_id, quoted(event.task_id)
            )
            raise Misdirected("The agent answered with a task that belongs to another conversation. That is not shown.")
        conversation.tasks.add(event.task_id)

    async def note_work(self, conversation: Conversation) -> None:
        """Keeps the task in the session as soon as it is known, for a start after `kill -9`."""
        translator, session = conversation.translator, conversation.reply.session
        kept = TaskPointer.of(session)
        if translator.task_id is None or translator.is_complete or kept.task_id == translator.task_id:
            return
        await replace(conversation.working, task_id=translator.task_id, artifacts=()).keep_in(session)

    async def forget(self, session: Session, task_id: str | None) -> None:
        """Takes the task out of the session, if it is the one there, and leaves it to other threads."""
        if task_id is not None and TaskPointer.of(session).task_id == task_id:
            await TaskPointer().keep_in(session)
            self._conversations.release(session.thread_id, task_id)
