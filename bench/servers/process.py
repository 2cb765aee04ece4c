"""A server as a child process: it says on its standard output where it is, and stops when its standard input ends, with this process at the
latest."""

from __future__ import annotations

import json
import os
import secrets
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["Server", "ServerError", "asgi_server", "bare_server", "bubble_server", "start"]

_START_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 20.0
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_TICKS: Final = os.sysconf("SC_CLK_TCK")

# No limit of the product's is to be what is measured, and a ping in between would be a byte too many.
_UNLIMITED: Final[Mapping[str, str]] = {
    "BUBBLE_RATES__REQUESTS_PER_SECOND": "0",
    "BUBBLE_RATES__FRAMES_PER_SECOND": "0",
    "BUBBLE_STREAMS__CONNECTIONS_PER_PRINCIPAL": "1000000",
    "BUBBLE_STREAMS__PING_INTERVAL": "1h",
    "BUBBLE_STREAMS__PEER_TIMEOUT": "2h",
    "BUBBLE_LOG__LEVEL": "warning",
    "BUBBLE_LOG__REQUESTS": "false",
}


class ServerError(Exception):
    """A server did not start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running server: where it is, the bearer of its administrator, its process and its data."""

    host: str
    port: int
    token: str
    pid: int
    data: Path

    def processor_seconds(self) -> float:
        """What its process has used of the processors so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def resident_bytes(self) -> int:
        """How much memory its process holds."""
        return int(Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE


@contextmanager
def bubble_server(directory: Path, *, store: str | None = None, data: Path | None = None) -> Iterator[Server]:
    """`bubble serve`, as anybody would start it, with its limits lifted. `store` None is the embedded one in `data` (None: a new place)."""
    options = [] if store is None else ["--store", store]
    with start(
        ["bubble.cli", "serve", "--port", "0", "--json", "--until-stdin-ends", *options], directory, data
    ) as server:
        yield server


@contextmanager
def asgi_server(directory: Path, *, store: str | None = None, data: Path | None = None) -> Iterator[Server]:
    """The same product, with uvicorn's own WebSocket class: every event goes out through one ASGI `send`."""
    options = [] if store is None else ["--store", store]
    with start(["bench.servers.asgi", *options], directory, data) as server:
        yield server


@contextmanager
def bare_server(directory: Path) -> Iterator[Server]:
    """The same server stack with nothing behind it."""
    with start(["bench.servers.bare"], directory, None) as server:
        yield server


@contextmanager
def start(command: Sequence[str], directory: Path, data: Path | None) -> Iterator[Server]:
    """Runs a module as a server until the block ends."""
    place = Path(tempfile.mkdtemp(prefix="server-", dir=directory))
    data = data or place / "data"
    token = secrets.token_urlsafe(32)
    process = _spawn([*command, "--data", str(data)], place, token)
    try:
        announced = json.loads(_first_line(process, place))
        yield Server(host="127.0.0.1", port=int(announced["port"]), token=token, pid=process.pid, data=data)
    finally:
        _stop(process)


def _spawn(command: Sequence[str], place: Path, token: str) -> subprocess.Popen[bytes]:
    own = {name: value for name, value in os.environ.items() if not name.upper().startswith("BUBBLE_")}
    root = Path(__file__).resolve().parent.parent.parent
    modules = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH"))))
    with (place / "server.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=place,
            env={**own, **_UNLIMITED, "BUBBLE_ADMIN_TOKEN": token, "PYTHONPATH": modules},
            start_new_session=True,
        )


def _first_line(process: subprocess.Popen[bytes], place: Path) -> bytes:
    assert process.stdout is not None
    deadline = time.monotonic() + _START_SECONDS
    ready, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
    line = process.stdout.readline() if ready else b""
    if not line:
        said = (place / "server.log").read_text(errors="replace").strip().splitlines()
        raise ServerError(f"A server did not start: {said[-1] if said else 'it said nothing'}")
    return line


def _stop(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    finally:
        process.stdout.close()
