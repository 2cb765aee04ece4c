"""A stored event as one line that a person can read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from bubble.cli.output import plain
from bubble.protocol.events import SequencedEvent
from bubble.protocol.jsontext import JSONValue, dump_json, member_spans

__all__ = ["event_line"]

_WIDTH: Final = 200
Event = Mapping[str, JSONValue]


def event_line(stored: SequencedEvent) -> str:
    """`seq  time  who  what`, without control characters and at most some two hundred characters of payload."""
    event = stored.to_dict()
    who = event.get("principalId") or event.get("byPrincipalId")
    describe = _DESCRIPTIONS.get(str(event.get("type")), _unknown)
    try:
        said = describe(event)
    except ValueError:  # a number beyond all others is JSON on the wire, and none as Python data
        said = describe(_as_written(event, stored.text))
    return plain(f"{stored.seq:>6}  {stored.created_at[11:23]}  {who}  {said}")


def _as_written(event: Event, text: bytes) -> Event:
    """The event with the text of each member that is no string, as it stands in `text`."""
    written = {name: text[first:end].decode("utf-8") for name, first, end in member_spans(text)}
    return {name: value if isinstance(value, str) else written[name] for name, value in event.items()}


def _short(value: JSONValue) -> str:
    text = value if isinstance(value, str) else dump_json(value).decode("utf-8")
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}… ({len(text)} characters)"


def _run_started(event: Event) -> str:
    return f"starts run {event['runId']}" + (f" ({event['kind']})" if "kind" in event else "")


def _run_finished(event: Event) -> str:
    return f"finishes run {event['runId']}" + (f": {event['outcome']}" if "outcome" in event else "")


def _part(event: Event) -> str:
    part = event["part"]
    if not isinstance(part, dict):
        return _short(part)
    name = part.get("type") or part.get("kind")
    text = next((part[key] for key in ("delta", "inputTextDelta", "errorText") if key in part), None)
    if isinstance(text, str):
        return f"{name} {_short(text)!r}"
    rest = {key: value for key, value in part.items() if key not in ("type", "kind")}
    return f"{name} {_short(rest)}" if rest else str(name)


def _approval(event: Event) -> str:
    decision = "approves" if event["approved"] else "rejects"
    reason = f": {_short(event['reason'])}" if "reason" in event else ""
    return f"{decision} call {event['toolCallId']} of run {event['runId']}{reason}"


def _result(event: Event) -> str:
    return f"gives the result of call {event['toolCallId']}: {_short(event['output'])}"


def _interrupt(event: Event) -> str:
    return f"asks run {event['runId']} to stop"


def _joined(event: Event) -> str:
    same = event["byPrincipalId"] == event["principalId"]
    return "joins" if same else f"is added by {event['byPrincipalId']}"


def _left(event: Event) -> str:
    same = event["byPrincipalId"] == event["principalId"]
    return "leaves" if same else f"is removed by {event['byPrincipalId']}"


def _title(event: Event) -> str:
    return f"calls the thread {_short(event['title'])!r}"


def _unknown(event: Event) -> str:
    return _short(dict(event))


_DESCRIPTIONS: Final[Mapping[str, Callable[[Event], str]]] = {
    "run_started": _run_started,
    "run_finished": _run_finished,
    "message_part": _part,
    "tool_call_approval": _approval,
    "tool_call_result": _result,
    "run_interrupt_requested": _interrupt,
    "participant_joined": _joined,
    "participant_left": _left,
    "thread_title_updated": _title,
}
