"""Structured data of an agent, told apart: function calls, function responses, nothing, and anything else (spec 5, "Translating")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from bubble.protocol.errors import InvalidRequest
from bubble.protocol.identifiers import check_tool_call_id
from bubble.protocol.jsontext import JSONValue
from bubble.reef.events import DataPart
from bubble.reef.jsondata import TooDeep, tidy_numbers

__all__ = ["Classified", "FunctionCall", "FunctionResponse", "Nothing", "Opaque", "Unsayable", "classify_data_part"]

_CALLS: Final = ("functionCall", "function_call")
_RESPONSES: Final = ("functionResponse", "function_response")
# Of what a response may hold, the first that is there is the output.
_OUTPUTS: Final = ("response", "result", "output", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCall:
    """A call; `id` is None where the agent gave none that can be used."""

    name: str
    args: JSONValue
    id: str | None = None
    long_running: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionResponse:
    """What a call came to. `raw` is the whole payload, for when nobody knows the call."""

    output: JSONValue
    raw: JSONValue
    id: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Nothing:
    """An empty object: a sign of life."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque:
    """Data of the agent's own kind."""

    data: JSONValue


@dataclass(frozen=True, slots=True)
class Unsayable:
    """What the log does not take, and why: a sentence."""

    reason: str


Classified: TypeAlias = FunctionCall | FunctionResponse | Nothing | Opaque | Unsayable


def classify_data_part(part: DataPart) -> Classified:
    """What a data part is.

    A call is `{name, args}`, a response has one of `response`, `result`, `output`, `error`; either may be nested (`functionCall`, …), and
    the agent's own mark decides first where there is one.
    """
    try:
        data = tidy_numbers(part.data)
    except TooDeep as error:
        return Unsayable(str(error))
    if not isinstance(data, dict):
        return Opaque(data=data)
    if not data:
        return Nothing()
    call, response = _nested(data, _CALLS), _nested(data, _RESPONSES)
    if response is None and part.kind != "function_response" and (found := _call(call or data, part)) is not None:
        return found
    if part.kind not in {None, "function_call", "function_response"}:
        return Opaque(data=data)
    return _response(response or data, raw=data) or Opaque(data=data)


def _nested(data: Mapping[str, JSONValue], names: tuple[str, ...]) -> dict[str, JSONValue] | None:
    return next((inner for name in names if isinstance(inner := data.get(name), dict)), None)


def _call(data: Mapping[str, JSONValue], part: DataPart) -> FunctionCall | None:
    name = data.get("name")
    if not isinstance(name, str) or not name or part.kind not in {None, "function_call"}:
        return None
    if "args" not in data and part.kind is None:
        return None
    return FunctionCall(name=name, args=data.get("args", {}), id=_call_id(data), long_running=part.long_running)


def _response(data: Mapping[str, JSONValue], *, raw: JSONValue) -> FunctionResponse | None:
    found = next((name for name in _OUTPUTS if name in data), None)
    if found is None:
        return None
    name = data.get("name")
    return FunctionResponse(
        output=data[found], raw=raw, id=_call_id(data), name=name if isinstance(name, str) and name else None
    )


def _call_id(data: Mapping[str, JSONValue]) -> str | None:
    # What is no toolCallId in the log could not be answered there.
    try:
        return check_tool_call_id(str(data["id"]), path="id") if isinstance(data.get("id"), str) else None
    except InvalidRequest:
        return None
