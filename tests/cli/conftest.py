"""The real command against a real server, which is a process of its own."""

from __future__ import annotations

import asyncio
import io
import json
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest

from bubble.cli.app import run
from bubble.cli.output import _console
from bubble.client import BubbleConnection

COMMAND = (sys.executable, "-m", "bubble.cli")
TIMEOUT = 60


def clean_environment(**variables: str) -> dict[str, str]:
    """This process's environment without any settings of Bubble, and `variables`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BUBBLE_")}
    return {**kept, "COLUMNS": "200", **variables}


@dataclass(frozen=True, kw_only=True)
class Result:
    """How a command ended."""

    code: int
    out: str
    err: str


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode("utf-8")


@dataclass(frozen=True, kw_only=True)
class Shell:
    """Runs `bubble` in a directory, with its own configuration and variables."""

    directory: Path
    variables: Mapping[str, str]

    @property
    def environment(self) -> dict[str, str]:
        """What its commands see."""
        return clean_environment(XDG_CONFIG_HOME=str(self.directory / "config"), **self.variables)

    def __call__(self, *arguments: str, stdin: str = "") -> Result:
        """The result of a command, run in this process: starting a new one each time would be most of the work."""
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
        given = io.TextIOWrapper(io.BytesIO(stdin.encode("utf-8")), encoding="utf-8")
        _console.cache_clear()
        with (
            chdir(self.directory),
            mock.patch.dict(os.environ, self.environment, clear=True),
            mock.patch.multiple(sys, stdin=given, stdout=out, stderr=err),
        ):
            code = run(arguments)
        return Result(code=code, out=_written(out), err=_written(err))

    @contextmanager
    def process(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """The real thing, with pipes to all its streams; it does not outlive the block."""
        with subprocess.Popen(
            [*COMMAND, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.directory,
            env=self.environment,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def ok(self, *arguments: str, stdin: str = "") -> str:
        """The standard output of a command that must succeed."""
        result = self(*arguments, stdin=stdin)
        assert result.code == 0, result
        return result.out

    def json(self, *arguments: str) -> object:
        """What a command with `--json` said."""
        said: object = json.loads(self.ok(*arguments, "--json"))
        return said

    def fails(self, *arguments: str, code: int, stdin: str = "") -> str:
        """The one sentence of a command that must fail with this exit code."""
        result = self(*arguments, stdin=stdin)
        assert result.code == code, result
        assert result.err.startswith("bubble: "), result
        assert result.err.count("\n") == 1, result
        return result.err


@dataclass(frozen=True, kw_only=True)
class Server:
    """A running server, and the bearer of its administrator."""

    url: str
    admin_token: str
    data: Path


@contextmanager
def running_server(directory: Path, *, port: int = 0, token: str | None = None, **variables: str) -> Iterator[Server]:
    """A server process (`port` 0: on a free one); it ends with the block, and with this process in any case."""
    token = token or secrets.token_urlsafe(32)
    data = directory / "data"
    process = subprocess.Popen(
        [*COMMAND, "serve", "--data", str(data), "--port", str(port), "--json", "--until-stdin-ends"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=directory,
        env=clean_environment(BUBBLE_ADMIN_TOKEN=token, **variables),
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Server(url=json.loads(process.stdout.readline())["url"], admin_token=token, data=data)
        finally:
            process.stdin.close()
            code = process.wait(timeout=TIMEOUT)
        assert code == 0


def carry_out(work: Callable[[BubbleConnection], Awaitable[None]], shell: Shell) -> None:
    """Does something as the one whose shell it is, with the client."""

    async def connected() -> None:
        variables = shell.variables
        async with BubbleConnection(variables["BUBBLE_URL"], token=variables["BUBBLE_TOKEN"]) as bubble:
            await work(bubble)

    asyncio.run(connected())


def wait_until(holds: Callable[[], bool]) -> None:
    """Returns once it holds, which only another process can bring about; fails after a while."""
    end = time.monotonic() + TIMEOUT
    while not holds():
        assert time.monotonic() < end, "it never came true"
        threading.Event().wait(0.02)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests that need nothing of it but to be there: they make their own threads and people."""
    with running_server(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Somebody who is not logged in anywhere."""
    return Shell(directory=tmp_path, variables={})


@pytest.fixture
def admin(tmp_path: Path, server: Server) -> Shell:
    """The administrator, by the environment."""
    return Shell(directory=tmp_path, variables={"BUBBLE_URL": server.url, "BUBBLE_TOKEN": server.admin_token})


@pytest.fixture
def person(admin: Shell, server: Server) -> Callable[[str], Shell]:
    """Registers somebody and gives their shell."""

    def register(principal_id: str, *options: str) -> Shell:
        admin.ok("principals", "create", principal_id, *options)
        token = admin.ok("tokens", "mint", principal_id).strip()
        return Shell(directory=admin.directory, variables={"BUBBLE_URL": server.url, "BUBBLE_TOKEN": token})

    return register
