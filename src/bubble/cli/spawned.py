"""A server of one's own for a while: a child process on a free loopback port, with an empty store in a temporary directory."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bubble.cli.failures import CommandError

__all__ = ["SpawnedServer", "spawned_server"]

_START_SECONDS: Final = 30.0
_STOP_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnedServer:
    """Where it is, the bearer of its administrator, the directory that goes away with it, and its process."""

    url: str
    admin_token: str
    directory: Path
    pid: int


@asynccontextmanager
async def spawned_server(**variables: str) -> AsyncIterator[SpawnedServer]:
    """Starts a server with these `BUBBLE_…` variables and no other settings of this machine, and stops it with the block.

    It also stops when this process is gone, however that came: its standard input then ends. Raises `CommandError` where it does not start.
    """
    token = secrets.token_urlsafe(32)
    with tempfile.TemporaryDirectory(prefix="bubble-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        process = await _start(directory, {"BUBBLE_ADMIN_TOKEN": token, **variables})
        try:
            url = await _address(process, directory)
            yield SpawnedServer(url=url, admin_token=token, directory=directory, pid=process.pid)
        finally:
            await _stop(process)


async def _start(directory: Path, variables: dict[str, str]) -> Process:
    own = {name: value for name, value in os.environ.items() if not name.upper().startswith("BUBBLE_")}
    command = [
        "-m",
        "bubble.cli",
        "serve",
        "--data",
        str(directory / "data"),
        "--port",
        "0",
        "--json",
        "--until-stdin-ends",
    ]
    with (directory / "server.log").open("wb") as log:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=log,
            cwd=directory,
            env={**own, **variables},
            start_new_session=True,
        )


async def _address(process: Process, directory: Path) -> str:
    assert process.stdout is not None  # noqa: S101 - it was asked for
    line = b""
    with suppress(TimeoutError):
        line = await asyncio.wait_for(process.stdout.readline(), _START_SECONDS)
    if not line:
        said = (directory / "server.log").read_text(errors="replace").strip().splitlines()
        reason = said[-1].removeprefix("bubble: ") if said else "it said nothing."
        raise CommandError(f"The server did not start: {reason}")
    return str(json.loads(line)["url"])


async def _stop(process: Process) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), _STOP_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
