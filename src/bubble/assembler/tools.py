"""Tool calls: which part a chunk of a call changes, and how.

Two kinds of part tell of a call: static ones, `{type: "tool-NAME", …}`, and dynamic ones, `{type: "dynamic-tool", toolName, …}`. A
chunk about the input of a call changes the first part *of its kind* in the current step, or makes one. A chunk about its outcome
changes the first part of either kind there, or else the last of the message, and makes none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import UNSET, UnsetType

from bubble.assembler.failure import ReducerError
from bubble.assembler.fields import Chunk, Part, is_truthy, present, string
from bubble.assembler.parts import DYNAMIC_TOOL, TOOL, Parts, is_tool
from bubble.assembler.tool_input import Change, ChangedTool, ToolInput
from bubble.protocol.jsontext import JSONValue

__all__ = ["ToolCalls"]

# What each update gives anew or takes away. Everything else of a part stays: an approval, the metadata of the providers.
_GIVEN_ANEW: Final = ("input", "output", "errorText", "rawInput", "preliminary", "inputEncoding")
_OUTCOMES: Final = frozenset(
    {"tool-approval-request", "tool-output-available", "tool-output-error", "tool-output-denied"}
)
_RESULTS: Final = frozenset({"output-available", "output-error"})


class ToolCalls:
    """The tool parts among `parts`, and the inputs that stream in. Registered inputs are never forgotten: a late delta reopens its call."""

    __slots__ = ("_incomplete", "_inputs", "_parts")

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._inputs: dict[str, ToolInput] = {}
        self._incomplete: set[int] = set()  # parts whose input has come in pieces, as far as it has

    def resume(self) -> None:
        """Registers the calls of the current step whose input was still streaming when the message was put away."""
        for part in self._parts.all()[self._parts.step :]:
            call_id, raw = part.get("toolCallId"), part.get("rawInput")
            if is_tool(part) and part.get("state") == "input-streaming" and isinstance(call_id, str):
                self._inputs[call_id] = ToolInput(
                    name=_name(part),
                    dynamic=part["type"] == DYNAMIC_TOOL,
                    encoding=part.get("inputEncoding"),
                    title=part.get("title", UNSET),
                    tool_metadata=part.get("toolMetadata", UNSET),
                    text=raw if isinstance(raw, str) else "",
                )

    def start_input(self, chunk: Chunk) -> None:
        """`tool-input-start`."""
        call_id, name, dynamic = string(chunk, "toolCallId"), string(chunk, "toolName"), is_truthy(chunk.get("dynamic"))
        encoding = chunk.get("inputEncoding")
        self._inputs[call_id] = ToolInput(
            name=name,
            dynamic=dynamic,
            encoding=encoding,
            title=chunk.get("title", UNSET),
            tool_metadata=chunk.get("toolMetadata", UNSET),
        )
        update = _Update(chunk, name=name, state="input-streaming", values=_encoded(encoding), title=_title(chunk))
        self._put(self._parts.find_in_step(call_id, dynamic=dynamic), call_id, update, dynamic=dynamic)

    def extend_input(self, chunk: Chunk) -> None:
        """`tool-input-delta`."""
        call_id, delta = string(chunk, "toolCallId"), string(chunk, "inputTextDelta")
        growing = self._inputs.get(call_id)
        if growing is None:
            raise ReducerError(
                f'Received tool-input-delta for missing tool call with ID "{call_id}". '
                'Ensure a "tool-input-start" chunk is sent before any "tool-input-delta" chunks.',
                chunk_type="tool-input-delta",
                chunk_id=call_id,
            )
        index = self._parts.find_in_step(call_id, dynamic=growing.dynamic)
        if index is not None and self._parts.growing(index) is growing:
            growing.append(delta)
            growing.shows_raw = True
            self._parts.touch(index)
        else:
            self._leave(growing, index)
            growing.append(delta)
            self._stream_into(index, call_id, growing)

    def _leave(self, growing: ToolInput, index: int | None) -> None:
        """The part that the input made so far, in an earlier step, keeps what it has; the one at `index` is made anew."""
        if growing.index is not None and growing.index != index:
            self._parts.settle(growing.index)

    def _stream_into(self, index: int | None, call_id: str, growing: ToolInput) -> None:
        update = _Update(
            _described(growing.tool_metadata),
            name=growing.name,
            state="input-streaming",
            values=_encoded(growing.encoding),
            title=growing.title,
        )
        growing.shows_raw = index is not None or not growing.dynamic  # a new dynamic part comes without it
        index = self._put(index, call_id, update, dynamic=growing.dynamic)
        self._incomplete.add(index)
        growing.base, growing.index = self._parts.at(index), index
        self._parts.grow(index, growing)

    def give_input(self, chunk: Chunk) -> None:
        """`tool-input-available`."""
        call_id, name, dynamic = string(chunk, "toolCallId"), string(chunk, "toolName"), is_truthy(chunk.get("dynamic"))
        update = _Update(chunk, name=name, state="input-available", values=present(chunk, "input"), title=_title(chunk))
        self._put(self._parts.find_in_step(call_id, dynamic=dynamic), call_id, update, dynamic=dynamic)

    def refuse_input(self, chunk: Chunk) -> None:
        """`tool-input-error`: of the kind of the part that is there, whatever the chunk says."""
        call_id, name = string(chunk, "toolCallId"), string(chunk, "toolName")
        index = self._parts.find_either_in_step(call_id)
        dynamic = is_truthy(chunk.get("dynamic")) if index is None else self._is_dynamic(index)
        values = present(chunk, "input", "errorText")
        if "input" in values and not dynamic:
            values["rawInput"] = values.pop("input")
        update = _Update(chunk, name=name, state="output-error", values=values)
        self._put(index, call_id, update, dynamic=dynamic)

    def request_approval(self, chunk: Chunk) -> None:
        """`tool-approval-request`."""
        index = self._find(string(chunk, "toolCallId"))
        approval: Part = {}
        if "approvalId" in chunk:
            approval["id"] = chunk["approvalId"]
        if (descriptor := chunk.get("approvalDescriptor")) is not None:
            approval["descriptor"] = descriptor
        approval |= present(chunk, "inputSchemaInput")
        if (signature := chunk.get("signature")) is not None:
            approval["signature"] = signature
        self._amend(index, {"state": "approval-requested", "approval": approval})

    def give_output(self, chunk: Chunk) -> None:
        """`tool-output-available`."""
        self._conclude(chunk, "output-available", present(chunk, "output", "preliminary"))

    def fail(self, chunk: Chunk) -> None:
        """`tool-output-error`."""
        index = self._find(string(chunk, "toolCallId"))
        kept = () if self._is_dynamic(index) else ("rawInput",)
        self._conclude(chunk, "output-error", present(chunk, "errorText"), *kept)

    def deny(self, chunk: Chunk) -> None:
        """`tool-output-denied`."""
        self._amend(self._find(string(chunk, "toolCallId")), {"state": "output-denied"})

    def part(self, call_id: str) -> Part | None:
        """The part that an outcome of the call is for, without an input that is not complete."""
        index = self._parts.find_call(call_id)
        if index is None:
            return None
        part = self._base(index)
        return {name: part[name] for name in part if name != "input"} if index in self._incomplete else part

    def amend(self, call_id: str, fields: Mapping[str, JSONValue]) -> None:
        """Replaces fields of that part."""
        index = self._find(call_id)
        if "input" in fields:
            self._incomplete.discard(index)
        self._amend(index, fields)

    def would_update(self, chunk: Chunk) -> bool:
        """Whether a `tool-*` chunk has a part to change."""
        call_id, kind = chunk.get("toolCallId"), chunk.get("type")
        if not isinstance(call_id, str):
            return False
        if kind in {"tool-input-start", "tool-input-available"}:
            return self._parts.find_in_step(call_id, dynamic=is_truthy(chunk.get("dynamic"))) is not None
        if kind == "tool-input-delta":
            growing = self._inputs.get(call_id)
            return growing is not None and self._parts.find_in_step(call_id, dynamic=growing.dynamic) is not None
        if kind == "tool-input-error":
            return self._parts.find_either_in_step(call_id) is not None
        return kind in _OUTCOMES and self._parts.find_call(call_id) is not None

    def _find(self, call_id: str) -> int:
        index = self._parts.find_call(call_id)
        if index is None:
            raise ReducerError(
                f'No tool invocation found for tool call ID "{call_id}".',
                chunk_type="tool-invocation",
                chunk_id=call_id,
            )
        return index

    def _is_dynamic(self, index: int) -> bool:
        return self._base(index)["type"] == DYNAMIC_TOOL

    def _base(self, index: int) -> Part:
        """The part, but for an input that streams in: what has come of that is not put together just to look at the rest."""
        growing = self._parts.growing(index)
        return growing.base if isinstance(growing, ToolInput | ChangedTool) else self._parts.at(index)

    def _change(self, index: int, change: Change) -> None:
        growing = self._parts.growing(index) if self._parts.is_stale(index) else None
        if isinstance(growing, ToolInput):
            growing = ChangedTool(growing)
        if isinstance(growing, ChangedTool):
            growing.add(change)
            self._parts.grow(index, growing)
        else:
            self._parts.replace(index, change(self._parts.at(index)))

    def _amend(self, index: int, fields: Mapping[str, JSONValue]) -> None:
        self._change(index, lambda part: {**part, **fields})

    def _conclude(self, chunk: Chunk, state: str, values: Part, *kept: str) -> None:
        """Gives the part an outcome. Beside its input it keeps the fields `kept`."""
        index = self._find(string(chunk, "toolCallId"))
        name, dynamic = _name(self._base(index)), self._is_dynamic(index)
        if chunk.get("toolMetadata", UNSET) is None:  # here, and only here, null keeps what was there
            chunk = {name: value for name, value in chunk.items() if name != "toolMetadata"}

        def concluded(part: Part) -> Part:
            update = _Update(chunk, name=name, state=state, values=values | present(part, *kept, "input"))
            return update.applied(part, dynamic=dynamic)

        self._change(index, concluded)

    def _put(self, index: int | None, call_id: str, update: _Update, *, dynamic: bool) -> int:
        if index is None:
            return self._parts.append(update.new(call_id, dynamic=dynamic))
        self._parts.replace(index, update.applied(self._base(index), dynamic=dynamic))
        self._incomplete.discard(index)
        return index


class _Update:
    """What one chunk makes of a tool part. `values` are the fields of `_GIVEN_ANEW` that it has; a `title` of `UNSET` leaves the title."""

    __slots__ = ("_chunk", "_name", "_state", "_title", "_values")

    def __init__(
        self, chunk: Chunk, *, name: str, state: str, values: Part, title: JSONValue | UnsetType = UNSET
    ) -> None:
        self._chunk = chunk
        self._name = name
        self._state = state
        self._values = values
        self._title = title

    def new(self, call_id: str, *, dynamic: bool) -> Part:
        """The part of a call that has none yet."""
        part = {**_named(self._name, dynamic=dynamic), "toolCallId": call_id, "state": self._state, **self._values}
        part |= present(self._chunk, "providerExecuted")
        self._describe(part)
        return part

    def applied(self, part: Part, *, dynamic: bool) -> Part:
        """The part, changed."""
        result = part | _named(self._name, dynamic=dynamic)
        result["state"] = self._state
        for name in _GIVEN_ANEW:
            result.pop(name, None)
        result |= self._values
        if (executed := self._chunk.get("providerExecuted")) is not None:
            result["providerExecuted"] = executed
        self._describe(result)
        return result

    def _describe(self, part: Part) -> None:
        if self._title is not UNSET:
            part["title"] = self._title
        part |= present(self._chunk, "toolMetadata")
        if (provider := self._chunk.get("providerMetadata")) is not None:
            part["resultProviderMetadata" if self._state in _RESULTS else "callProviderMetadata"] = provider


def _title(chunk: Chunk) -> JSONValue | UnsetType:
    return chunk.get("title", UNSET)


def _described(tool_metadata: JSONValue | UnsetType) -> Part:
    return {} if tool_metadata is UNSET else {"toolMetadata": tool_metadata}


def _encoded(encoding: JSONValue) -> Part:
    return {} if encoding is None else {"inputEncoding": encoding}


def _named(name: str, *, dynamic: bool) -> Part:
    return {"type": DYNAMIC_TOOL, "toolName": name} if dynamic else {"type": TOOL + name}


def _name(part: Mapping[str, JSONValue]) -> str:
    kind = part["type"]
    name = part.get("toolName") if kind == DYNAMIC_TOOL else str(kind).removeprefix(TOOL)
    return name if isinstance(name, str) else ""
