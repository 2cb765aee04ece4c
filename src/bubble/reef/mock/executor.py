"""The mock agent's side of the official server: one call per message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from a2a.helpers.proto_helpers import get_data_parts, new_task
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks.task_updater import TaskUpdater
from a2a.types.a2a_pb2 import Message, TaskState

from bubble.protocol.jsontext import JSONValue
from bubble.reef.mock.scripts import Scene, answer, script_for

__all__ = ["MockExecutor"]

_RESPONSE: Final = "response"


class MockExecutor(AgentExecutor):
    """Performs scripts. `pace` is the seconds between two pieces of an answer."""

    def __init__(self, *, pace: float) -> None:
        self._pace = pace

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """A new task, or the answer to the question of one."""
        message = context.message
        if message is None or context.task_id is None or context.context_id is None:
            raise ValueError("There is nothing to answer.")
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        scene = Scene(updater=updater, prompt=context.get_user_input(), files=[*_files(message)], pace=self._pace)
        if context.current_task is not None:
            await updater.start_work()
            await answer(scene, _response(context))
            return
        submitted = new_task(context.task_id, context.context_id, TaskState.TASK_STATE_SUBMITTED, history=[message])
        await event_queue.enqueue_event(submitted)
        await updater.start_work()
        await script_for(scene.prompt)(scene)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """The server has stopped the script; this says so."""
        if context.task_id is not None and context.context_id is not None:
            await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def _files(message: Message) -> Iterator[str]:
    for part in message.parts:
        if part.HasField("raw"):
            yield f"{part.filename or 'a file'} of {len(part.raw)} bytes"
        elif part.HasField("url"):
            yield f"{part.filename or 'a file'} at {part.url}"


def _response(context: RequestContext) -> JSONValue:
    message = context.message
    for data in get_data_parts(message.parts) if message is not None else ():
        if isinstance(data, dict) and _RESPONSE in data:
            response: JSONValue = data[_RESPONSE]
            return response
    return None
