"""Autobahn's cases against the product's own WebSocket stack, both skins."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

kosoku = pytest.importorskip("kosoku")

ROOT = Path(__file__).parents[2]
# About compression, which is not offered.
EXCLUDED = ["12.*", "13.*"]


@pytest.fixture(scope="module")
def echo_port() -> Iterator[int]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.interop.websocket_echo"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        yield int(server.stdout.readline())
        server.terminate()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("skin", ["direct", "asgi"])
def test_no_autobahn_case_fails(echo_port: int, skin: str, tmp_path: Path) -> None:
    """`kosoku` exits with 1 as soon as one case fails."""
    excluded = [argument for case in EXCLUDED for argument in ("-x", case)]
    run = subprocess.run(
        ["kosoku", *excluded, "-p", "4", "-o", str(tmp_path), f"ws://127.0.0.1:{echo_port}/{skin}"],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
    )
    assert run.returncode == 0, run.stdout[-4_000:] + run.stderr[-4_000:]
