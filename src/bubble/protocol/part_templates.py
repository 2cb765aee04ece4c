"""What surrounds a payload, remembered.

*Theory of operation.* A run streams hundreds of parts, and the texts of their events differ in nothing but the part. Once such a text
has been decoded with all due care, what stands before and behind its part is a *template*: put any other JSON value in the part's place,
and the text is again a well-formed event with the same author, run and version and every member given once, because JSON's grammar does
not look around a value. So for a text that begins and ends like a template only the part itself has to be looked at.

`"part":` cannot occur inside of a JSON string, where quotes are escaped; so its first occurrence is a member's name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Generic, TypeVar

__all__ = ["TextTemplates"]

T = TypeVar("T")

_MOST: Final = 1_024
_MOST_BYTES: Final = 1_024
_SPACE: Final = 0x20


@dataclass(frozen=True, slots=True)
class _Template(Generic[T]):
    after: bytes
    meaning: T


class TextTemplates(Generic[T]):
    """Meanings of texts that hold one JSON value behind the first occurrence of `marker`. Bounded; full, it starts anew."""

    def __init__(self, marker: bytes) -> None:
        self._marker = marker
        self._templates: dict[bytes, _Template[T]] = {}

    def find(self, text: bytes) -> tuple[T, bytes] | None:
        """The meaning of what surrounds the value, and the value's text, which begins with `{` and ends with `}` but is unproven."""
        start = text.find(self._marker) + len(self._marker)
        if text[start : start + 1] == b" ":
            start += 1
        template = self._templates.get(text[:start])
        if template is None:
            return None
        end = len(text) - len(template.after)
        if end <= start or text[start] != 0x7B or text[end - 1] != 0x7D or not text.endswith(template.after):
            return None
        return template.meaning, text[start:end]

    def learn(self, text: bytes, value: bytes, meaning: T) -> None:
        """Keeps what surrounds `value` in a text that was decoded with all due care."""
        start = text.find(self._marker) + len(self._marker)
        if start < len(text) and text[start] == _SPACE:
            start += 1
        before, after = text[:start], text[start + len(value) :]
        if not text.startswith(value, start) or len(before) + len(after) > _MOST_BYTES:
            return
        if len(self._templates) >= _MOST:
            self._templates.clear()
        self._templates[before] = _Template(after, meaning)
