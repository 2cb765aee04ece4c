"""What goes wrong, as one sentence with the remedy and an exit code: 0 done, 1 failed, 2 not given the way it must be."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Final

import typer

__all__ = ["CommandError", "UsageProblem", "exit_code_of", "explain", "sentence_of"]

FAILED: Final = 1
USAGE: Final = 2

_REMEDIES: Final = {
    "unauthenticated": "Log in with `bubble login URL`, or set BUBBLE_TOKEN.",
    "forbidden": "Ask an owner of the thread or an administrator for the role that has it.",
    "rate_limited": "Wait a moment and try again.",
    "unavailable": "See whether the server runs with `bubble doctor`.",
    "internal": "The server's log has the details.",
}


class CommandError(Exception):
    """Something failed; the message is one sentence that says what to do about it."""

    exit_code = FAILED


class UsageProblem(CommandError):
    """The command was not given the way it must be."""

    exit_code = USAGE


def exit_code_of(error: BaseException) -> int:
    """The exit code of a command that ended with this error."""
    error = _first_of(error)
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else FAILED
    code = getattr(error, "exit_code", FAILED)
    return code if code in (FAILED, USAGE) else FAILED


def sentence_of(error: BaseException) -> str:
    """What went wrong and what to do about it."""
    from bubble.protocol.errors import BubbleError

    error = _first_of(error)
    if isinstance(error, CommandError):
        return str(error)
    if isinstance(error, BubbleError):
        return f"{error.message} {_REMEDIES.get(error.code, '')}".rstrip()
    if isinstance(error, typer.TyperException):
        return _sentence_of_usage(error)
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return "Interrupted."
    if isinstance(error, OSError):
        return _sentence_of_os_error(error)
    return f"This should not have happened ({type(error).__name__}: {error}); BUBBLE_DEBUG=1 shows where."


def _first_of(error: BaseException) -> BaseException:
    # Of what failed together in a task group, the first thing is as good a beginning as any.
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _sentence_of_usage(error: typer.TyperException) -> str:
    context: typer.Context | None = getattr(error, "ctx", None)
    message = error.format_message().strip()
    if message[-1:] not in (".", "?", "!"):
        message += "."
    return f"{message} See `{context.command_path} --help`." if context else message


def _sentence_of_os_error(error: OSError) -> str:
    what = error.strerror or str(error) or type(error).__name__
    return f"{error.filename}: {what}." if error.filename else f"{what}."


def explain(error: BaseException) -> None:
    """Writes the sentence to standard error, and nothing for an error that only carries an exit code."""
    if isinstance(error, SystemExit | BrokenPipeError):
        return
    if os.environ.get("BUBBLE_DEBUG"):
        traceback.print_exception(error, file=sys.stderr)
    from bubble.cli.output import say_error

    say_error(sentence_of(error))
