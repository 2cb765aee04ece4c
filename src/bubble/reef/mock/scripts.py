"""What the mock agent does. The first word of the prompt chooses a script; any other word is echoed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from a2a.helpers.proto_helpers import new_data_part, new_raw_part, new_text_part, new_url_part
from a2a.server.tasks.task_updater import TaskUpdater
from a2a.types.a2a_pb2 import Part

from bubble.protocol.jsontext import JSONValue

__all__ = ["SCRIPTS", "Scene", "Script", "answer", "script_for"]

_TOOL: Final = "get_weather"
_ANSWER: Final = "answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One performance: its task, what was asked, the files that came with it, and the seconds between two pieces of the answer."""

    updater: TaskUpdater
    prompt: str
    files: Sequence[str]
    pace: float

    async def stream(self, text: str, *, then: bool = True) -> None:
        """Says a text word by word, as one artifact; `then` completes it."""
        words = text.split(" ")
        for at, word in enumerate(words):
            is_last = at + 1 == len(words)
            await self.piece(word if is_last else f"{word} ", first=at == 0, last=then and is_last)

    async def piece(self, text: str, *, first: bool = False, last: bool = False) -> None:
        """Says a piece of the answer."""
        await self.parts(new_text_part(text), first=first, last=last)
        await asyncio.sleep(self.pace)

    async def parts(self, *parts: Part, first: bool = False, last: bool = False) -> None:
        """Shows parts of the answer."""
        await self.updater.add_artifact([*parts], artifact_id=_ANSWER, append=not first, last_chunk=last)


Script: TypeAlias = Callable[[Scene], Awaitable[None]]


def _marked(part: Part, **marks: JSONValue) -> Part:
    part.metadata.update(marks)
    return part


async def _echo(scene: Scene) -> None:
    files = f" (with {', '.join(scene.files)})" if scene.files else ""
    await scene.stream(f"You said: {scene.prompt}{files}")
    await scene.updater.complete()


async def _repeat(scene: Scene) -> None:
    text = "Everything I say, I say three times."
    await scene.stream(text, then=False)
    await scene.parts(new_text_part(text), first=True, last=True)
    await scene.updater.complete(scene.updater.new_agent_message([new_text_part(text)]))


async def _think(scene: Scene) -> None:
    await scene.parts(_marked(new_text_part("Somebody wants me to think. "), adk_thought=True), first=True)
    await scene.parts(_marked(new_text_part("So I do."), adk_thought=True))
    await scene.stream("I have thought about it.")
    await scene.updater.complete()


async def _tool(scene: Scene) -> None:
    call = new_data_part({"id": f"call-{scene.updater.task_id}", "name": _TOOL, "args": {"city": "Oslo", "days": 2}})
    parts = [
        new_text_part("Somebody has to look out of the window."),
        _marked(call, adk_type="function_call", adk_is_long_running=True),
    ]
    await scene.updater.requires_input(scene.updater.new_agent_message(parts))


async def _long(scene: Scene) -> None:
    await scene.piece("This takes long.", first=True)
    for tick in range(1, 1_001):
        await asyncio.sleep(scene.pace * 4)
        await scene.piece(f" {tick}")
    await scene.updater.complete()


async def _fail(scene: Scene) -> None:
    await scene.stream("I begin, and then", then=False)
    await scene.updater.failed(
        scene.updater.new_agent_message([new_text_part("The mock agent fails, as it was asked to.")])
    )


async def _file(scene: Scene) -> None:
    await scene.parts(
        new_text_part("Two files: one to keep, one to fetch."),
        new_raw_part(b"A file of the mock agent's.\n", media_type="text/plain", filename="mock.txt"),
        new_url_part("https://example.com/mock.pdf", media_type="application/pdf", filename="mock.pdf"),
        first=True,
        last=True,
    )
    await scene.updater.complete()


async def _help(scene: Scene) -> None:
    await scene.stream(f"Begin with one of: {', '.join(sorted(SCRIPTS))}. Anything else I repeat.")
    await scene.updater.complete()


SCRIPTS: Final[Mapping[str, Script]] = {
    "repeat": _repeat,
    "think": _think,
    "tool": _tool,
    "long": _long,
    "fail": _fail,
    "file": _file,
    "help": _help,
}


def script_for(prompt: str) -> Script:
    """The script that a prompt asks for."""
    first = prompt.split(maxsplit=1)[0] if prompt.strip() else ""
    return SCRIPTS.get(first.strip(".,:;!?").lower(), _echo)


async def answer(scene: Scene, response: JSONValue) -> None:
    """What follows once somebody has answered the tool's call; `response` is None where they said something instead."""
    told = (
        f"The tool said: {_words(response)}"
        if response is not None
        else f"Instead of the tool, you said: {scene.prompt}"
    )
    await scene.stream(told)
    await scene.updater.complete()


def _words(response: JSONValue) -> str:
    if isinstance(response, dict):
        return ", ".join(f"{name} {_words(value)}" for name, value in response.items())
    return f"{response:g}" if isinstance(response, float) else str(response)
