"""The play in a terminal: the conversation as it grows, below it the two who follow it; or told when it is over."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from bubble.assembler import BubbleMessage
from bubble.cli.conversation import Conversation, Screen
from bubble.cli.conversation.layout import Marked
from bubble.demo.proof import Claim
from bubble.demo.scene import Reader, Scene
from bubble.demo.script import LONG_REPLY, run_of_reply

__all__ = ["abridged", "show_claims", "show_until", "tell"]

_FRAME: Final = 1 / 16
_SHOWN_PARTS: Final = 6


async def show_until(done: asyncio.Event, scene: Scene, console: Console) -> None:
    """Shows the scene until `done` is set; the conversation stays."""
    conversation, earlier = Conversation(), scene.earlier
    with Screen(console) as screen:
        while not done.is_set():
            if scene.earlier is not earlier:
                screen.show([*conversation.rest(), Text("")], [])
                conversation, earlier = Conversation(), scene.earlier
            _show(scene, conversation, screen)
            try:
                async with asyncio.timeout(_FRAME):
                    await done.wait()
            except TimeoutError:
                continue
        _show(scene, conversation, screen)
        screen.end([*conversation.rest(), Text(""), *_footer(scene)])


def tell(messages: Sequence[BubbleMessage], console: Console) -> None:
    """The whole conversation at once, for where there is no terminal."""
    conversation = Conversation()
    with Screen(console) as screen:
        screen.end([*conversation.take([abridged(message) for message in messages]), *conversation.rest()])


def abridged(message: BubbleMessage) -> BubbleMessage:
    """The message; of the long reply, which is made to try everything and not to be read, only the beginning."""
    more = len(message["parts"]) - _SHOWN_PARTS
    if message["id"] != run_of_reply(LONG_REPLY) or more <= 0:
        return message
    parts = message["parts"][:_SHOWN_PARTS]
    if message["metadata"]["bubble"]["status"] == "finished":
        parts = [*parts, {"type": "text", "text": f"… and {more} parts more", "state": "done"}]
    return {**message, "parts": parts}


def _show(scene: Scene, conversation: Conversation, screen: Screen) -> None:
    told = conversation.take([abridged(message) for message in scene.news()])
    screen.show(told, [*conversation.growing(room=screen.room), Text(""), *_footer(scene)])


def _footer(scene: Scene) -> list[RenderableType]:
    return [_readers(scene.readers.values()), Text(scene.stage, style="dim")]


def _readers(readers: Iterable[Reader]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for reader in readers:
        table.add_row(
            Text(reader.name, style="bold"), Text(f"seq {reader.seq:>4}"), Text(_how(reader), style=_how_style(reader))
        )
    return table


def _how(reader: Reader) -> str:
    words = {
        "arriving": "is coming",
        "live": "follows over a WebSocket",
        "away": f"left after seq {reader.left_at}",
        "catching up": f"is back: continues with seq {(reader.left_at or 0) + 1}, behind until {reader.resumed_through}",
        "done": "has everything",
    }[reader.presence]
    if reader.presence in ("live", "done") and reader.left_at is not None:
        return f"{words} (left after seq {reader.left_at}, resumed by cursor)"
    return words


def _how_style(reader: Reader) -> str:
    return {"away": "red", "catching up": "yellow", "live": "green", "done": "green"}.get(reader.presence, "dim")


def show_claims(claims: Sequence[Claim], console: Console) -> None:
    """What was proved, or where it failed."""
    for claim in claims:
        mark, style = ("ok     ", "green") if claim.holds else ("FAILED ", "bold red")
        text = claim.text if claim.holds else f"{claim.text}: {claim.failure}"
        console.print(Marked(mark, Text(text), style=style), end="", soft_wrap=not console.is_terminal)
