"""A call of a tool within a run: its input, somebody's consent, its outcome."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeGuard

from msgspec import UNSET, UnsetType

from bubble.client.sizes import pieces
from bubble.protocol.errors import InvalidRequest
from bubble.protocol.events import ToolCallApproval, ToolCallResult
from bubble.protocol.jsontext import JSONValue, dump_json, load_json

__all__ = ["Approval", "CallServices", "InputEncoding", "ToolCall", "ToolInput", "is_streamed"]

InputEncoding: TypeAlias = Literal["json", "text"]
ToolInput: TypeAlias = AsyncIterable[str] | Iterator[str] | object
"""An input as it comes, piece by piece, or the whole of it: any JSON."""

Chunk: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """Somebody's decision on a tool call; true if it was approved. `reason` comes with a rejection, if at all."""

    approved: bool
    reason: str | None
    principal_id: str

    def __bool__(self) -> bool:
        return self.approved


@dataclass(frozen=True, slots=True, kw_only=True)
class CallServices:
    """What a call needs of its run: to say a chunk, and to hear who decided and what came out elsewhere."""

    say: Callable[[Chunk], Awaitable[None]]
    approval: Callable[[str], Awaitable[ToolCallApproval]]
    result: Callable[[str], Awaitable[ToolCallResult]]


def is_streamed(given: ToolInput) -> TypeGuard[AsyncIterable[str] | Iterator[str]]:
    """Whether an input comes in pieces. A list is a value like any other; an iterator is none."""
    return isinstance(given, AsyncIterable | Iterator)


class ToolCall:
    """One call; `Run.tool_call` makes it. Waiting for somebody else ends with `RunInterrupted` when the run is asked to stop.

    Its methods raise like `Run.text`. Which comes first is the caller's to say: the input, then consent if it is needed, then the outcome.
    """

    def __init__(
        self,
        services: CallServices,
        *,
        tool_call_id: str,
        name: str,
        common: Chunk,
        input_encoding: InputEncoding,
    ) -> None:
        self.tool_call_id = tool_call_id
        self.name = name
        self._services = services
        self._about = {"toolCallId": tool_call_id, "toolName": name, **common}
        self._encoding = input_encoding
        self._streamed: list[str] | None = None
        self._input: object | UnsetType = UNSET
        self._has_asked = False

    # --- input ------------------------------------------------------------------------------------------------------------------

    @property
    def input(self) -> object | None:
        """The input, once it is complete."""
        return None if self._input is UNSET else self._input

    async def begin_input(self) -> None:
        """Shows the call before its input is there (`tool-input-start`). `Run.tool_call` does it, unless it is given a whole input."""
        self._streamed = []
        encoding = {} if self._encoding == "json" else {"inputEncoding": self._encoding}
        await self._say("tool-input-start", {**self._about, **encoding})

    async def input_delta(self, delta: str) -> None:
        """Says a piece of the input's text (`tool-input-delta`): of its JSON, or of itself where the encoding is `text`."""
        if self._streamed is None:
            raise InvalidRequest(f"The input of call {self.tool_call_id} is complete.")
        self._streamed.append(delta)
        for piece in pieces(delta):
            await self._say("tool-input-delta", {"toolCallId": self.tool_call_id, "inputTextDelta": piece})

    async def input_available(self, value: object | UnsetType = UNSET) -> None:
        """Completes the input (`tool-input-available`): with `value`, or with what came in pieces.

        Pieces that are no JSON together become a `tool-input-error`, and raise `InvalidRequest`.
        """
        complete = await self._joined() if value is UNSET else value
        await self._say("tool-input-available", {**self._about, "input": complete})
        self._streamed, self._input = None, complete

    async def input_error(self, text: str, *, value: object | None = None) -> None:
        """Says that the input cannot be used, and why (`tool-input-error`); `value` is what there is of it."""
        given = "".join(self._streamed or []) if value is None else value
        self._streamed = None
        await self._say("tool-input-error", {**self._about, "input": given, "errorText": text})

    async def stream_input(self, given: AsyncIterable[str] | Iterator[str]) -> None:
        """Says an input as its pieces come, and completes it."""
        if isinstance(given, AsyncIterable):
            async for delta in given:
                await self.input_delta(delta)
        else:
            for delta in given:
                await self.input_delta(delta)
        await self.input_available()

    async def _joined(self) -> JSONValue:
        text = "".join(self._streamed or [])
        if self._encoding == "text":
            return text
        try:
            value = load_json(text) if text.strip() else {}
            dump_json(value)  # NaN and the like, which Python reads
        except (ValueError, RecursionError) as error:
            await self.input_error(f"The input is not JSON: {error}.")
            raise InvalidRequest(f"The input of call {self.tool_call_id} is not JSON: {error}.") from None
        return value

    # --- what others say ----------------------------------------------------------------------------------------------------------

    async def approval(self) -> Approval:
        """Asks for consent (`tool-approval-request`) and waits for a person's decision (spec 1, "Tool-Call Pauses").

        Asked again, it gives the same decision: the first one counts. Raises `RunInterrupted`, and `Conflict` if somebody else finished
        the run; `asyncio.timeout` bounds the wait.
        """
        self._refuse_half_an_input()
        if not self._has_asked:
            await self._say("tool-approval-request", {"approvalId": self.tool_call_id, "toolCallId": self.tool_call_id})
            self._has_asked = True
        decision = await self._services.approval(self.tool_call_id)
        return Approval(
            approved=decision.approved,
            reason=None if decision.reason is UNSET else decision.reason,
            principal_id=decision.principal_id,
        )

    async def result(self) -> JSONValue:
        """Waits for the output of a tool that runs elsewhere: the first `tool_call_result` (spec 1, "Out-of-Loop Tool Results").

        Any participant may give it. Raises like `approval`.
        """
        self._refuse_half_an_input()
        return load_json((await self._services.result(self.tool_call_id)).output)

    def _refuse_half_an_input(self) -> None:
        if self._streamed is not None:
            raise InvalidRequest(
                f"The input of call {self.tool_call_id} is not complete: `input_available` comes first."
            )

    # --- outcome ------------------------------------------------------------------------------------------------------------------

    async def output(self, value: object, *, preliminary: bool = False) -> None:
        """Says what came out (`tool-output-available`): any JSON. A preliminary output is replaced by the next one."""
        members = {"toolCallId": self.tool_call_id, "output": value}
        await self._say("tool-output-available", {**members, "preliminary": True} if preliminary else members)

    async def error(self, text: str) -> None:
        """Says that the tool failed (`tool-output-error`)."""
        await self._say("tool-output-error", {"toolCallId": self.tool_call_id, "errorText": text})

    async def denied(self) -> None:
        """Says that the tool did not run because consent was refused (`tool-output-denied`)."""
        await self._say("tool-output-denied", {"toolCallId": self.tool_call_id})

    async def _say(self, kind: str, members: Chunk) -> None:
        await self._services.say({"type": kind, **members})
