"""`redis-server`, where it is installed: a reference that is not ours, with the same promise about the disk."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from bench.servers.process import Server, ServerError

__all__ = ["redis_is_installed", "redis_server"]

_START_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.02


def redis_is_installed() -> bool:
    """Whether there is a `redis-server` to start."""
    return shutil.which("redis-server") is not None


@contextmanager
def redis_server(directory: Path) -> Iterator[Server]:
    """A server that syncs its append-only file with every command, on the same disk as the product's data."""
    data = Path(tempfile.mkdtemp(prefix="redis-", dir=directory))
    port = _free_port()
    options = {"port": port, "bind": "127.0.0.1", "dir": data, "save": "", "appendonly": "yes", "appendfsync": "always"}
    command = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    process = subprocess.Popen(["redis-server", *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        _wait_until_it_listens(port)
        yield Server(host="127.0.0.1", port=port, token="", pid=process.pid, data=data)
    finally:
        process.terminate()
        process.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def _wait_until_it_listens(port: int) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(_LOOK_SECONDS)
    raise ServerError("redis-server did not start.")
