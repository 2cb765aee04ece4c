"""What a model sends, as chunks: a long text, a long tool input, a long array, many tools, much reasoning."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from itertools import count, islice
from typing import Final, TypeAlias

__all__ = ["CASES", "Chunks"]

Chunks: TypeAlias = list[Mapping[str, object]]

_PIECE: Final = 6  # characters of a tool input in one delta: a token and a half


def _text(length: int) -> Chunks:
    deltas = ({"type": "text-delta", "id": "t", "delta": f" word {number % 10}"} for number in range(length))
    return [{"type": "text-start", "id": "t"}, *deltas]


def _tool_input(length: int) -> Chunks:
    """A list of edits, each with strings, numbers, flags and an object."""
    edits: list[str] = []
    size = 0
    for number in count():
        if size >= length * _PIECE:
            break
        old, new = f"value = {number}\n", f'value = "{number}"'
        edits.append(json.dumps({"line": number, "old": old, "new": new, "at": {"column": number / 2, "keep": True}}))
        size += len(edits[-1]) + 1
    text = '{"path":"src/example.py","edits":[' + ",".join(edits)
    return _input(text[at : at + _PIECE] for at in range(0, length * _PIECE, _PIECE))


def _array(length: int) -> Chunks:
    return _input(f"{',' if number else '['}{number}" for number in range(length))


def _input(pieces: Iterable[str]) -> Chunks:
    start = {"type": "tool-input-start", "toolCallId": "c", "toolName": "edit"}
    deltas = ({"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": piece} for piece in pieces)
    return [start, *deltas]


def _many_tools(length: int) -> Chunks:
    """Calls that are complete, three chunks each, all in one step."""
    return list(islice((chunk for number in count() for chunk in _call(number)), length))


def _call(number: int) -> Chunks:
    named = {"toolCallId": f"call-{number}", "toolName": "weather"}
    return [
        {"type": "tool-input-start", **named},
        {"type": "tool-input-available", **named, "input": {"city": "Oslo", "day": number}},
        {
            "type": "tool-output-available",
            "toolCallId": named["toolCallId"],
            "output": {"celsius": number, "sunny": True},
        },
    ]


def _reasoning(length: int) -> Chunks:
    """Short blocks, three chunks each."""
    fields = (
        {"type": "reasoning-start"},
        {"type": "reasoning-delta", "delta": "Let me see."},
        {"type": "reasoning-end"},
    )
    return list(islice(({**field, "id": f"r{number}"} for number in count() for field in fields), length))


CASES: Final[Mapping[str, Callable[[int], Chunks]]] = {
    "text": _text,
    "tool input": _tool_input,
    "array": _array,
    "many tools": _many_tools,
    "reasoning": _reasoning,
}
"""By name: chunks of about the length that is asked for."""
