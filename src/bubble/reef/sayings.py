"""What the translator wants said in the bot's run, and how it is said there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from bubble.client import Run
from bubble.protocol.jsontext import JSONValue

__all__ = ["EndBlock", "Event", "Failure", "FileShown", "Reasoning", "Saying", "Text", "ToolInput", "ToolOutput", "say"]


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of text; pieces in a row are one block."""

    delta: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A piece of reasoning."""

    delta: str


@dataclass(frozen=True, slots=True)
class EndBlock:
    """The open block is complete; what follows is another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInput:
    """A call, with its whole input."""

    tool_call_id: str
    name: str
    input: JSONValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """What a call came to."""

    tool_call_id: str
    output: JSONValue


@dataclass(frozen=True, slots=True, kw_only=True)
class FileShown:
    """A file, by its URL or as a `data:` URL."""

    url: str
    media_type: str
    filename: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A native `agent_event`; `empty` has no data."""

    name: str
    data: JSONValue = None


@dataclass(frozen=True, slots=True)
class Failure:
    """An error that the people read."""

    text: str


Saying: TypeAlias = Text | Reasoning | EndBlock | ToolInput | ToolOutput | FileShown | Event | Failure


async def say(saying: Saying, run: Run) -> None:
    """Says it in the run. Raises what saying raises (`bubble.client.Run`)."""
    match saying:
        case Text(delta):
            await run.text(delta)
        case Reasoning(delta):
            await run.reasoning(delta)
        case EndBlock():
            await run.end_block()
        case ToolInput():
            await run.tool_call(saying.name, saying.input, tool_call_id=saying.tool_call_id)
        case ToolOutput():
            output = {"type": "tool-output-available", "toolCallId": saying.tool_call_id, "output": saying.output}
            await run.part(output)
        case FileShown():
            await run.file(saying.url, media_type=saying.media_type, filename=saying.filename)
        case Event(name="empty"):
            await run.event("empty")
        case Event():
            await run.event(saying.name, saying.data)
        case Failure(text):
            await run.error(text)
