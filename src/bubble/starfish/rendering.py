"""Messages as a page shows them: a `text` that is Markdown comes as sanitised `html`.

Everything else in a message stays what it is, JSON for the page to put in as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bubble.assembler import BubbleMessage
from bubble.starfish.markdown import plain_html, render_blocks

__all__ = ["GrowingHtml", "HtmlMessages"]

#: So much of a message is taken for Markdown, in characters; the rest is shown as it was written.
MARKDOWN_MOST: Final = 64 * 1024
#: How many texts that still grow are remembered at most.
_REMEMBERED: Final = 64
_MARKDOWN: Final = ("text", "reasoning")
_ARTIFACT: Final = "data-bubble-artifact"


class HtmlMessages:
    """Turns messages of one thread into what is shown. Of texts that grow it remembers what is settled, so that only their ends cost."""

    def __init__(self) -> None:
        self._growing: dict[tuple[str, int], GrowingHtml] = {}

    def shown(self, message: BubbleMessage) -> dict[str, object]:
        """The message with `html` in place of the `text` of its text and reasoning parts. The message itself is left alone."""
        left = MARKDOWN_MOST
        parts: list[object] = []
        for index, part in enumerate(message["parts"]):
            text = _text_of(part)
            parts.append(_without_html(part) if text is None else self._part(part, text, (message["id"], index), left))
            left = max(0, left - len(text or ""))
        return {**message, "parts": parts}

    def _part(self, part: Mapping[str, object], text: str, key: tuple[str, int], most: int) -> dict[str, object]:
        shown = {name: value for name, value in part.items() if name != "text"}
        shown["html"] = self._text(key, is_open=part.get("state") == "streaming").render(_speakable(text), most=most)
        return shown

    def _text(self, key: tuple[str, int], *, is_open: bool) -> GrowingHtml:
        growing = self._growing.pop(key, None) or GrowingHtml()
        if is_open:
            if len(self._growing) >= _REMEMBERED:
                del self._growing[next(iter(self._growing))]
            self._growing[key] = growing
        return growing


class GrowingHtml:
    """A text that is rendered again and again while it grows."""

    def __init__(self) -> None:
        self._settled = ""
        self._html: list[str] = []

    def render(self, text: str, *, most: int = MARKDOWN_MOST) -> str:
        """The HTML of the text, of which the first `most` characters are Markdown."""
        markdown, plain = text[:most], text[most:]
        if not markdown.startswith(self._settled):
            self._settled, self._html = "", []
        rest = self._settle(markdown)
        return "".join([*self._html, rest, plain_html(plain) if plain else ""])

    def _settle(self, markdown: str) -> str:
        while True:
            rendered = render_blocks(markdown, len(self._settled))
            if rendered.settled == len(self._settled):
                return rendered.rest_html
            self._settled = markdown[: rendered.settled]
            self._html.append(rendered.settled_html)


def _without_html(part: Mapping[str, object]) -> Mapping[str, object]:
    """A data part has whatever members its producer gave it; `html` is for the page to trust, so it is never one of those."""
    return {name: value for name, value in part.items() if name != "html"} if "html" in part else part


def _text_of(part: Mapping[str, object]) -> str | None:
    if part.get("type") == _ARTIFACT:
        return _artifact_text(part.get("data"))
    text = part.get("text") if part.get("type") in _MARKDOWN else None
    return text if isinstance(text, str) else None


def _artifact_text(data: object) -> str | None:
    if not isinstance(data, Mapping) or data.get("mediaType") != "text/markdown":
        return None
    text = data.get("text")
    return text if isinstance(text, str) else None


def _speakable(text: str) -> str:
    """Half an emoji, whose other half is still to come, is no character that HTML could have."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
