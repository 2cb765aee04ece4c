"""The rows of a transcript that one message of a thread is.

What somebody says in a message is one row with the message's id: of the watched bot its text, as a text message that was sent; of everybody
else all that they said, as an entry `message`. Everything else in it, tool calls and facts, are entries of their own, by their place among
the parts, which never changes. A message that belongs to no run is a fact and nothing else, so its row has its id.

Where a message goes on although the bot has cleared its session, its rows are of what came after that, as in a window (spec 4, "window()"):
the rest of a text, and whole whatever else is new, is other than before, or was said again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from bubble.assembler import BubbleMessage, MessagePart
from bubble.assembler.equality import equal
from bubble.assembler.messages import AGENT_EVENT, APPROVAL, FACTS
from bubble.assembler.parts import STEP_START, is_tool
from bubble.protocol.jsontext import JSONValue
from bubble.protocol.parts import EMPTY
from bubble.server.messages.encoding import message_json
from bubble.server.watching.controls import CONTROLS

__all__ = ["TEXTS", "Row", "rows_of"]

_SILENT: Final = CONTROLS | {EMPTY}
#: Parts that grow.
TEXTS: Final = frozenset({"text", "reasoning"})


class Row:
    """One row. `seq` is the event that opened its message; `kind` its `entryKind`. Two rows are the same if they show the same."""

    __slots__ = ("_body", "_members", "_shows", "entry_id", "kind", "seq")

    def __init__(self, entry_id: str, kind: str, *, seq: int, shows: JSONValue, members: dict[str, JSONValue]) -> None:
        self.entry_id = entry_id
        self.kind = kind
        self.seq = seq
        self._shows = shows
        self._members = members
        self._body: bytes | None = None

    @property
    def body(self) -> bytes:
        """Its JSON text, made once."""
        if self._body is None:
            self._body = message_json({"kind": self.kind, "id": self.entry_id, **self._members})
        return self._body

    def shows_the_same(self, other: Row) -> bool:
        """Whether nothing about it changed."""
        return self.kind == other.kind and equal(self._shows, other._shows)


def rows_of(message: BubbleMessage, bot_id: str, *, before: Sequence[MessagePart | None] = ()) -> list[Row]:
    """Its rows in their order.

    `before` are the parts that it had when the bot last cleared its session, None for one that was said again. What came after is shown.
    """
    about = message["metadata"]["bubble"]
    is_own = about["principalId"] == bot_id
    parts = list(_parts_after(before, message["parts"]))
    said = [part for _, part in parts if _is_said(part, is_own=is_own)]
    rows: list[Row] = []
    if said:
        rows.append(_sent(message, said) if is_own else _spoken(message, said))
    rows += (
        _beside(message, index, part)
        for index, part in parts
        if not _is_said(part, is_own=is_own) and not _is_silent(part, is_own=is_own)
    )
    return rows


def _parts_after(
    before: Sequence[MessagePart | None], parts: Sequence[MessagePart]
) -> Iterator[tuple[int, MessagePart]]:
    """What came after the parts were as they were `before`, each with its place."""
    for index, part in enumerate(parts):
        there = before[index] if index < len(before) else None
        if there is None or part["type"] not in TEXTS:
            if there is None or not equal(part, there):
                yield index, part
        elif rest := _rest(str(there["text"]), str(part["text"])):
            yield index, {**part, "text": rest}


def _rest(before: str, text: str) -> str:
    if text.startswith(before):
        return text[len(before) :]
    # The second half of a character came later than the first.
    return _units(text)[len(_units(before)) :].decode("utf-16-le", "surrogatepass")


def _units(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")


def _is_said(part: MessagePart, *, is_own: bool) -> bool:
    kind = part["type"]
    if is_own:
        return kind == "text"
    return kind != STEP_START and kind != AGENT_EVENT and kind not in FACTS


def _is_silent(part: MessagePart, *, is_own: bool) -> bool:
    return part["type"] == STEP_START or (is_own and _agent_event_name(part) in _SILENT)


def _agent_event_name(part: MessagePart) -> JSONValue:
    data = part.get("data") if part["type"] == AGENT_EVENT else None
    return data.get("name") if isinstance(data, dict) else None


def _sent(message: BubbleMessage, said: Sequence[MessagePart]) -> Row:
    text = _text(said)
    members: dict[str, JSONValue] = {"message": {"type": "text", "content": text}}
    return _row(message, message["id"], "send-message", shows=text, members=members)


def _spoken(message: BubbleMessage, said: Sequence[MessagePart]) -> Row:
    members: dict[str, JSONValue] = {"role": message["role"], "content": _text(said)}
    others: list[JSONValue] = [dict(part) for part in said if part["type"] != "text"]
    if others:
        members["parts"] = others
    return _row(message, message["id"], "message", shows=[members["content"], others], members=members)


def _beside(message: BubbleMessage, index: int, part: MessagePart) -> Row:
    kind = "tool-call" if is_tool(part) else "approval" if part["type"] == APPROVAL else "event"
    entry_id = f"{message['id']}~part-{index}" if "runId" in message["metadata"]["bubble"] else message["id"]
    shows: JSONValue = dict(part)
    return _row(message, entry_id, kind, shows=shows, members={"part": shows})


def _row(message: BubbleMessage, entry_id: str, kind: str, *, shows: JSONValue, members: dict[str, JSONValue]) -> Row:
    about = message["metadata"]["bubble"]
    whose: dict[str, JSONValue] = {"principalId": about["principalId"], "createdAt": about["createdAt"]}
    if "runId" in about:
        whose["runId"] = about["runId"]
    return Row(entry_id, kind, seq=about["firstSeq"], shows=shows, members={**whose, **members})


def _text(said: Sequence[MessagePart]) -> str:
    return "\n\n".join(_texts(said))


def _texts(said: Sequence[MessagePart]) -> Iterator[str]:
    for part in said:
        text = part.get("text")
        if part["type"] == "text" and isinstance(text, str):
            yield text
