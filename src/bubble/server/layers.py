"""What pydantic-settings does not tell: which layer an option came from, and, in one sentence, what is wrong with one."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel, SecretStr, ValidationError

from bubble.server.durations import duration_text, is_duration

__all__ = ["SettingsError", "explain", "find_config", "flatten", "leaves", "refuse_unknown_variables"]

# BUBBLE_ variables that are not the server's: the command line's and the test suite's.
_OTHERS = frozenset({"BUBBLE_CONFIG", "BUBBLE_DEBUG", "BUBBLE_KILLS", "BUBBLE_PROFILE", "BUBBLE_TOKEN", "BUBBLE_URL"})
# Those of connectors, which may run in the same environment: BUBBLE_REEF_… and BUBBLE_<name>_BUBBLE_URL and the like.
_CONNECTORS = re.compile(r"BUBBLE_REEF_\w+|BUBBLE_\w+_(BUBBLE|BACKLOG|STORE)_[A-Z]\w*")
# What Kubernetes puts into every container for a service that is called `bubble`.
_SERVICE_LINKS = re.compile(r"BUBBLE_(SERVICE_(HOST|PORT.*)|PORT_\d+_(TCP|UDP).*)")


class SettingsError(ValueError):
    """An option that does not exist, or a value that it cannot have. The message is for the person who set it."""


def find_config(named: Path | str | None) -> Path | None:
    """The file to read, if any. `SettingsError` if one was named that does not exist."""
    chosen = named or os.environ.get("BUBBLE_CONFIG")
    file = Path(chosen) if chosen else Path("bubble.toml")
    if file.is_file():
        return file
    if chosen:
        raise SettingsError(f"There is no file {file}.")
    return None


def refuse_unknown_variables(model: type[BaseModel], environment: Mapping[str, str]) -> None:
    """`SettingsError` for a `BUBBLE_` variable that names no option: most likely it is misspelt."""
    known = {f"BUBBLE_{name.replace('.', '__').upper()}": name for name in option_names(model)}
    for variable in environment:
        name = variable.upper()
        if not name.startswith("BUBBLE_") or name in known or _is_another_programs(name):
            continue
        if any(name.startswith(f"{group}__") for group in known if _is_open(model, known[group])):
            continue
        raise SettingsError(f"The variable {variable} is no option{_guess(name, known)}")


def _is_another_programs(name: str) -> bool:
    return name in _OTHERS or any(pattern.fullmatch(name) for pattern in (_CONNECTORS, _SERVICE_LINKS))


def _is_open(model: type[BaseModel], name: str) -> bool:
    field = model.model_fields.get(name)
    return field is not None and field.annotation is not None and "dict" in str(field.annotation)


def _guess(name: str, known: Mapping[str, object]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f". Did you mean `{close[0]}`?" if close else "."


def option_names(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Every option's dotted name, groups included."""
    for name, field in model.model_fields.items():
        yield prefix + name
        group = _group(field.annotation)
        if group is not None:
            yield from option_names(group, f"{prefix}{name}.")


def _group(annotation: object) -> type[BaseModel] | None:
    candidates = (annotation, *getattr(annotation, "__args__", ()))
    return next((each for each in candidates if isinstance(each, type) and issubclass(each, BaseModel)), None)


def flatten(values: Mapping[str, object], prefix: str = "") -> Iterator[str]:
    """The dotted names of what a layer gives."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield prefix + name
            yield from flatten({str(key): each for key, each in value.items()}, f"{prefix}{name}.")
        elif isinstance(value, BaseModel):
            yield from (f"{prefix}{name}.{each}" for each in value.model_fields_set)
        else:
            yield prefix + name


def leaves(model: BaseModel, prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Name, value as text and description of every option that is no group."""
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            text = duration_text(value) if is_duration(field) else _shown(value)
            yield prefix + name, text, field.description or ""


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, SecretStr):
        return "********"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return "; ".join(f"{name}: {', '.join(each)}" for name, each in value.items()) or "-"
    return str(value)


def explain(error: ValidationError, model: type[BaseModel], given: Mapping[str, str]) -> str:
    """One sentence about the first thing that is wrong, and who said so."""
    first = error.errors(include_input=False, include_url=False)[0]
    name = ".".join(str(part) for part in first["loc"])
    source = given.get(name)
    where = f" (from {source})" if source else ""
    if first["type"] == "extra_forbidden":
        return f"`{name}`{where} is no option{_guess(name, dict.fromkeys(option_names(model)))}"
    message = first["msg"].removeprefix("Value error, ").rstrip(".")
    return f"`{name}`{where}: {message}." if name else f"{message}."
