"""Agents of others, each a process in an environment of its own that `make peers` makes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["PEERS", "running_peer"]

ROOT = Path(__file__).resolve().parents[3]
PEERS = Path(sys.prefix) / "peers"
_SERVERS = Path(__file__).resolve().parent / "servers"
_SECONDS = 60


@contextmanager
def running_peer(script: str, *, environment: str) -> Iterator[str]:
    """The URL of a server in `servers/`, run by the Python of `environment`, for as long as the block lasts."""
    python = PEERS / environment / "bin" / "python"
    if not (PEERS / environment / ".done").exists():
        pytest.skip(f"missing: {PEERS / environment} (make peers)")
    command = [str(python), "-I", str(_SERVERS / script)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line, f"{script} did not start"
            yield str(json.loads(line)["url"])
        finally:
            process.stdin.close()
            process.wait(timeout=_SECONDS)
