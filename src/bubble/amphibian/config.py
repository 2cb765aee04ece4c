"""A connector's configuration: a TOML file, then variables, then one sentence about the first thing that is wrong.

The key `maxReplay` of the table `backlog` is overridden, for the connector `reef`, by the variable `BUBBLE_REEF_BACKLOG_MAX_REPLAY`. A list
is given there with commas. A variable that begins like that and names no key is an error, too: it is most likely misspelt.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Final, TypeVar, get_args, get_origin

from pydantic import SecretStr, ValidationError
from pydantic.alias_generators import to_snake
from pydantic.fields import FieldInfo

from bubble.amphibian.options import ConnectorConfig, Section

__all__ = ["ConfigError", "read_config", "variable_prefix"]

C = TypeVar("C", bound=ConnectorConfig)

# As an editor may write it: with a mark at its beginning.
_UTF8: Final = "utf-8-sig"
_TOO_DEEP: Final = "nests too deeply to be a configuration."
_LINE = re.compile(r"at line (\d+)")
_LONG_NUMBER = re.compile(r"^\s*([\w.\-]+)\s*=[^#\n]*[\d_]{4000}", re.ASCII | re.MULTILINE)
# `key = …` and `[table]`
_ON_A_LINE = re.compile(r"\s*(?:\[+\s*([\w.\-]+)\s*\]+|([\w.\-]+)\s*=)", re.ASCII)
# What pydantic calls a key that is none.
_UNKNOWN: Final = "extra_forbidden"
_YES_AND_NO: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


class ConfigError(ValueError):
    """A configuration that cannot be used. The message is one sentence that names the key."""

    exit_code: Final = 2


@dataclass(frozen=True, slots=True)
class _Key:
    """One key: the section's and its own name, and what may be there."""

    section: str
    name: str
    field: FieldInfo

    @property
    def dotted(self) -> str:
        return f"{self.section}.{self.name}"

    @property
    def is_secret(self) -> bool:
        return SecretStr in _kinds(self.field.annotation)


def variable_prefix(name: str) -> str:
    """How the variables of the connector `name` begin."""
    return f"BUBBLE_{to_snake(name).replace('-', '_').upper()}_"


def read_config(model: type[C], *, name: str, file: Path | None, environ: Mapping[str, str]) -> C:
    """The configuration of the connector `name`. Without a file there are the variables alone. Raises `ConfigError`."""
    keys = list(_keys_of(model))
    values = {} if file is None else _read(file)
    for key in keys:
        if key.is_secret:
            _put_secret_in(values, key, beside=Path() if file is None else file.parent)
    variables = {_variable(name, key): key for key in keys}
    _refuse_unknown(variables, environ, variable_prefix(name))
    given = {key.dotted: variable for variable, key in variables.items() if variable in environ}
    for variable, key in variables.items():
        if variable in environ:
            _section_of(values, key.section)[key.name] = _from_text(key, environ[variable], variable=variable)
    for key in keys:  # so that what is missing is named by its key, not by its section
        values.setdefault(key.section, {})
    try:
        return model.model_validate_json(
            json.dumps(values, default=_no_text), strict=True, by_alias=True, by_name=False
        )
    except ValidationError as error:
        raise ConfigError(_explained(error, keys, name=name, file=file, given=given)) from None
    except RecursionError:
        raise ConfigError(f"{file} {_TOO_DEEP}") from None


def _keys_of(model: type[ConnectorConfig]) -> Iterator[_Key]:
    for name, section in model.model_fields.items():
        kind = section.annotation
        if isinstance(kind, type) and issubclass(kind, Section):
            for field_name, field in kind.model_fields.items():
                yield _Key(section.alias or name, field.alias or field_name, field)


def _variable(name: str, key: _Key) -> str:
    return f"{variable_prefix(name)}{_snake(key.section)}_{_snake(key.name)}".upper()


def _snake(name: str) -> str:
    # Pydantic's own would make a_2_a of a2a.
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)


def _read(file: Path) -> dict[str, object]:
    try:
        text = file.read_text(_UTF8)
    except FileNotFoundError:
        raise ConfigError(f"There is no file {file}.") from None
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror or error}.") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} is not TOML: {error}.") from None
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ConfigError(f"{file} {_TOO_DEEP}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file} is not TOML{_key_at(text, error)}: {error}.") from None
    except ValueError:  # Python's own
        found = _LONG_NUMBER.search(text)
        where = f" at `{found[1]}`" if found else ""
        raise ConfigError(f"{file} has a number of thousands of digits{where}.") from None


