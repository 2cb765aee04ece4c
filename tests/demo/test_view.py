"""What the demonstration shows."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from bubble.assembler import create_assembler
from bubble.demo.proof import Claim
from bubble.demo.recordings import recording
from bubble.demo.view import abridged, show_claims, tell
from bubble.protocol.jsontext import load_json
from tests.assembler.logs import Event, finished, numbered, started

pytestmark = pytest.mark.anyio


def replayed(name: str) -> list[Event]:
    """A recorded reply as a run of its own."""
    run = f"reply-{name}"
    about = {"type": "message_part", "principalId": "bot", "runId": run, "version": "ai-sdk-v6"}
    return [started(run), *({**about, "part": load_json(text)} for text in recording(name)), finished(run)]


def console(*, width: int = 10_000) -> Console:
    return Console(file=io.StringIO(), width=width, color_system=None, force_terminal=width < 10_000)


def written(console: Console) -> list[str]:
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


async def test_replies_are_told_as_a_conversation() -> None:
    log = [event for name in ("thinking", "weather", "greeting", "family") for event in replayed(name)]
    place = console()
    tell((await create_assembler().assemble(numbered(log))).messages, place)
    assert [line for line in written(place)[1:] if line.startswith(" ")] == [
        "          ┆ thinking",
        "          ▸ weather  done",
        '          │ {"city":"Paris"}',
        '          → {"temp":20}',
        "          Hello, world",
        "          👩‍👩‍👧 e\u0301 🇯🇵",
    ]


async def test_of_the_long_reply_only_the_beginning_is_told() -> None:
    [message] = (await create_assembler().assemble(numbered(replayed("everything")))).messages
    [growing] = (await create_assembler().assemble(numbered(replayed("everything")[:-1]))).messages
    assert (len(message["parts"]), len(abridged(message)["parts"]), len(abridged(growing)["parts"])) == (103, 7, 6)
    assert abridged(message)["parts"][-1]["text"] == "… and 97 parts more"


def test_a_claim_is_told_with_its_failure_below_its_mark() -> None:
    place = console(width=40)
    show_claims([Claim.of("all is well here", None), Claim.of("all is well there " * 2, "it is not")], place)
    assert written(place) == [
        "ok     all is well here",
        "FAILED all is well there all is well",
        "       there : it is not",
    ]
