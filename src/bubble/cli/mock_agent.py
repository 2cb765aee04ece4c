"""`bubble mock-agent`: an A2A agent to try reef with."""

from __future__ import annotations

import asyncio
import os
from typing import Annotated

import typer

from bubble.cli.failures import CommandError
from bubble.cli.output import note, say, write_json
from bubble.cli.stdin import UntilStdinEndsOption, stop_when_stdin_ends

__all__ = ["app"]

app = typer.Typer(add_completion=False, name="mock-agent", help="Run a small A2A agent to try reef with.")


@app.command()
def mock_agent(
    *,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65_535, help="The port; 0 takes any free one.")] = 8_100,
    pace: Annotated[
        float, typer.Option("--pace", min=0.0, metavar="SECONDS", help="The time between two pieces of an answer.")
    ] = 0.05,
    as_json: Annotated[
        bool, typer.Option("--json", help="One line of JSON instead of the welcome, once it listens.")
    ] = False,
    until_stdin_ends: UntilStdinEndsOption = False,
) -> None:
    """Run an agent that does what the first word of the prompt says: repeat, think, tool, long, fail, file, help; else it echoes.

    It speaks both bindings of A2A 1.0 and 0.3. `…/1.0/rest`, `…/1.0/rpc`, `…/0.3/rpc` and `…/0.3/rest` are agents of one dialect each.
    """
    try:
        from bubble.reef.mock.serving import serve_mock_agent
    except ImportError:
        raise CommandError("The mock agent needs the extra `a2a`: pip install 'bubble-threads[a2a]'.") from None
    if until_stdin_ends:
        stop_when_stdin_ends()

    def tell(url: str) -> None:
        if as_json:
            write_json({"url": url, "pid": os.getpid()})
        else:
            say(f"The mock agent listens on {url}")
            note("Give that to reef as a2a.agentCardUrl. Ctrl-C stops it.")

    try:
        asyncio.run(serve_mock_agent(host=host, port=port, pace=pace, on_started=tell))
    except OSError as error:
        raise CommandError(
            f"Cannot listen on {host}:{port} ({error.strerror or error}): choose another --port or --host."
        ) from None
