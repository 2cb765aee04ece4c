"""One part of a message, as something to print. A table by the part's type; what it does not know is named and shortened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from bubble.assembler.messages import AGENT_EVENT, EXTENSION, MessagePart
from bubble.cli.conversation.layout import Marked
from bubble.cli.conversation.tools import card, is_tool
from bubble.cli.conversation.words import excerpt, json_words, lines, link, size_of_data_url, words
from bubble.extensions.artifacts import ARTIFACT
from bubble.protocol.jsontext import JSONValue

__all__ = ["DATA", "PROSE", "prose", "shown"]

#: What grows by text, and what an application may say by its own names.
PROSE: Final = frozenset({"text", "reasoning"})
DATA: Final = "data-"

_ARTIFACT_EXCERPT: Final = 4_000


def shown(part: MessagePart, *, is_over: bool = False) -> RenderableType | None:
    """The part; None if there is nothing to see in it. `is_over`: its run has ended."""
    kind = str(part["type"])
    if kind in PROSE:
        return prose(part, str(part.get("text", "")).strip("\n"))
    if is_tool(part):
        return card(part, is_over=is_over)
    return _KINDS.get(kind, _unknown)(part)


def prose(part: MessagePart, text: str, *, cursor: str = "") -> RenderableType | None:
    """So much of the text of a part, with a `cursor` behind it; None if there is nothing to see in it."""
    if not text.strip() and not cursor:
        return None
    words_of_it = lines(text) + cursor
    if part["type"] == "reasoning":
        return Marked("┆ ", Text(words_of_it, style="dim italic"), rest="┆ ", style="dim")
    return Text(words_of_it)


def _file(part: MessagePart) -> RenderableType:
    url = str(part.get("url", ""))
    size = size_of_data_url(url)
    name = words(part.get("filename"))
    media_type = words(part.get("mediaType"))
    about = ", ".join(each for each in (media_type, size) if each)
    where = "" if size is not None else f"  {link(url)}"
    return _thing("file", name, f"({about}){where}" if about else where.strip())


def _source_url(part: MessagePart) -> RenderableType:
    return _thing("source", words(part.get("title")), link(part.get("url")))


def _source_document(part: MessagePart) -> RenderableType:
    name = words(part.get("filename"))
    about = ", ".join(each for each in (name, words(part.get("mediaType"))) if each)
    return _thing("source", words(part.get("title")), f"({about})" if about else "")


def _artifact(part: MessagePart) -> RenderableType:
    data = part.get("data")
    about = data if isinstance(data, dict) else {}
    name = words(about.get("name")) or words(about.get("artifactId"))
    if about.get("deleted") is True:
        return _thing("artifact", name, "deleted")
    head = _thing("artifact", name, f"({words(about.get('mediaType'))})" if about.get("mediaType") else "")
    content = _content(about)
    return head if content is None else Group(head, Marked("│ ", Text(content), rest="│ ", style="dim"))


def _content(about: Mapping[str, JSONValue]) -> str | None:
    text = about.get("text")
    if isinstance(text, str):
        return lines(excerpt(text, most=_ARTIFACT_EXCERPT).rstrip("\n"))
    if "data" in about:
        return json_words(about["data"])
    return link(about.get("url")) or None


def _agent_event(part: MessagePart) -> RenderableType | None:
    data = part.get("data")
    about = data if isinstance(data, dict) else {}
    if about.get("name") == "empty":
        return None
    return _quiet_thing(words(about.get("name")), about.get("data"))


def _extension(part: MessagePart) -> RenderableType:
    data = part.get("data")
    kind = data.get("kind") if isinstance(data, dict) else None
    return _quiet_thing(words(kind), data)


def _nothing(_: MessagePart) -> None:
    return None


def _unknown(part: MessagePart) -> RenderableType:
    return _quiet_thing(words(part["type"]).removeprefix(DATA), part.get("data"))


def _thing(kind: str, name: str, about: str) -> Text:
    text = Text.assemble("▫ ", (kind, "dim"), f" {name}" if name else "")
    return text.append(f"  {about}", style="dim") if about else text


def _quiet_thing(name: str, data: JSONValue) -> Text:
    more = "" if data is None else f"  {json_words(data)}"
    return Text(f"▫ {name}{more}", style="dim")


_KINDS: Final[Mapping[str, Callable[[MessagePart], RenderableType | None]]] = {
    "file": _file,
    "source-url": _source_url,
    "source-document": _source_document,
    "step-start": _nothing,
    ARTIFACT: _artifact,
    AGENT_EVENT: _agent_event,
    EXTENSION: _extension,
}
