"""The agent that reef hosts on amphibian: a stranger's, over A2A (spec 5, "The relay's two loops").

*Theory of operation.* A conversation is one message and the stream that answers it. It has a translator, a reply to say things in, and,
once the agent has named it, a task. Three things outlive it: the thread is the `contextId` of all of them; a task that waits for somebody
is kept in the thread's session, so that the next message continues it; and a task whose conversation was cut off is cancelled at the agent.
Only a task that has got a result is not cancelled by a stop: nobody could give the result again to a task of its own.

So that this holds after `kill -9`, too, a task is in the session from the moment when it is first heard of, as one at work, and on what; a
task that is continued, from before the message is sent. What finds such a pointer while nothing is under way asks the agent about the task.
Where a question was cut off, a task that waits or has ended is shown, and that is the answer; any other is cancelled (by `resume` at the
latest) and forgotten, and the question is asked anew. Where a result was cut off, it is sent again to a task that waits, and of any other
is heard, or told, what becomes of it. A task belongs to one thread as long as that thread works on it or keeps it; an agent that names it
on another one is not heard there.

A stream that ends too early is taken up again once, by its task. What cannot be had that way is told to the people: failures are raised as
`AgentFailure`, and the runtime ends the run with them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial

from bubble.amphibian import Reply, Session, ToolResult, Turn
from bubble.protocol.errors import BubbleError, PayloadTooLarge
from bubble.reef.client import A2AClient
from bubble.reef.conversations import Conversation, Conversations
from bubble.reef.discretion import quoted
from bubble.reef.events import WAITING, AgentEvent
from bubble.reef.failures import AgentFailure, Broken, Refused, Silent
from bubble.reef.messages import OutgoingMessage, function_response
from bubble.reef.pointers import TaskPointer
from bubble.reef.sayings import EndBlock, Event, Failure, Saying, say
from bubble.reef.tasks import Tasks
from bubble.reef.translator import Translator
from bubble.reef.turns import first_end, later_than, parts_of

__all__ = ["ReefAgent"]

_logger = logging.getLogger("bubble.reef")

_LEAVING_SECONDS = 0.3
_ASK_AGAIN = "If its work is wanted, ask again."
_IS_OVER = (
    f"The result was not given to the agent: the task that called for it is over, or unknown by now. {_ASK_AGAIN}"
)
_ENDED_UNHEARD = (
    f"The task that got this result has ended meanwhile, and does not tell any more with what. {_ASK_AGAIN}"
)
_GOES_ON_UNHEARD = (
    "The agent has got the result and works on, but what it says cannot be heard any more. Ask it what came of it."
)
_WAITS = "The agent waits for an answer."
_GAP = "The connection to the agent was lost and taken up again. A piece of what it said may be missing."


class ReefAgent:
    """One A2A agent for all threads. `close()` it once no call is in progress."""

    def __init__(self, client: A2AClient) -> None:
        self._client = client
        self._conversations = Conversations()
        self._tasks = Tasks(client, self._conversations)

    async def close(self) -> None:
        """Closes the connections to the agent."""
        await self._client.close()

    # --- what amphibian calls ---------------------------------------------------------------------------------------------------

    async def respond(self, turn: Turn, reply: Reply) -> None:
        """Sends the people's words; a task that waits gets them as its answer."""
        left = await self._take_up_question(turn, reply)
        parts = parts_of(left)
        if not parts:
            if left.files:
                await reply.fail("None of these files can be sent to the agent.")
            return
        pointer = await self._tasks.pointer_to_continue(turn.thread_id, reply.session)
        working = pointer.at_work_on_question(turn.through_seq, since=0 if left is turn else first_end(left))
        message = OutgoingMessage(parts=parts, context_id=turn.thread_id, task_id=pointer.task_id)
        try:
            await self._converse(partial(self._hear_out, message), reply, pointer, working)
        except (Refused, Broken) as failure:
            if pointer.task_id is None or not await self._tasks.may_be_over(pointer.task_id, failure):
                raise
            # The agent was restarted, or finished the task behind our back. The words still want an answer.
            _logger.info("Task %s is not continued: %s", quoted(pointer.task_id), failure.message)
            await self._ask_anew(replace(message, task_id=None), reply, pointer, working)

    async def tool_result(self, result: ToolResult, reply: Reply) -> None:
        """Sends somebody's result as the answer to the agent's function call, to the task that made it. Without one it is dropped."""
        await reply.start()
        thread_id, call_id = result.thread_id, result.tool_call_id
        pointer = await self._tasks.pointer_for(thread_id, reply.session)
        if pointer.task_id is None:
            _logger.warning("The result of %s is dropped: its thread has no task that waits.", quoted(call_id))
            raise AgentFailure(_IS_OVER)
        is_cut_off = pointer.is_at_work and self._conversations.about(thread_id, pointer.task_id) is None
        if is_cut_off and not await self._is_still_wanted(call_id, pointer, pointer.task_id, reply):
            return
        answer = function_response(call_id=call_id, name=result.tool_name, output=result.output)
        message = OutgoingMessage(parts=(answer,), context_id=thread_id, task_id=pointer.task_id)
        try:
            await self._converse(partial(self._hear_out, message), reply, pointer, pointer.at_work_on_result(call_id))
        except (Refused, Broken) as failure:
            if (why := await self._tasks.why_it_is_over(pointer.task_id, failure)) is None:
                raise
            await self._tasks.forget(reply.session, pointer.task_id)
            raise AgentFailure(f"{why} {_ASK_AGAIN}") from failure

    async def cancel(self, thread_id: str, session: Session) -> None:
        """Cancels, at the agent, the tasks of those conversations on the thread that were cut off and are not gone on with."""
        cut_off = self._conversations.take_cut_off(thread_id)
        pointer = TaskPointer.of(session)
        task_id = pointer.task_id if pointer.is_at_work and not pointer.is_at_work_on_results else None
        if task_id is not None and self._conversations.about(thread_id, task_id) is None:
            cut_off.add(task_id)
        for task_id in cut_off:
            await self._tasks.forget(session, task_id)
        await asyncio.gather(*(self._client.cancel_task(task_id) for task_id in cut_off))

    async def resume(self, thread_id: str, session: Session) -> None:
        """Takes up the task that the session holds, and ends one that still works on a question: that is asked anew."""
        pointer = await self._tasks.pointer_for(thread_id, session)
        if pointer.task_id is not None and pointer.is_at_work and not pointer.is_at_work_on_results:
            event = await self._tasks.as_it_is(pointer.task_id)
            if event is None or not (event.ends_the_task or event.state in WAITING):
                await self._tasks.end_cut_off(pointer.task_id, session)

    # --- what was cut off -------------------------------------------------------------------------------------------------------

    async def _take_up_question(self, turn: Turn, reply: Reply) -> Turn:
        """Shows what became of a question of the turn that the agent had got when it was cut off; what is left to send.

        The turn as it is where there is no such question, or nothing to show: then it is asked anew.
        """
        pointer = await self._tasks.pointer_for(turn.thread_id, reply.session)
        if pointer.task_id is None or not pointer.is_at_work or pointer.question is None:
            return turn
        if first_end(turn) < pointer.since:  # the answer to what is earlier was cut off, too, and is nowhere else
            await self._tasks.end_cut_off(pointer.task_id, reply.session)
            return turn
        later = await later_than(pointer.question, turn)
        if len(later.events) == len(turn.events):
            return turn
        event = await self._tasks.as_it_is(pointer.task_id)
        if event is not None and await self._show(event, pointer, reply):
            return later
        if event is not None and event.ends_the_task:
            await self._tasks.forget(reply.session, pointer.task_id)
        return turn

    async def _is_still_wanted(self, call_id: str, pointer: TaskPointer, task_id: str, reply: Reply) -> bool:
        """Whether a result is to be sent to a task that was left at work. Where it was sent before, what became of it is shown instead.

        A task that waits may wait for this very result, so it gets it, perhaps for the second time.
        """
        try:
            event = await self._tasks.as_it_is_in_time(task_id)
        except Refused as refused:
            if refused.about != "task":
                raise
            event = None
        if event is None or (event.ends_the_task and call_id not in pointer.calls):
            await self._tasks.forget(reply.session, task_id)
            raise AgentFailure(_IS_OVER)
        if call_id not in pointer.calls or event.state in WAITING:
            return True
        if not event.ends_the_task:
            _logger.info("The stream of task %s is taken up again.", quoted(task_id))
            await self._converse(self._rejoin, reply, pointer, pointer)
        elif not await self._show(event, pointer, reply):
            await self._tasks.forget(reply.session, task_id)
            raise AgentFailure(_ENDED_UNHEARD)
        return False

    async def _show(self, event: AgentEvent, pointer: TaskPointer, reply: Reply) -> bool:
        """Says how a task is that waits, or has ended. False where it does not, or says nothing, or was cancelled."""
        if event.state not in WAITING and (not event.ends_the_task or event.state == "canceled"):
            return False
        translator = Translator(known_artifacts=pointer.artifacts)
        with self._conversations.hold(reply, translator, pointer) as conversation:
            self._tasks.claim(event, conversation)
            sayings = [each for each in translator.translate(event) if not isinstance(each, EndBlock)]
            if not sayings and not translator.is_waiting:
                return False
            waits = Event(name="waiting", data={"message": _WAITS})
            await self._say([*(sayings or [waits]), *translator.finalize()], reply)
            await self._conclude(translator, reply)
        return True

    async def _rejoin(self, conversation: Conversation) -> None:
        """Hears the rest of a task to which the conversation's message was sent before."""
        translator = conversation.translator
        if translator.task_id is None:
            raise ValueError("A task that is taken up again is known.")
        try:
            await self._hear(self._client.rejoin(translator.task_id), conversation, after_gap=True)
        except AgentFailure as failure:
            _logger.info("Task %s cannot be taken up again: %s", quoted(translator.task_id), failure.message)
            await self._ask_what_became_of(translator.task_id, conversation)
        translator.hear_the_end()
        if not translator.is_complete:
            raise Broken(_GOES_ON_UNHEARD)

    # --- one conversation -------------------------------------------------------------------------------------------------------

    async def _converse(
        self,
        hear: Callable[[Conversation], Awaitable[None]],
        reply: Reply,
        pointer: TaskPointer,
        working: TaskPointer,
    ) -> None:
        translator = Translator(continues=pointer.task_id, known_artifacts=pointer.artifacts)
        with self._conversations.hold(reply, translator, working) as conversation:
            try:
                if pointer.task_id is not None:
                    await working.keep_in(reply.session)
                await hear(conversation)
            except asyncio.CancelledError:
                await self._leave(conversation)
                raise
            except AgentFailure as failure:
                await self._say(translator.finalize(), reply)
                await self._settle_after(failure, conversation, pointer)
                raise
            await self._say(translator.finalize(), reply)
            await self._conclude(translator, reply)

    async def _hear_out(self, message: OutgoingMessage, conversation: Conversation) -> None:
        lost: AgentFailure = Broken("The agent ended the stream before its reply was complete.")
        try:
            await self._hear(self._events_for(message, conversation), conversation)
            conversation.translator.hear_the_end()
        except (Broken, Silent) as failure:
            lost = failure
        if not conversation.translator.is_complete:
            await self._take_up_again(conversation, lost)

    def _events_for(self, message: OutgoingMessage, conversation: Conversation) -> AsyncGenerator[AgentEvent, None]:
        events = self._client.send_streaming(message)
        if message.task_id is not None:
            older = self._conversations.about(message.context_id, message.task_id, beside=conversation)
            if older is not None:
                return older.hearing.left_of(events)
        return events

    async def _hear(
        self, events: AsyncGenerator[AgentEvent, None], conversation: Conversation, *, after_gap: bool = False
    ) -> None:
        async with aclosing(events):
            async for event in events:
                self._tasks.claim(event, conversation)
                if conversation.hearing.is_again(event):
                    after_gap = False
                    continue
                if after_gap and event.carrier != "task":  # which would have told what was missed
                    await self._say([Event(name="rejoined", data={"message": _GAP})], conversation.reply)
                after_gap = False
                conversation.hearing.note(event)
                sayings = conversation.translator.translate(event)
                await self._tasks.note_work(conversation)
                await self._say(sayings, conversation.reply)
                if conversation.translator.is_complete:
                    return

    async def _take_up_again(self, conversation: Conversation, lost: AgentFailure) -> None:
        translator = conversation.translator
        if translator.task_id is None or not conversation.hearing:
            raise lost
        lost.begun = True
        _logger.info("The stream of task %s is taken up again.", quoted(translator.task_id))
        conversation.hearing.begin_again()
        try:
            await self._hear(self._client.rejoin(translator.task_id), conversation, after_gap=True)
        except AgentFailure as failure:
            _logger.info("Task %s cannot be taken up again: %s", quoted(translator.task_id), failure.message)
            await self._ask_what_became_of(translator.task_id, conversation)
        if not translator.is_complete:
            raise lost

    async def _ask_what_became_of(self, task_id: str, conversation: Conversation) -> None:
        # It may have finished meanwhile, and can say with what.
        try:
            event = await self._client.get_task(task_id)
        except AgentFailure:
            return
        if event is not None and (event.ends_the_task or event.state in WAITING):
            self._tasks.claim(event, conversation)
            await self._say(conversation.translator.translate(event), conversation.reply)

    async def _ask_anew(
        self, message: OutgoingMessage, reply: Reply, pointer: TaskPointer, working: TaskPointer
    ) -> None:
        await self._tasks.forget(reply.session, pointer.task_id)
        nothing = TaskPointer()
        try:
            working = replace(working, task_id=None, artifacts=(), calls=())
            await self._converse(partial(self._hear_out, message), reply, nothing, working)
        except Refused as refused:
            if refused.about == "message" and not refused.begun:  # so it was not because of the task
                await pointer.waiting().keep_in(reply.session)
            raise

    async def _leave(self, conversation: Conversation) -> None:
        # Only what is tidy; the runtime ends the run in any case, and waits for nobody.
        with suppress(TimeoutError, BubbleError):
            async with asyncio.timeout(_LEAVING_SECONDS):
                await self._say(conversation.translator.finalize(), conversation.reply)

    async def _conclude(self, translator: Translator, reply: Reply) -> None:
        if translator.is_waiting:
            await TaskPointer(task_id=translator.task_id, artifacts=translator.artifacts).keep_in(reply.session)
            return
        await self._tasks.forget(reply.session, translator.task_id)
        if translator.outcome is not None:
            reply.conclude(translator.outcome)

    async def _settle_after(self, failure: AgentFailure, conversation: Conversation, pointer: TaskPointer) -> None:
        """What becomes of the pointer: a task of which something was heard is lost, one that was not reached goes on waiting."""
        reply, continued = conversation.reply, pointer.task_id
        if isinstance(failure, Silent) or failure.begun or conversation.hearing:
            await self._tasks.forget(reply.session, conversation.task_id)
        elif continued != TaskPointer.of(reply.session).task_id:  # another conversation has brought it to its end
            return
        elif continued and self._conversations.about(reply.thread_id, continued, beside=conversation) is None:
            await pointer.waiting().keep_in(reply.session)

    async def _say(self, sayings: Sequence[Saying], reply: Reply) -> None:
        for saying in sayings:
            try:
                await say(saying, reply.run)
            except PayloadTooLarge as error:
                await say(Failure(f"Something of the reply is left out. {error.message}"), reply.run)
