"""JSON text that may be cut off, as the AI SDK's `parsePartialJson` reads it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Literal, NoReturn, TypeAlias

from msgspec import UNSET, UnsetType

from bubble.assembler.json_guard import is_guarded
from bubble.assembler.json_numbers import number_value
from bubble.assembler.json_repair import repair_json
from bubble.assembler.json_scanner import JSONScanner
from bubble.assembler.text import joined
from bubble.protocol.jsontext import MAX_DEPTH, JSONValue

__all__ = ["ParseState", "PartialJson", "parse_partial_json"]

ParseState: TypeAlias = Literal["undefined-input", "successful-parse", "repaired-parse", "failed-parse"]

_LONE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class PartialJson:
    """A value and how it was found. There is one where `has_value`; otherwise `value` is None, as it also is for JSON's `null`."""

    value: JSONValue
    state: ParseState

    @property
    def has_value(self) -> bool:
        """Whether the text, as it stands or repaired, is JSON."""
        return self.state in {"successful-parse", "repaired-parse"}


def parse_partial_json(text: str | None) -> PartialJson:
    """The value of `text`, or of what is left of it when its end is repaired. None is no text.

    Never raises. Text nested deeper than `MAX_DEPTH` (512) fails, and so does what the original refuses to read: an object with a member
    `__proto__`, for instance.
    """
    if text is None:
        return PartialJson(None, "undefined-input")
    text = joined(text)
    if (value := _parse(text)) is not UNSET:
        return PartialJson(value, "successful-parse")
    if (value := _parse(repair_json(text))) is not UNSET:
        return PartialJson(value, "repaired-parse")
    return PartialJson(None, "failed-parse")


def _parse(text: str) -> JSONValue | UnsetType:
    if text.count("[") + text.count("{") > MAX_DEPTH or (not text.isascii() and _LONE.search(text)):
        return _scan(text)  # which knows no recursion, and joins half a character with an escaped other half
    try:
        value: JSONValue = json.loads(text, parse_int=number_value, parse_constant=_refuse)
    except ValueError:
        return UNSET
    may_be_guarded = "proto" in text or "\\u" in text
    return UNSET if may_be_guarded and is_guarded(value) else value


def _scan(text: str) -> JSONValue | UnsetType:
    scanner = JSONScanner()
    scanner.feed(text)
    return scanner.complete_value()


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
