"""A server of one's own for a while: a child process on a free loopback port, with an empty store in a temporary directory."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bubble.cli.failures import CommandError

__all__ = ["SpawnedServer", "spawned", "spawned_server"]

_START_SECONDS: Final = 30.0
_STOP_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnedServer:
    """Where it is, the bearer of its administrator, a link that logs a browser in, once, the directory that goes away with it, and its
    process."""

    url: str
    admin_token: str
    login_url: str
    directory: Path
    pid: int


@asynccontextmanager
async def spawned_server(**variables: str) -> AsyncIterator[SpawnedServer]:
    """Starts a server with these `BUBBLE_…` variables and no other settings of this machine, and stops it with the block.

    It also stops when this process is gone, however that came: its standard input then ends. Raises `CommandError` where it does not start.
    """
    with tempfile.TemporaryDirectory(prefix="bubble-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        command = ("serve", "--data", str(directory / "data"), "--port", "0")
        async with spawned(*command, directory=directory, **variables) as said:
            yield SpawnedServer(
                url=str(said["url"]),
                admin_token=str(said["token"]),
                login_url=str(said["loginUrl"]),
                directory=directory,
                pid=int(str(said["pid"])),
            )


@asynccontextmanager
async def spawned(*command: str, directory: Path, **variables: str) -> AsyncIterator[Mapping[str, object]]:
    """Starts a command of `bubble` that stays, in a process of its own, stopped with the block; gives what it says when it is ready."""
    log = directory / f"{command[0]}.log"
    process = await _start(directory, command, variables, log)
    try:
        yield await _announcement(process, command[0], log)
    finally:
        await _stop(process)


async def _start(directory: Path, command: Sequence[str], variables: Mapping[str, str], log: Path) -> Process:
    own = {name: value for name, value in os.environ.items() if not name.upper().startswith("BUBBLE_")}
    with log.open("ab") as stderr:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bubble.cli", *command, "--json", "--until-stdin-ends"),
            stdin=PIPE,
            stdout=PIPE,
            stderr=stderr,
            cwd=directory,
            env={**own, **variables},
            start_new_session=True,
        )


async def _announcement(process: Process, name: str, log: Path) -> Mapping[str, object]:
    assert process.stdout is not None  # noqa: S101 - it was asked for
    line = b""
    with suppress(TimeoutError):
        line = await asyncio.wait_for(process.stdout.readline(), _START_SECONDS)
    if not line:
        what = "The server" if name == "serve" else f"`bubble {name}`"
        raise CommandError(f"{what} did not start: {_last_words(log)}")
    announced: dict[str, object] = json.loads(line)
    return announced


def _last_words(log: Path) -> str:
    said = log.read_text(errors="replace").strip().splitlines()
    return said[-1].removeprefix("bubble: ") if said else "it said nothing."


async def _stop(process: Process) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), _STOP_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
