"""What a connector hosts: an agent, what it is told, and what it answers with.

An agent is one object for all threads. It must be safe to call for several threads at once; for one thread `respond` is called again only
after the last call has ended. `TakesToolResults`, `Cancellable` and `Resumable` are capabilities that an agent may have beside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from bubble.amphibian.reply import Reply
from bubble.amphibian.sessions import Session
from bubble.assembler import DrainFile as FilePart
from bubble.protocol.events import SequencedEvent
from bubble.protocol.jsontext import JSONValue

__all__ = [
    "Agent",
    "AgentFailed",
    "Cancellable",
    "FilePart",
    "Reply",
    "Resumable",
    "Session",
    "TakesToolResults",
    "ToolResult",
    "Turn",
]


class AgentFailed(Exception):
    """Raise it in an agent to end the reply as `failed`, with `message` as the error that the people on the thread read.

    Of any other exception they read only that the agent failed; the log has the rest, for it may tell what is not theirs to know.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What others said since the last turn (spec 5, "What gets forwarded"): every run of theirs that has finished, as one question.

    `text` is their texts in seq order, a blank line between runs. `run_ids` are the runs, `authors` who started each of them. `events` are
    those runs' events; `through_seq` is the last one's seq and goes into the reply's `run_started` as `snapshotSeq`.
    """

    thread_id: str
    text: str
    files: Sequence[FilePart]
    run_ids: Sequence[str]
    authors: Sequence[str]
    through_seq: int
    events: Sequence[SequencedEvent]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """A `tool_call_result` that somebody gave to a call in one of this bot's own runs. `tool_name` is None where the call named none."""

    thread_id: str
    run_id: str
    tool_call_id: str
    tool_name: str | None
    principal_id: str
    input: JSONValue
    output: JSONValue
    seq: int


class Agent(Protocol):
    """What answers."""

    async def respond(self, turn: Turn, reply: Reply) -> None:
        """Answers through `reply`, whose run has started. It returns when the answer is complete.

        It is cancelled when the reply is interrupted, when the bot loses its grant and when the connector stops; then it has half a second
        to leave before the run is finished without it. `AgentFailed`, or any other exception, ends the reply as `failed`.
        """


@runtime_checkable
class TakesToolResults(Protocol):
    """An agent that is told the results of its own tool calls."""

    async def tool_result(self, result: ToolResult, reply: Reply) -> None:
        """Called at once, also beside a `respond` of the same thread. The run of `reply` begins with `await reply.start()`, if it does."""


@runtime_checkable
class Cancellable(Protocol):
    """An agent that works elsewhere and is to be told when nobody waits for it any longer."""

    async def cancel(self, thread_id: str, session: Session) -> None:
        """Called when a call was cut off: interrupted, revoked, shut down, or because the server can no longer be told what it says.

        It runs beside the unwinding of the call and has five seconds; errors are only logged. The thread's next `respond` waits for it.
        """


@runtime_checkable
class Resumable(Protocol):
    """An agent that keeps something of a thread in its session and has to look after it when the connector is back."""

    async def resume(self, thread_id: str, session: Session) -> None:
        """Called when the connector comes to a thread: at its start, also after a crash, after an outage, when the bot is let in (again).

        Nothing is under way on the thread then, so whatever the session says is at work was cut off. It has five seconds; errors are only
        logged. The thread's first call waits for it.
        """
