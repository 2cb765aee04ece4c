"""What goes wrong, as one sentence with the remedy and an exit code: 0 done, 1 failed, 2 not given the way it must be."""

from __future__ import annotations

import os
import re
import sys
import traceback
from typing import TYPE_CHECKING, Final

import typer

if TYPE_CHECKING:
    from bubble.protocol.errors import BubbleError

__all__ = ["CommandError", "UsageProblem", "exit_code_of", "explain", "sentence_of"]

FAILED: Final = 1
USAGE: Final = 2

_REMEDIES: Final = {
    "unauthenticated": "Log in with `bubble login URL`, or set BUBBLE_TOKEN.",
    "rate_limited": "Wait a moment and try again.",
    "unavailable": "See whether the server runs with `bubble doctor`.",
    "internal": "The server's log has the details.",
}

#: How the client ends the message about an answer that is not Bubble's.
_FOREIGN: Final = "not as a Bubble server does."
_LACKED: Final = re.compile(r'lacks "[\w.]+"(?P<thread> on thread )?')


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
        return f"{error.message} {_remedy_of(error)}".rstrip()
    if isinstance(error, typer.TyperException):
        return _sentence_of_usage(error)
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return "Interrupted."
    if isinstance(error, OSError):
        return _sentence_of_os_error(error)
    return f"This should not have happened ({type(error).__name__}: {error}); BUBBLE_DEBUG=1 shows where."


def _remedy_of(error: BubbleError) -> str:
    if error.message.endswith(_FOREIGN) and error.code != "unavailable":  # that one is a proxy's word
        return "What answers there is no Bubble server: check the address."
    if error.code != "forbidden":
        return _REMEDIES.get(error.code, "")
    lacked = _LACKED.search(error.message)
    if lacked is None:  # not a matter of rights that somebody could give
        return ""
    if lacked["thread"]:
        return "Ask an owner of the thread or an administrator for the role that has it."
    return "This needs an administrator."


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
