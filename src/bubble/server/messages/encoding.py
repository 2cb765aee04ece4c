"""A message as JSON text, on a wire that knows neither infinities nor lone surrogates."""

from __future__ import annotations

import json
import re
from typing import Final

import msgspec

__all__ = ["message_json"]

_encode: Final = msgspec.json.Encoder().encode
# A string, to be left alone, or what Python calls a number that JSON has no word for.
_STRING_OR_NO_NUMBER: Final = re.compile(r'("(?:[^"\\]|\\.)*+")|-?Infinity|NaN')


def message_json(message: object) -> bytes:
    """Compact JSON on one line. A number that is none in JSON (a producer's `1e400`) becomes null, a lone surrogate stays an escape."""
    try:
        return _encode(message)
    except UnicodeEncodeError:
        text = json.dumps(message, separators=(",", ":"))
        return _STRING_OR_NO_NUMBER.sub(lambda found: found[1] or "null", text).encode("ascii")
