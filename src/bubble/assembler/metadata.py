"""Merging the metadata of a message.

Objects are merged key by key, everything else is replaced whole. What is not an object behaves as it does when JavaScript spreads it:
arrays and strings have their places for keys, numbers and flags have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import UNSET, UnsetType

from bubble.assembler.fields import Part
from bubble.protocol.jsontext import JSONValue

__all__ = ["Metadata"]

_SKIPPED: Final = frozenset({"__proto__", "constructor", "prototype"})  # at every level that is merged, not below


class Metadata:
    """The metadata of one message, upon which more is laid again and again, at the cost of what is laid.

    Objects that were made here since somebody looked are changed in place; all others belong to whoever gave or has them, and are copied.
    """

    __slots__ = ("_own", "_value")

    def __init__(self, value: JSONValue | UnsetType = UNSET) -> None:
        self._value = value
        self._own: dict[int, Part] = {}  # by identity

    def look(self) -> JSONValue | UnsetType:
        """What there is now; `UNSET` for no metadata. It stays as it is, and shares what did not change since the last look."""
        self._own.clear()
        return self._value

    def merge(self, over: JSONValue) -> None:
        """Lays `over` upon what is there.

        Raises `TypeError` where that is a string, number or flag and `over` has a key, which the original cannot merge either.
        """
        if over is None:
            return
        if self._value is None or isinstance(self._value, UnsetType):
            self._value = over
            return
        self._value = merged = self._object(self._value, over)
        todo: list[tuple[Part, JSONValue]] = [(merged, over)]
        while todo:  # not by recursion: metadata may nest deeper than Python's stack
            target, above = todo.pop()
            for key, value in _merged_entries(above):
                old = target.get(key)
                if isinstance(old, dict) and isinstance(value, dict):
                    target[key] = inner = self._changeable(old)
                    todo.append((inner, value))
                else:
                    target[key] = value

    def _object(self, base: JSONValue, over: JSONValue) -> Part:
        if isinstance(base, dict):
            return self._changeable(base)
        if not isinstance(base, Mapping | list):
            for key, _ in _merged_entries(over):
                raise TypeError(f"Cannot use 'in' operator to search for '{key}' in {_shown(base)}")
        return self._owned(dict(_entries(base)))

    def _changeable(self, value: Part) -> Part:
        return value if id(value) in self._own else self._owned(value.copy())

    def _owned(self, value: Part) -> Part:
        self._own[id(value)] = value  # which also keeps its identity from being another's
        return value


def _merged_entries(value: JSONValue) -> Iterable[tuple[str, JSONValue]]:
    return ((key, inner) for key, inner in _entries(value) if key not in _SKIPPED)


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


def _shown(value: JSONValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
