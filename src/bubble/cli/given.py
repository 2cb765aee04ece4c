"""Text that somebody gives to a command, as words or on standard input."""

from __future__ import annotations

import sys

from bubble.cli.failures import UsageProblem
from bubble.cli.output import note

__all__ = ["checked_text", "read_text"]


def checked_text(text: str) -> str:
    """`text`; `UsageProblem` where it has bytes that are no text, which Python carries along as halves of characters."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise _no_text() from None
    return text


def read_text(*, asks: str) -> str:
    """All of standard input, without its last line ends. Somebody at a terminal is told to type what `asks` says.

    Fails as `checked_text` does.
    """
    if sys.stdin.isatty():
        note(f"Type {asks}, then Ctrl-D.")
    try:
        return checked_text(sys.stdin.read().rstrip("\n"))
    except UnicodeDecodeError:
        raise _no_text() from None


def _no_text() -> UsageProblem:
    return UsageProblem("What was given holds something that is no text.")
