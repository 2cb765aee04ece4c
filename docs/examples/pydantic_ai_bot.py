"""A pydantic-ai agent on Bubble: it streams, asks before it acts, stops when it is asked to, and remembers each thread."""

import json
import os
from collections.abc import Sequence

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied
from pydantic_ai.messages import (
    AgentStreamEvent,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
)

from bubble.amphibian import Reply, Session, Turn, host
from bubble.client import Run, ToolCall

shop = Agent(
    os.environ.get("MODEL", "test"),
    output_type=[str, DeferredToolRequests],
    instructions="You work in a shop. Be brief.",
)


@shop.tool_plain(requires_approval=True)
def refund(order: str) -> str:
    """Pays the price of an order back."""
    return f"Order {order} is refunded."


class PydanticAgent:
    """Hosts `agent`. What it said and was told is kept in the thread's session."""

    def __init__(self, agent: Agent[None, str | DeferredToolRequests]) -> None:
        self._agent = agent

    async def respond(self, turn: Turn, reply: Reply) -> None:
        history = remembered(reply.session)
        prompt: str | None = turn.text
        decisions: DeferredToolResults | None = None
        calls: dict[str, ToolCall] = {}
        while True:
            async with self._agent.run_stream_events(
                prompt, message_history=history, deferred_tool_results=decisions
            ) as events:
                async for event in events:
                    await say(event, reply.run, calls)
            history = events.result.all_messages()
            if not isinstance(events.result.output, DeferredToolRequests):
                break
            prompt, decisions = None, await decided(events.result.output, calls)
        await reply.session.set({"messages": json.loads(ModelMessagesTypeAdapter.dump_json(history))})


async def say(event: AgentStreamEvent, run: Run, calls: dict[str, ToolCall]) -> None:
    """Says in the run what the model says, as it says it, and what its tools do."""
    match event:
        case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            if text:
                await run.text(text)
        case (
            PartStartEvent(part=ThinkingPart(content=text))
            | PartDeltaEvent(delta=ThinkingPartDelta(content_delta=text))
        ):
            if text:
                await run.reasoning(text)
        case FunctionToolCallEvent(part=part) if part.tool_call_id not in calls:
            calls[part.tool_call_id] = await run.tool_call(
                part.tool_name, part.args_as_dict(), tool_call_id=part.tool_call_id
            )
        case FunctionToolResultEvent(part=part) if part.outcome == "denied":
            await calls[part.tool_call_id].denied()
        case FunctionToolResultEvent(part=part):
            await calls[part.tool_call_id].output(part.model_response_str())


async def decided(requests: DeferredToolRequests, calls: dict[str, ToolCall]) -> DeferredToolResults:
    """Asks a person about each call, and waits."""
    decisions = DeferredToolResults()
    for part in requests.approvals:
        consent = await calls[part.tool_call_id].approval()
        decisions.approvals[part.tool_call_id] = ToolApproved() if consent else ToolDenied(consent.reason or "No.")
    return decisions


def remembered(session: Session) -> Sequence[ModelMessage]:
    return ModelMessagesTypeAdapter.validate_python(session.get().get("messages", []))


if __name__ == "__main__":
    host(PydanticAgent(shop), name="shop", config="shop.toml")
