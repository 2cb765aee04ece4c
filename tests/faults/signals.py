"""Signals to child processes of asyncio."""

from __future__ import annotations

import contextlib
import os
import signal
from asyncio.subprocess import Process

__all__ = ["send_signal"]


def send_signal(process: Process, number: int = signal.SIGTERM) -> None:
    """Sends it, unless the process is known to be over. Leaves the exit code to asyncio.

    `Process.send_signal` of Python before 3.14 looks first whether the process has ended, and so may take away the exit code that asyncio
    waits for, which then reports 255.
    """
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)
