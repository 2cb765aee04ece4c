"""The events of a watch in words: what the bot says as it grows, and a line for everything else."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from bubble.cli.output import plain, say, stdout_console

__all__ = ["WatchLines"]

_WIDTH: Final = 160
Data = Mapping[str, Any]


class WatchLines:
    """Tells events. A text that grows goes on in its line, as long as nothing else is told; else it is told again."""

    def __init__(self, bot_id: str) -> None:
        self._bot_id = bot_id
        self._texts: dict[str, str] = {}
        self._open: str | None = None  # the row whose line is not ended
        self._doing: list[str] | None = None

    def tell(self, kind: str, data: Data) -> None:
        """One event."""
        if kind == "message":
            self._tell_text(data["entryId"], data["text"])
        elif kind == "agent.state":
            self._tell_state([str(row.get("runId", "")) for row in data["live"]])
        elif kind == "reset":
            self._texts.clear()
            self._line("— the session was cleared —")
        elif (describe := _LINES.get(kind)) is not None:
            self._line(describe(data))

    def _tell_text(self, entry_id: str, text: str) -> None:
        before = self._texts.get(entry_id, "")
        self._texts[entry_id] = text
        if text == before:
            return
        if self._open != entry_id or not text.startswith(before):
            self._end()
            self._write(f"{self._bot_id}: {text}")
        else:
            self._write(text[len(before) :])
        self._open = entry_id

    def _tell_state(self, doing: list[str]) -> None:
        if doing != (self._doing or []):
            self._line(f"({self._bot_id} is working on {', '.join(doing)})" if doing else f"({self._bot_id} is idle)")
        self._doing = doing

    def _line(self, line: str) -> None:
        self._end()
        say(line)

    def _end(self) -> None:
        if self._open is not None:
            self._write("\n")
            self._open = None

    def _write(self, text: str) -> None:
        console = stdout_console()
        console.print("\n".join(plain(line) for line in text.split("\n")), end="")
        console.file.flush()


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"


def _entry(data: Data) -> str:
    entry = data["entry"] if isinstance(data["entry"], dict) else {}
    if data["entryKind"] == "message":
        return f"{entry.get('principalId', '?')}: {_short(entry.get('content', ''))}"
    part = entry.get("part", data["entry"])
    return f"[{data['entryKind']}] {_short(_without_type(part))}"


def _without_type(part: object) -> str:
    if not isinstance(part, dict):
        return _short(part)
    kind = str(part.get("type", "")).removeprefix("data-bubble-")
    rest = {name: value for name, value in part.items() if name not in ("type", "id")}
    return f"{kind} {_short(rest.get('data', rest))}"


_LINES: Final[Mapping[str, Callable[[Data], str]]] = {
    "entry": _entry,
    "entry.unavailable": lambda data: f"[{data['entryKind']}] (its body is not available)",
    "message.deleted": lambda data: f"— {data['entryId']} was deleted —",
    "resync-required": lambda _: "— the cursor is of no use any more: begin anew, without --resume —",
    "turn.failed": lambda data: f"! {data['turnId']} failed ({data['code']}): {data['summary']}",
    "bot.state.changed": lambda data: f"(changed: {', '.join(map(str, data['families']))})",
    "bot.updated": lambda data: f"(bot {data['kind']}: {_short(data['bot'])})",
    "computer.actions": lambda data: f"[computer] {_short(data['actions'])}",
    "box.state": lambda data: f"[box] {_short(data['state'])}",
    "page.title.changed": lambda data: f"— the thread is called {_short(data['title'])!r} now —",
    "stream.closed": lambda _: "— the watch has ended —",
}
