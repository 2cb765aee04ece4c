"""The agent that reef hosts on amphibian: a stranger's, over A2A (spec 5, "The relay's two loops").

*Theory of operation.* A conversation is one message and the stream that answers it. It has a translator, a reply to say things in, and,
once the agent has named it, a task. Three things outlive it: the thread is the `contextId` of all of them; a task that waits for somebody
is kept in the thread's session, so that the next message continues it; and a task whose conversation was cut off is cancelled at the agent.

A stream that ends too early is taken up again once, by its task. What cannot be had that way is told to the people: failures are raised as
`AgentFailure`, and the runtime ends the run with them.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass

from bubble.amphibian import Reply, Session, ToolResult, Turn
from bubble.protocol.errors import BubbleError, PayloadTooLarge
from bubble.reef.client import A2AClient
from bubble.reef.events import WAITING, AgentEvent, Part, TextPart
from bubble.reef.failures import AgentFailure, Broken, Refused, Silent
from bubble.reef.files import file_part
from bubble.reef.hearing import Hearing
from bubble.reef.messages import OutgoingMessage, function_response
from bubble.reef.pointers import TaskPointer
from bubble.reef.sayings import Event, Failure, Saying, say
from bubble.reef.translator import Translator

__all__ = ["ReefAgent"]

_logger = logging.getLogger("bubble.reef")

_LEAVING_SECONDS = 0.3
_GAP = "The connection to the agent was lost and taken up again. A piece of what it said may be missing."


@dataclass(eq=False, slots=True)
class _Conversation:
    reply: Reply
    translator: Translator
    task: asyncio.Task[object] | None
    hearing: Hearing
    is_cancelled: bool = False


class ReefAgent:
    """One A2A agent for all threads. `close()` it once no call is in progress."""

    def __init__(self, client: A2AClient) -> None:
        self._client = client
        self._conversations: defaultdict[str, list[_Conversation]] = defaultdict(list)
        self._abandoned: defaultdict[str, set[str]] = defaultdict(set)

    async def close(self) -> None:
        """Closes the connections to the agent."""
        await self._client.close()

    # --- what amphibian calls ---------------------------------------------------------------------------------------------------

    async def respond(self, turn: Turn, reply: Reply) -> None:
        """Sends the people's words; a task that waits gets them as its answer."""
        parts = _parts(turn)
        if not parts:
            if turn.files:
                await reply.fail("None of these files can be sent to the agent.")
            return
        pointer = TaskPointer.of(reply.session)
        message = OutgoingMessage(parts=parts, context_id=turn.thread_id, task_id=pointer.task_id)
        try:
            await self._converse(message, reply, pointer)
        except (Refused, Broken) as failure:
            if pointer.task_id is None or not await self._is_over(pointer.task_id, failure):
                raise
            # The agent was restarted, or finished the task behind our back. The words still want an answer.
            _logger.info("Task %s is not continued: %s", pointer.task_id, failure.message)
            await self._forget(reply.session, pointer.task_id)
            await self._converse(OutgoingMessage(parts=parts, context_id=turn.thread_id), reply, TaskPointer())

    async def tool_result(self, result: ToolResult, reply: Reply) -> None:
        """Sends somebody's result as the answer to the agent's function call, to the task that made it. Without one it is dropped."""
        pointer = self._pointer_of(result.thread_id, reply.session)
        if pointer.task_id is None:
            _logger.warning("The result of %s is dropped: its thread has no task that waits.", result.tool_call_id)
            return
        answer = function_response(call_id=result.tool_call_id, name=result.tool_name, output=result.output)
        message = OutgoingMessage(parts=(answer,), context_id=result.thread_id, task_id=pointer.task_id)
        await reply.start()
        await self._converse(message, reply, pointer)

    async def cancel(self, thread_id: str, session: Session) -> None:
        """Cancels, at the agent, the tasks of those conversations on the thread that were cut off."""
        cut_off = self._cut_off(thread_id)
        for task_id in cut_off:
            await self._forget(session, task_id)
        await asyncio.gather(*(self._client.cancel_task(task_id) for task_id in cut_off))

    # --- one conversation -------------------------------------------------------------------------------------------------------

    async def _converse(self, message: OutgoingMessage, reply: Reply, pointer: TaskPointer) -> None:
        translator = Translator(continues=message.task_id, known_artifacts=pointer.artifacts)
        with self._conversation(message.context_id, reply, translator) as conversation:
            try:
                await self._hear_out(message, conversation)
            except asyncio.CancelledError:
                await self._leave(conversation)
                raise
            except (Broken, Silent, Refused) as failure:
                await self._say(translator.finalize(), reply)
                if isinstance(failure, Silent) or failure.begun:
                    await self._forget(reply.session, translator.task_id)
                raise
        await self._say(translator.finalize(), reply)
        await self._conclude(translator, reply)

    async def _hear_out(self, message: OutgoingMessage, conversation: _Conversation) -> None:
        lost: AgentFailure = Broken("The agent ended the stream before its reply was complete.")
        try:
            await self._hear(self._events_for(message, conversation), conversation)
            conversation.translator.hear_the_end()
        except (Broken, Silent) as failure:
            lost = failure
        if not conversation.translator.is_complete:
            await self._take_up_again(conversation, lost)

    def _events_for(self, message: OutgoingMessage, conversation: _Conversation) -> AsyncGenerator[AgentEvent, None]:
        events = self._client.send_streaming(message)
        for older in self._conversations[message.context_id]:
            if older is not conversation and older.translator.task_id == message.task_id is not None:
                return older.hearing.left_of(events)
        return events

    async def _hear(
        self, events: AsyncGenerator[AgentEvent, None], conversation: _Conversation, *, after_gap: bool = False
    ) -> None:
        async with aclosing(events):
            async for event in events:
                if conversation.hearing.is_again(event):
                    after_gap = False
                    continue
                if after_gap and event.carrier != "task":  # which would have told what was missed
                    await self._say([Event(name="rejoined", data={"message": _GAP})], conversation.reply)
                after_gap = False
                conversation.hearing.note(event)
                await self._say(conversation.translator.translate(event), conversation.reply)
                if conversation.translator.is_complete:
                    return

    async def _take_up_again(self, conversation: _Conversation, lost: AgentFailure) -> None:
        translator = conversation.translator
        if translator.task_id is None or not conversation.hearing:
            raise lost
        lost.begun = True
        _logger.info("The stream of task %s is taken up again.", translator.task_id)
        conversation.hearing.begin_again()
        try:
            await self._hear(self._client.rejoin(translator.task_id), conversation, after_gap=True)
        except AgentFailure as failure:
            _logger.info("Task %s cannot be taken up again: %s", translator.task_id, failure.message)
            await self._ask_what_became_of(translator.task_id, conversation)
        if not translator.is_complete:
            raise lost

    async def _ask_what_became_of(self, task_id: str, conversation: _Conversation) -> None:
        # It may have finished meanwhile, and can say with what.
        try:
            event = await self._client.get_task(task_id)
        except AgentFailure:
            return
        if event is not None and (event.ends_the_task or event.state in WAITING):
            await self._say(conversation.translator.translate(event), conversation.reply)

    async def _is_over(self, task_id: str, failure: Refused | Broken) -> bool:
        """Whether the message was not taken because its task takes none any more."""
        if isinstance(failure, Refused):
            return failure.is_about_the_message
        if failure.begun:
            return False
        # The official 0.3 server over HTTP+JSON breaks the stream off where others say what is wrong.
        try:
            event = await self._client.get_task(task_id)
        except Refused as refused:
            return refused.is_about_the_message
        except AgentFailure:
            return False
        return event is not None and event.ends_the_task

    async def _leave(self, conversation: _Conversation) -> None:
        # Only what is tidy; the runtime ends the run in any case, and waits for nobody.
        with suppress(TimeoutError, BubbleError):
            async with asyncio.timeout(_LEAVING_SECONDS):
                await self._say(conversation.translator.finalize(), conversation.reply)

    async def _conclude(self, translator: Translator, reply: Reply) -> None:
        if translator.is_waiting:
            await TaskPointer(task_id=translator.task_id, artifacts=translator.artifacts).keep_in(reply.session)
            return
        await self._forget(reply.session, translator.task_id)
        if translator.outcome is not None:
            reply.conclude(translator.outcome)

    async def _say(self, sayings: Sequence[Saying], reply: Reply) -> None:
        for saying in sayings:
            try:
                await say(saying, reply.run)
            except PayloadTooLarge as error:
                await say(Failure(f"Something of the reply is left out. {error.message}"), reply.run)

    # --- tasks ------------------------------------------------------------------------------------------------------------------

    @contextmanager
    def _conversation(self, thread_id: str, reply: Reply, translator: Translator) -> Iterator[_Conversation]:
        conversation = _Conversation(reply, translator, asyncio.current_task(), Hearing())
        among = self._conversations[thread_id]
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
                self._conversations.pop(thread_id, None)

    def _cut_off(self, thread_id: str) -> set[str]:
        cut_off = self._abandoned.pop(thread_id, set())
        for conversation in self._conversations.get(thread_id, ()):
            task_id = conversation.translator.task_id
            if task_id is not None and conversation.task is not None and conversation.task.cancelling():
                conversation.is_cancelled = True
                cut_off.add(task_id)
        return cut_off

    def _pointer_of(self, thread_id: str, session: Session) -> TaskPointer:
        # A task at work may take the answer as well as one that waits.
        for conversation in reversed(self._conversations.get(thread_id, ())):
            translator = conversation.translator
            if translator.task_id is not None:
                return TaskPointer(task_id=translator.task_id, artifacts=translator.artifacts)
        return TaskPointer.of(session)

    async def _forget(self, session: Session, task_id: str | None) -> None:
        if task_id is not None and TaskPointer.of(session).task_id == task_id:
            await TaskPointer().keep_in(session)


def _parts(turn: Turn) -> tuple[Part, ...]:
    words = (TextPart(text=turn.text),) if turn.text else ()
    return (*words, *_files(turn))


def _files(turn: Turn) -> Iterator[Part]:
    for file in turn.files:
        try:
            part = file_part(url=file.url, media_type=file.media_type, filename=file.filename)
        except ValueError as error:
            _logger.warning("A file on thread %s is not sent to the agent: %s.", turn.thread_id, error)
            continue
        if part is None:
            _logger.warning(
                "A file on thread %s is not sent to the agent: nobody else can fetch its URL.", turn.thread_id
            )
        else:
            yield part
