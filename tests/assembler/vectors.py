"""The recorded behaviour of the AI SDK, and how to compare with it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["DATA", "canonical", "decoded", "read_vectors"]

DATA = Path(__file__).parents[1] / "data" / "ai-sdk"
_NONFINITE = "$nonfinite"


def read_vectors(name: str) -> Iterator[dict[str, Any]]:
    """The lines of `name`.jsonl.gz."""
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="ascii") as lines:
        for line in lines:
            yield json.loads(line)


def decoded(value: Any) -> Any:  # noqa: ANN401 - what `json.loads` gives
    """A recorded value with the numbers that JSON cannot say."""
    if isinstance(value, list):
        return [decoded(item) for item in value]
    if isinstance(value, dict):
        if value.keys() == {_NONFINITE}:
            return float(str(value[_NONFINITE]).replace("Infinity", "inf"))
        return {name: decoded(item) for name, item in value.items()}
    return value


def canonical(value: object) -> object:
    """What two values have in common that are the same JSON to JavaScript: numbers are doubles, and no flag is a number."""
    if isinstance(value, bool):
        return f"flag {value}"
    if isinstance(value, str):
        return f"text {value}"
    if isinstance(value, (int, float)):
        return float(value) + 0.0
    if isinstance(value, list):
        return [canonical(item) for item in value]
    if isinstance(value, dict):
        return {name: canonical(item) for name, item in value.items()}
    return value
