"""`bubble demo`: see it work, or have it checked."""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from bubble.cli.output import JsonOption, note, say, stdout_console, write_json
from bubble.cli.remote import run_async

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubble.cli.spawned import SpawnedServer
    from bubble.demo.play import Play
    from bubble.demo.proof import Claim

__all__ = ["app"]

app = typer.Typer(
    add_completion=False, name="demo", help="See it work: people, a bot that streams, a reader that resumes."
)


@app.command()
def demo(
    *,
    check: Annotated[
        bool, typer.Option("--check", help="No show: play it fast, print the transcript, prove it.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """A fresh server in a temporary directory, one thread, two people and a bot that streams.

    The bot gives recorded replies, asks for consent before it calls a tool, and is stopped in the middle of a sentence. One person follows
    live over a WebSocket. The other leaves in the middle of a reply and resumes by her cursor. In the end the log and what both got are
    compared, event by event and byte by byte, and the messages with what the log makes. Then an A2A agent takes part by `bubble reef`,
    where the extra `a2a` is installed. Exit code 1 if anything is not as it must be.

    On a terminal, a link is printed afterwards: the page in the browser, with an agent that answers, until Ctrl-C.
    """
    live = stdout_console().is_terminal and not check and not as_json
    try:
        claims = run_async(_perform(live=live, as_json=as_json))
    except KeyboardInterrupt:
        if not live:
            raise
        note("Stopped; the server and its data are gone.")  # who has seen enough of a show may leave
        return
    if not all(each.holds for each in claims):
        raise typer.Exit(1)


async def _perform(*, live: bool, as_json: bool) -> Sequence[Claim]:
    from bubble.cli.spawned import spawned_server
    from bubble.demo.play import Play

    start = time.monotonic()
    async with spawned_server() as server:
        play = Play(server.url, server.admin_token, pace=1.0 if live else 0.0)
        claims = await (_show(play, server) if live else _both_parts(play, server, pace=0.0))
        if live:
            _tell(play, claims, live=True)
            await _stay(server)
    if as_json:
        write_json([{"claim": each.text, "holds": each.holds, "failure": each.failure or None} for each in claims])
    elif not live:
        _tell(play, claims, live=False)
        note(f"Done in {time.monotonic() - start:.1f} s; the server and its data are gone.")
    return claims


async def _stay(server: SpawnedServer) -> None:
    """The page, with an agent to talk to where there is one, until Ctrl-C."""
    from bubble.demo.agent import agent_is_there
    from bubble.demo.talk import a_talk

    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, over.set)
    async with a_talk(server) if agent_is_there() else nullcontext(server.login_url) as link:
        say("")
        say("In the browser, and yours to try, within 15 minutes:")
        say(link)
        note("Ctrl-C ends it; the server and its data are gone then.")
        await over.wait()


async def _both_parts(play: Play, server: SpawnedServer, *, pace: float) -> Sequence[Claim]:
    from bubble.demo.agent import AgentPlay, agent_is_there

    claims = await play.perform()
    if not agent_is_there():
        return claims
    return [*claims, *await AgentPlay(server, play.scene, pace=pace).perform()]


async def _show(play: Play, server: SpawnedServer) -> Sequence[Claim]:
    from bubble.demo.view import show_until

    done = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(show_until(done, play.scene, stdout_console()))
        try:
            return await _both_parts(play, server, pace=1.0)
        finally:
            done.set()


def _tell(play: Play, claims: Sequence[Claim], *, live: bool) -> None:
    from bubble.demo.agent import agent_is_there
    from bubble.demo.view import show_claims, tell

    if not live:
        for messages in (play.scene.earlier, play.scene.messages):
            tell(messages, stdout_console())
    say("")
    show_claims(claims, stdout_console())
    if not agent_is_there():
        note("The part of the A2A agent is left out: it needs the extra `a2a` (pip install 'bubble-threads[a2a]').")
