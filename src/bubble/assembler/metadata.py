"""Merging the metadata of a message.

Objects are merged key by key, everything else is replaced whole. What is not an object behaves as it does when JavaScript spreads it:
arrays and strings have their places for keys, numbers and flags have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import UnsetType

from bubble.assembler.fields import Part
from bubble.protocol.jsontext import JSONValue

__all__ = ["merge_metadata"]

_SKIPPED: Final = frozenset({"__proto__", "constructor", "prototype"})  # at every level that is merged, not below


def merge_metadata(base: JSONValue | UnsetType, over: JSONValue | UnsetType) -> JSONValue | UnsetType:
    """`base` with `over` laid upon it, as a new value that shares what did not change; `UNSET` is no metadata.

    Raises `TypeError` where `base` is a string, number or flag and `over` has a key, which the original cannot merge either.
    """
    if over is None or isinstance(over, UnsetType):
        return base
    if base is None or isinstance(base, UnsetType):
        return over
    merged = dict(_entries(base))
    todo: list[tuple[Part, JSONValue, JSONValue]] = [(merged, base, over)]
    while todo:  # not by recursion: metadata may nest deeper than Python's stack
        target, below, above = todo.pop()
        for key, value in _entries(above):
            if key in _SKIPPED:
                continue
            old = _value_at(below, key)
            if isinstance(old, dict) and isinstance(value, dict):
                inner = old.copy()
                todo.append((inner, old, value))
                target[key] = inner
            else:
                target[key] = value
    return merged


def _entries(value: JSONValue) -> Iterable[tuple[str, JSONValue]]:
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, str):
        value = _units(value)
    if isinstance(value, list):
        return ((str(place), item) for place, item in enumerate(value))
    return ()


def _units(text: str) -> list[JSONValue]:
    encoded = text.encode("utf-16-le", "surrogatepass")
    return [encoded[at : at + 2].decode("utf-16-le", "surrogatepass") for at in range(0, len(encoded), 2)]


def _value_at(base: JSONValue, key: str) -> JSONValue:
    if isinstance(base, Mapping):
        return base.get(key)
    if isinstance(base, list):
        return base[int(key)] if key.isdecimal() and str(int(key)) == key and int(key) < len(base) else None
    raise TypeError(f"Cannot use 'in' operator to search for '{key}' in {_shown(base)}")


def _shown(value: JSONValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
