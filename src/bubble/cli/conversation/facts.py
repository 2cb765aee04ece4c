"""What somebody did, as a sentence: the facts among a message's parts, and what a message's metadata tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from bubble.assembler.messages import APPROVAL, INTERRUPT, PARTICIPANT, TITLE, TOOL_RESULT, MessagePart
from bubble.cli.conversation.words import words
from bubble.protocol.jsontext import JSONValue

__all__ = ["ENDINGS", "is_fact", "sentence"]

Data = Mapping[str, JSONValue]
Names = Mapping[str, str]

#: How a run ended, where that is worth a word.
ENDINGS: Final[Mapping[str, str]] = {"failed": "failed", "interrupted": "was stopped", "lost": "was lost"}


def is_fact(part: MessagePart) -> bool:
    """Whether the part is told as a sentence of its own."""
    return part["type"] in _SENTENCES


def sentence(part: MessagePart, *, tools: Names, owner: str) -> str:
    """The sentence of a fact; `tools` has the names of the tools by their calls, `owner` is whose run it is about."""
    data = part.get("data")
    return _SENTENCES[str(part["type"])](data if isinstance(data, Mapping) else {}, tools, owner)


def _tool(data: Data, tools: Names) -> str:
    call_id = words(data.get("toolCallId"))
    return tools.get(call_id, f"call {call_id}")


def _approval(data: Data, tools: Names, _: str) -> str:
    decision = "approves" if data.get("approved") is True else "rejects"
    reason = words(data.get("reason"))
    return f"{words(data.get('principalId'))} {decision} {_tool(data, tools)}" + (f": {reason}" if reason else "")


def _result(data: Data, tools: Names, _: str) -> str:
    return f"{words(data.get('principalId'))} gives the result of {_tool(data, tools)}"


def _interrupt(data: Data, _: Names, owner: str) -> str:
    return f"{words(data.get('principalId'))} asks {owner} to stop"


def _participant(data: Data, *_: object) -> str:
    who, by = words(data.get("principalId")), words(data.get("byPrincipalId"))
    joins = data.get("action") == "joined"
    if who == by:
        return f"{who} joins" if joins else f"{who} leaves"
    return f"{by} adds {who}" if joins else f"{by} removes {who}"


def _title(data: Data, *_: object) -> str:
    title = words(data.get("title"))
    who = words(data.get("byPrincipalId"))
    return f"{who} calls the thread “{title}”" if title else f"{who} takes the thread's title away"


_SENTENCES: Final[Mapping[str, Callable[[Data, Names, str], str]]] = {
    APPROVAL: _approval,
    TOOL_RESULT: _result,
    INTERRUPT: _interrupt,
    PARTICIPANT: _participant,
    TITLE: _title,
}
