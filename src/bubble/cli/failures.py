"""What goes wrong, as one sentence with the remedy and an exit code: 0 done, 1 failed, 2 not given the way it must be."""

from __future__ import annotations

import os
import re
import sys
import traceback
from typing import TYPE_CHECKING, Final

import typer

from bubble.cli.misuse import sentence_of_misuse

if TYPE_CHECKING:
    from bubble.protocol.errors import BubbleError

__all__ = ["CommandError", "UsageProblem", "exit_code_of", "explain", "is_foreign", "sentence_of"]

FAILED: Final = 1
USAGE: Final = 2

_REMEDIES: Final = {
    "unauthenticated": "Log in with `bubble login URL`, or set BUBBLE_TOKEN.",
    "rate_limited": "Wait a moment and try again.",
    "unavailable": "See whether the server runs with `bubble doctor`.",
    "internal": "The server's log has the details.",
}

# What the client says of an answer that is not Bubble's, of one that it cannot read, and of a handshake that somebody else answered.
_FOREIGN: Final = re.compile(r"(?P<server>\S+?)(/v1/\S*)? answered \d+, and not as a Bubble server does\.")
_UNREADABLE: Final = "The server's answer cannot be read"
_NO_WEBSOCKET: Final = "instead of opening a WebSocket."
_ROLES: Final = re.compile(r"`\$\.\S*role` must be one of (?P<roles>.+)\.")
_NARROWED: Final = "not with this token, which is narrowed."
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
        return _sentence_of_bubble(error)
    if isinstance(error, typer.TyperException):
        return sentence_of_misuse(error)
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return "Interrupted."
    if isinstance(error, OSError):
        return _sentence_of_os_error(error)
    return f"This should not have happened ({type(error).__name__}: {error}); BUBBLE_DEBUG=1 shows where."


def is_foreign(error: BubbleError) -> bool:
    """Whether something else than a Bubble server answered. That nobody is there may also be the word of a proxy before one."""
    return error.code != "unavailable" and _FOREIGN.fullmatch(error.message) is not None


def _sentence_of_bubble(error: BubbleError) -> str:
    if is_foreign(error):
        server = _FOREIGN.sub(r"\g<server>", error.message)
        return f"{server} does not look like a Bubble server: check the address."
    if roles := _ROLES.fullmatch(error.message):
        return f"There is no such role here; the roles are {roles['roles']}."
    return f"{error.message} {_remedy_of(error)}".rstrip()


def _remedy_of(error: BubbleError) -> str:
    if error.message.startswith(_UNREADABLE):
        return "It is no Bubble server, or one of another version: see `bubble doctor`."
    if error.message.endswith(_NO_WEBSOCKET) and error.code != "unauthenticated":
        return "A proxy in front of the server must let WebSockets through."
    if error.code != "forbidden":
        return _REMEDIES.get(error.code, "")
    if error.message.endswith(_NARROWED):
        return "Use another token, or mint one that is less narrow: `bubble tokens mint`."
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
