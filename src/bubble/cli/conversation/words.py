"""What others wrote, as words that are safe to print and not without end."""

from __future__ import annotations

import json
import re
from typing import Final

from bubble.cli.output import plain
from bubble.protocol.jsontext import JSONValue
from bubble.server.messages.encoding import message_json

__all__ = ["excerpt", "json_words", "line", "lines", "link", "size_of_data_url", "words"]

_TAB: Final = "    "
_BASE64: Final = re.compile(r"data:[^,]*;base64,", re.IGNORECASE)

#: Of what is no prose (inputs, outputs, data) so many characters are shown.
EXCERPT: Final = 1_000


def lines(text: str) -> str:
    """`text` without anything that a terminal acts upon, but with its lines; a tab becomes spaces."""
    return "\n".join(plain(each.replace("\t", _TAB)) for each in text.replace("\r\n", "\n").split("\n"))


def line(text: str) -> str:
    """`text` in one line, without anything that a terminal acts upon."""
    return plain(text)


def excerpt(text: str, *, most: int = EXCERPT) -> str:
    """The beginning of `text`, saying how long it is where it is longer than `most` characters."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


def json_words(value: JSONValue) -> str:
    """JSON as it is, a string as its text; safe, and not without end."""
    return lines(excerpt(value if isinstance(value, str) else _dumped(value)))


def _dumped(value: JSONValue) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:  # a number beyond all others: shown as in a page of messages, which has no word for it
        return message_json(value).decode("utf-8")
    except RecursionError:
        return "(too deep to be shown)"


def words(value: JSONValue) -> str:
    """A name that somebody gave, in one safe line; empty for what is no string."""
    return line(excerpt(value, most=200)) if isinstance(value, str) else ""


def link(value: JSONValue) -> str:
    """A URL in one safe line, whole if it is one that could be followed; empty for what is no string."""
    return line(excerpt(value, most=2_000)) if isinstance(value, str) else ""


def size_of_data_url(url: str) -> str | None:
    """How much a `data:` URL holds, in words; None for any other URL."""
    if url[:5].lower() != "data:":
        return None
    encoded = _BASE64.match(url)
    size = (len(url.rstrip("=")) - encoded.end()) * 3 // 4 if encoded else len(url) - url.find(",") - 1
    return f"{size:,} bytes" if size < 10_000 else f"{size / 1024:,.0f} KiB"
