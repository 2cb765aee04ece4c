"""The play in a terminal: the conversation as it grows, and the two who follow it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from bubble.cli.output import plain
from bubble.demo.proof import Claim
from bubble.demo.scene import Reader, Scene
from bubble.demo.script import CAST, TITLE
from bubble.demo.transcript import Block, Said

__all__ = ["render", "show_claims", "show_until", "transcript_lines"]

_NAMES: Final = {member.principal_id: member.display_name for member in CAST}
_STYLES: Final = {"ada": "bold cyan", "grace": "bold magenta", "echo": "bold green"}
_BLOCK_STYLES: Final = {"text": "", "reasoning": "italic dim", "tool": "yellow", "output": "yellow"}
_SHOWN_CHARACTERS: Final = 360
_FRAMES_PER_SECOND: Final = 12


async def show_until(done: asyncio.Event, scene: Scene, console: Console) -> None:
    """Draws the scene again and again until `done` is set; the last picture stays."""
    with Live(render(scene), console=console, auto_refresh=False, vertical_overflow="crop") as live:
        while not done.is_set():
            live.update(render(scene), refresh=True)
            try:
                async with asyncio.timeout(1 / _FRAMES_PER_SECOND):
                    await done.wait()
            except TimeoutError:
                continue
        live.update(render(scene), refresh=True)


def render(scene: Scene) -> RenderableType:
    """One picture."""
    runs = [_said(said) for said in scene.transcript.runs]
    return Group(
        Panel(Group(*runs) if runs else Text(" "), title=TITLE, title_align="left", border_style="blue"),
        _readers(scene.readers.values()),
        Text(scene.stage, style="dim"),
    )


def _said(said: Said) -> Text:
    name = _NAMES.get(said.principal_id, said.principal_id)
    text = Text.assemble((f"{name:<6} ", _STYLES.get(said.principal_id, "bold")))
    blocks = said.blocks[-4:]
    if len(said.blocks) > len(blocks):
        text.append(f"… {said.chunks} chunks …  ", style="dim")
    for block in blocks:
        text.append(_shortened(_words(block)), style=_BLOCK_STYLES[block.kind])
        text.append("  ")
    if not said.finished:
        text.append("▌", style="blink")
    return text


def _words(block: Block) -> str:
    if block.kind == "tool":
        return f"{block.label}({block.text})"
    return f"→ {block.text}" if block.kind == "output" else block.text


def _shortened(text: str) -> str:
    shown = plain(text)
    return shown if len(shown) <= _SHOWN_CHARACTERS else f"…{shown[-_SHOWN_CHARACTERS:]}"


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


def transcript_lines(runs: Sequence[Said]) -> list[str]:
    """The conversation as plain lines, for where there is no terminal."""
    lines = []
    for said in runs:
        words = "  ".join(_words(block) for block in said.blocks[:4])
        more = f"  … {said.chunks} chunks" if len(said.blocks) > 4 else ""
        name = _NAMES.get(said.principal_id, said.principal_id)
        lines.append(f"{name:<6} {_shortened(words)}{more}")
    return lines


def show_claims(claims: Sequence[Claim], console: Console) -> None:
    """What was proved, or where it failed."""
    for claim in claims:
        mark = Text("ok     ", style="green") if claim.holds else Text("FAILED ", style="bold red")
        console.print(mark + Text(claim.text if claim.holds else f"{claim.text}: {claim.failure}"))
