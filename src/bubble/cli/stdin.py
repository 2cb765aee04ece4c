"""A process that ends with the one that started it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Annotated, TypeAlias

import typer

__all__ = ["UntilStdinEndsOption", "stop_when_stdin_ends"]

UntilStdinEndsOption: TypeAlias = Annotated[
    bool,
    typer.Option("--until-stdin-ends", help="Stop when standard input ends: with the program that started this one."),
]


def stop_when_stdin_ends() -> None:
    """From now on the end of standard input is a SIGTERM."""
    threading.Thread(target=_stop, name="stdin", daemon=True).start()


def _stop() -> None:
    # Not through `sys.stdin`: a thread that holds its lock when the interpreter ends would abort the process.
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
