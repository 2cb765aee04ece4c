"""That a command was called in a way that it cannot be, as one sentence that names the option and what it takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, cast

import typer

__all__ = ["sentence_of_misuse"]

_NO_COMMAND: Final = "No such command "
_NOT_ONE_OF: Final = " is not one of "
_NUMBERS: Final[Mapping[str, str]] = {"int": "a whole number", "float": "a number"}
_BOUNDS: Final[Mapping[str, tuple[str, str]]] = {
    "greater_than_equal": ("at least", "ge"),
    "less_than_equal": ("at most", "le"),
}
# More are not listed: `--help` shows them in their groups.
_LISTED: Final = 8


class _Wrong(NamedTuple):
    """What is wrong with a value: of which kind, in the validator's words, with its numbers, and the value itself."""

    kind: str
    message: str
    numbers: Mapping[str, object]
    given: object


def sentence_of_misuse(error: typer.TyperException) -> str:
    """What is wrong, and where the command explains itself."""
    context: typer.Context | None = getattr(error, "ctx", None)
    wrong = _wrong_value(error)
    message = f"{_name_of(error)} {_demand(wrong)}" if wrong else error.format_message().strip()
    message += _commands(message, context)
    if message[-1:] not in (".", "?", "!"):
        message += "."
    return f"{message} See `{context.command_path} --help`." if context else message


def _wrong_value(error: BaseException) -> _Wrong | None:
    # What checks values is loaded with the first one that is checked, so it is known here by what it has.
    errors = getattr(error.__cause__, "errors", None)
    if errors is None or getattr(error, "param", None) is None:
        return None
    first = cast("Mapping[str, object]", errors()[0])
    numbers = cast("Mapping[str, object]", first.get("ctx", {}))
    return _Wrong(str(first["type"]), str(first["msg"]).removeprefix("Value error, "), numbers, first["input"])


def _name_of(error: BaseException) -> str:
    param = getattr(error, "param", None)
    names: list[str] = getattr(param, "opts", [])
    return next((name for name in names if name.startswith("--")), str(getattr(param, "display_name_raw", "A value")))


def _demand(wrong: _Wrong) -> str:
    number = _NUMBERS.get(wrong.kind.partition("_")[0])
    if number is not None:
        return f"must be {number}, not '{wrong.given}'"
    if wrong.kind in _BOUNDS:
        words, bound = _BOUNDS[wrong.kind]
        return f"must be {words} {wrong.numbers[bound]}, not {wrong.given}"
    _, is_choice, choices = wrong.message.partition(_NOT_ONE_OF)
    if is_choice:
        return f"must be one of {choices.rstrip('.')}, not '{wrong.given}'"
    return f"cannot be '{wrong.given}': {wrong.message[:1].lower()}{wrong.message[1:]}"


def _commands(message: str, context: typer.Context | None) -> str:
    """Which commands there are, where one is not that was called and none is much like it."""
    names = list(getattr(getattr(context, "command", None), "commands", ()))
    if not message.startswith(_NO_COMMAND) or message.endswith("?") or not 1 < len(names) <= _LISTED:
        return ""
    return f" There are {', '.join(names[:-1])} and {names[-1]}."
