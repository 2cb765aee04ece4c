"""A tool call as a card: its name and state, what goes in, what comes out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from bubble.assembler.messages import MessagePart
from bubble.cli.conversation.layout import Marked
from bubble.cli.conversation.words import json_words, words
from bubble.protocol.jsontext import JSONValue

__all__ = ["awaits_result", "card", "has_outcome", "is_tool", "is_waiting", "state_of", "tool_name"]

_DYNAMIC: Final = "dynamic-tool"
_STATIC: Final = "tool-"
_OUTCOMES: Final = frozenset({"output-available", "output-error", "output-denied"})
_UNDECIDED: Final = frozenset({"input-streaming", "input-available", "approval-requested"})

_STATES: Final[Mapping[str, tuple[str, str]]] = {
    "input-streaming": ("is being called", "dim"),
    "input-available": ("runs", "dim"),
    "approval-requested": ("waits for approval", "bold yellow"),
    "output-available": ("done", "green"),
    "output-error": ("failed", "red"),
    "output-denied": ("was not allowed", "red"),
}


def is_tool(part: MessagePart) -> bool:
    """Whether the part is a tool call."""
    kind = part["type"]
    return isinstance(kind, str) and (kind == _DYNAMIC or kind.startswith(_STATIC))


def tool_name(part: MessagePart) -> str:
    """The tool's name, in one safe line."""
    kind = str(part["type"])
    return words(part.get("toolName")) if kind == _DYNAMIC else words(kind.removeprefix(_STATIC))


def state_of(part: MessagePart) -> tuple[JSONValue, JSONValue]:
    """What must change for the card to be told again."""
    return part.get("state"), part.get("preliminary")


def has_outcome(part: MessagePart) -> bool:
    """Whether the call is over."""
    return part.get("state") in _OUTCOMES and part.get("preliminary") is not True


def is_waiting(part: MessagePart) -> bool:
    """Whether somebody has to decide on the call."""
    return part.get("state") == "approval-requested"


def awaits_result(part: MessagePart) -> bool:
    """Whether the call is complete and allowed, and has no result."""
    approval = part.get("approval")
    is_allowed = isinstance(approval, dict) and approval.get("approved") is True
    return part.get("state") == "input-available" or (part.get("state") == "approval-responded" and is_allowed)


def card(part: MessagePart, *, before: MessagePart | None = None, is_over: bool = False) -> RenderableType:
    """The card. What is long in it is shortened, whatever it says is safe.

    An input that is as it was `before` is left out. `is_over`: the run has ended, and with it what was still to come.
    """
    rows: list[RenderableType] = [_head(part, is_over=is_over)]
    given = _input(part)
    if given is not None and (before is None or _input(before) != given):
        rows.append(Marked("│ ", Text(json_words(given), style="dim"), rest="│ ", style="dim"))
    if part.get("state") == "output-available":
        rows.append(Marked("→ ", Text(json_words(part.get("output")))))
    elif part.get("state") == "output-error":
        rows.append(Marked("✗ ", Text(json_words(part.get("errorText")), style="red"), style="red"))
    return Group(*rows)


def _head(part: MessagePart, *, is_over: bool) -> Text:
    state, style = ("has no outcome", "red") if is_over and part.get("state") in _UNDECIDED else _state(part)
    name, title = tool_name(part), words(part.get("title"))
    shown = f"{title} ({name})" if title else name
    return Text.assemble("▸ ", (shown, "bold"), "  ", (state, style))


def _state(part: MessagePart) -> tuple[str, str]:
    state = str(part.get("state"))
    if state == "approval-responded":
        return _decision(part.get("approval"))
    if state == "output-available" and part.get("preliminary") is True:
        return "so far", "dim"
    return _STATES.get(state, (words(state), "dim"))


def _decision(approval: JSONValue) -> tuple[str, str]:
    if not isinstance(approval, dict) or approval.get("approved") is not True:
        reason = words(approval.get("reason")) if isinstance(approval, dict) else ""
        return f"rejected: {reason}" if reason else "rejected", "red"
    return "approved", "green"


def _input(part: MessagePart) -> JSONValue:
    given = part.get("input")
    return part.get("rawInput") if given is None else given