def _key_at(text: str, error: tomllib.TOMLDecodeError) -> str:
    """Which key stands on the line that is complained of, in words to insert. What it is set to may be a secret."""
    line = _LINE.search(str(error))
    found = _ON_A_LINE.match(text.split("\n")[int(line[1]) - 1]) if line else None
    return f" at `{found[1] or found[2]}`" if found else ""


def _section_of(values: dict[str, object], name: str) -> dict[str, object]:
    section = values.setdefault(name, {})
    return section if isinstance(section, dict) else {}


def _put_secret_in(values: dict[str, object], key: _Key, *, beside: Path) -> None:
    section = _section_of(values, key.section)
    given = section.get(key.name)
    if not isinstance(given, dict):
        return
    place = given.get("file")
    if set(given) != {"file"} or not isinstance(place, str) or not place:
        raise ConfigError(f'`{key.dotted}` must be a text or {{file = "..."}}.')
    if not place.isprintable():
        raise ConfigError(f"`{key.dotted}` names a file whose path cannot be one.")
    try:
        section[key.name] = (beside / Path(place).expanduser()).read_text(_UTF8).strip()
    except UnicodeDecodeError:
        raise ConfigError(f"`{key.dotted}`: {place} holds something that is no text.") from None
    except (OSError, RuntimeError) as error:  # the latter where nobody's home is meant
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error).rstrip(".")
        raise ConfigError(f"`{key.dotted}`: {place} cannot be read: {reason}.") from None


# --- variables ------------------------------------------------------------------------------------------------------------------


def _refuse_unknown(known: Mapping[str, _Key], environ: Mapping[str, str], prefix: str) -> None:
    for variable in environ:
        if variable.startswith(prefix) and variable not in known:
            raise ConfigError(f"The variable {variable} names no key{_guess(variable, known)}")


def _from_text(key: _Key, text: str, *, variable: str) -> object:
    """The value that a variable stands for; what is no such value is left for the check to refuse. Bytes that are no text are refused
    here.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ConfigError(f"`{key.dotted}` (from {variable}) is no UTF-8 text.") from None
    kinds = _kinds(key.field.annotation)
    if tuple in kinds or list in kinds:
        return [each.strip() for each in text.split(",") if each.strip()]
    if bool in kinds:
        return _YES_AND_NO.get(text.strip().lower(), text)
    for kind in (int, float):
        if kind in kinds:
            try:
                return kind(text)
            except ValueError:
                return text
    return text


def _kinds(annotation: object) -> set[object]:
    """What an annotation is made of, without None."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (tuple, list):
        return {origin}
    if arguments:
        return set().union(*map(_kinds, arguments)) - {NoneType}
    return {annotation}


def _no_text(moment: object) -> object:
    # TOML's dates: nothing is to be one, so what stands for it fits nowhere.
    return {"moment": str(moment)}


# --- what is wrong --------------------------------------------------------------------------------------------------------------


def _explained(
    error: ValidationError, keys: list[_Key], *, name: str, file: Path | None, given: Mapping[str, str]
) -> str:
    found = error.errors(include_input=False, include_url=False)
    # What is missing may be there by a wrong name, which is then what to tell.
    first = next((each for each in found if each["type"] == _UNKNOWN), found[0])
    if not first["loc"]:  # the text as a whole
        return f"{file} {_TOO_DEEP}"
    dotted = ".".join(str(each) for each in first["loc"][:2])
    if first["type"] == "missing":
        key = next(each for each in keys if each.dotted == dotted)
        where = "" if file is None else f"in {file}, or "
        return f"`{dotted}` is missing: set it {where}by the variable {_variable(name, key)}."
    source = given.get(dotted) or file
    origin = f" (from {source})" if source else ""
    if first["type"] == _UNKNOWN:
        return f"`{dotted}`{origin} is no key{_guess(dotted, [name for each in keys for name in (each.dotted, each.section)])}"
    message = first["msg"].removeprefix("Value error, ").rstrip(".")
    return f"`{dotted}`{origin}: {message}."


def _guess(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f": did you mean `{close[0]}`?" if close else "."
