"""Reads A2A objects of either generation into events.

One reader for all dialects, because agents mix the generations' spellings (a 1.0 artifact holds `parts` where a 0.3 message over HTTP holds
`content`; a state is `canceled`, `TASK_STATE_CANCELED` or `TASK_STATE_CANCELLED`). The tables name every spelling; what is in none of them
is left out rather than taken for a mistake, so that an agent of tomorrow can still be heard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal, TypeAlias

from bubble.protocol.jsontext import JSONValue
from bubble.reef.discretion import quoted
from bubble.reef.events import AgentEvent, Carrier, Content, DataPart, FilePart, Part, TaskState, TextPart
from bubble.reef.failures import Broken, Refused

__all__ = ["KINDS", "WRAPPERS", "Members", "as_members", "by_kind", "by_wrapper", "error_of", "read_event"]

Members: TypeAlias = Mapping[str, JSONValue]

#: 0.3: the `kind` of an event → its carrier.
KINDS: Final[Mapping[str, Carrier]] = {
    "task": "task",
    "status-update": "status",
    "artifact-update": "artifact",
    "message": "message",
}
#: The one-of wrapper of an event → its carrier.
WRAPPERS: Final[Mapping[str, Carrier]] = {
    "task": "task",
    "statusUpdate": "status",
    "artifactUpdate": "artifact",
    "message": "message",
    "msg": "message",
}
_STATES: Final[Mapping[str, TaskState]] = {
    "submitted": "submitted",
    "working": "working",
    "input-required": "input-required",
    "auth-required": "auth-required",
    "completed": "completed",
    "failed": "failed",
    "canceled": "canceled",
    "cancelled": "canceled",
    "rejected": "rejected",
}
_NOT_FOUND: Final = 404
#: The codes (JSON-RPC) and reasons (HTTP+JSON) of TaskNotFoundError and UnsupportedOperationError, which is that of a task that is over.
_ABOUT_THE_TASK: Final[frozenset[JSONValue]] = frozenset({-32001, -32004, "TASK_NOT_FOUND", "UNSUPPORTED_OPERATION"})
#: Invalid request, invalid params: what servers of 0.3 say of a task that is over.
_ABOUT_THE_MESSAGE: Final = frozenset({-32600, -32602})
_STATE_PREFIX: Final = "TASK_STATE_"
_USER: Final = frozenset({"user", "ROLE_USER"})


def as_members(payload: JSONValue) -> Members:
    """The object that an answer has to be. Raises `Broken`."""
    if isinstance(payload, dict):
        return payload
    raise Broken("The agent sent something that is no A2A event.")


def by_kind(members: Members) -> AgentEvent | None:
    """An event of 0.3 over JSON-RPC."""
    kind = members.get("kind")
    carrier = KINDS.get(kind) if isinstance(kind, str) else None
    return None if carrier is None else read_event(carrier, members)


def by_wrapper(members: Members) -> AgentEvent | None:
    """An event whose one member says what it is; a bare task or message, as the answer to a request, counts as well."""
    for name, carrier in WRAPPERS.items():
        if isinstance(inner := members.get(name), dict):
            return read_event(carrier, inner)
    return read_event("task", members) if "status" in members and "id" in members else None


def error_of(error: JSONValue, *, status: int | None = None) -> Refused:
    """The error object of either binding, with the sentence in it that says most."""
    if not isinstance(error, dict):
        return Refused("The agent answered with an error.", status=status, about=_about_by_status(status))
    code = error.get("code")
    message = error.get("message")
    words = quoted(message) if isinstance(message, str) and message.strip() else "it did not say why"
    if detail := _detail(error.get("data")):
        words = f"{words} ({detail})"
    return Refused(
        f"The agent answered with an error: {words}",
        status=status,
        rpc_code=code if isinstance(code, int) and code < 0 else None,
        about=_about(error, status),
    )


def _about(error: Members, status: int | None) -> Literal["task", "message"] | None:
    code, message = error.get("code"), error.get("message")
    said = [code, *(detail.get("reason") for detail in _objects(error.get("details")))]
    if any(isinstance(name, int | str) and name in _ABOUT_THE_TASK for name in said):
        return "task"
    if code == _NOT_FOUND and isinstance(message, str) and "task" in message.lower():  # and no reason beside it: 0.3
        return "task"
    if isinstance(code, int) and code < 0:
        return "message" if code in _ABOUT_THE_MESSAGE else None
    return _about_by_status(status)


def _about_by_status(status: int | None) -> Literal["message"] | None:
    # 401, 403, 408 and 429 refuse whoever says it or whenever it is said, and 404 without more the place where it is said.
    return "message" if status is None or (400 <= status < 500 and status not in {401, 403, 404, 408, 429}) else None


def _detail(data: JSONValue) -> str:
    # a2a-go says "internal error" and gives the reason beside it.
    inner = data.get("error") if isinstance(data, dict) else None
    return quoted(inner) if isinstance(inner, str) else ""


def read_event(carrier: Carrier, members: Members) -> AgentEvent:
    """The event that `members` are, carried as `carrier`."""
    state = _state(members) if carrier in {"task", "status"} else None
    task_id = _text(members.get("id" if carrier == "task" else "taskId"))
    contents = tuple(content for content in _CONTENTS[carrier](members) if content.parts)
    return AgentEvent(carrier=carrier, contents=contents, state=state, task_id=task_id)


def _state(members: Members) -> TaskState:
    name = _member(members, "status").get("state")
    if not isinstance(name, str):
        return "unknown"
    plain = name.removeprefix(_STATE_PREFIX).lower().replace("_", "-")
    return _STATES.get(plain, "unknown")


# --- contents -------------------------------------------------------------------------------------------------------------------


def _of_task(members: Members) -> Iterator[Content]:
    # What was said first, then what was made, then what is said now.
    yield from _since_the_question(members.get("history"))
    for artifact in _objects(members.get("artifacts")):
        yield _artifact(artifact, carrier="task", around=members)
    yield from _of_status(members, carrier="task")


def _since_the_question(history: JSONValue) -> Iterator[Content]:
    messages = _objects(history)
    asked = max((at for at, message in enumerate(messages) if _is_the_users(message)), default=-1)
    for message in messages[asked + 1 :]:
        yield from _message(message, carrier="task")


def _is_the_users(message: Members) -> bool:
    role = message.get("role")
    return isinstance(role, str) and role in _USER


def _of_status(members: Members, carrier: Carrier = "status") -> Iterator[Content]:
    message = _member(members, "status").get("message")
    if isinstance(message, dict):
        yield from _message(message, carrier=carrier, around=members, is_status=True)


def _of_artifact(members: Members) -> Iterator[Content]:
    artifact = _member(members, "artifact")
    yield _artifact(
        artifact,
        carrier="artifact",
        around=members,
        append=members.get("append") is True,
        last_chunk=members.get("lastChunk") is True,
    )


def _of_message(members: Members) -> Iterator[Content]:
    return _message(members, carrier="message")


_CONTENTS: Final[Mapping[Carrier, Callable[[Members], Iterator[Content]]]] = {
    "task": _of_task,
    "status": _of_status,
    "artifact": _of_artifact,
    "message": _of_message,
}


def _message(
    message: Members, *, carrier: Carrier, around: Members | None = None, is_status: bool = False
) -> Iterator[Content]:
    if not _is_the_users(message):  # some servers echo the question
        parts = _parts(message, around or {})
        yield Content(carrier=carrier, id=_text(message.get("messageId")), parts=parts, is_status=is_status)


def _artifact(
    artifact: Members, *, carrier: Carrier, around: Members, append: bool = False, last_chunk: bool = False
) -> Content:
    return Content(
        carrier=carrier,
        id=_text(artifact.get("artifactId")),
        parts=_parts(artifact, around),
        append=append,
        last_chunk=last_chunk,
    )


# --- parts ----------------------------------------------------------------------------------------------------------------------


def _parts(holder: Members, around: Members) -> tuple[Part, ...]:
    outer = {**_member(around, "metadata"), **_member(holder, "metadata")}
    parts = _objects(holder.get("parts")) or _objects(holder.get("content"))
    return tuple(part for each in parts if (part := _part(each, {**outer, **_member(each, "metadata")})) is not None)


def _part(part: Members, marks: Members) -> Part | None:
    if isinstance(text := part.get("text"), str):
        return TextPart(text=text, thought=marks.get("adk_thought") is True, partial=_partial(marks))
    if isinstance(file := part.get("file"), dict):
        return _file(file)
    if "raw" in part or "url" in part:
        return _file(part)
    if "data" in part:
        kind = _member(part, "metadata").get("adk_type")
        return DataPart(
            data=part["data"],
            kind=kind if isinstance(kind, str) else None,
            long_running=_member(part, "metadata").get("adk_is_long_running") is True,
        )
    return None


def _partial(marks: Members) -> bool | None:
    partial = marks.get("adk_partial")
    return partial if isinstance(partial, bool) else None


def _file(file: Members) -> FilePart | None:
    content = _first(file, "bytes", "fileWithBytes", "raw")
    url = _first(file, "uri", "fileWithUri", "url")
    if content is None and url is None:
        return None
    return FilePart(
        base64=content,
        url=None if content is not None else url,
        media_type=_first(file, "mimeType", "mediaType") or None,
        filename=_first(file, "name", "filename") or None,
    )


def _first(members: Members, *names: str) -> str | None:
    return next((value for name in names if isinstance(value := members.get(name), str)), None)


def _member(members: Members, name: str) -> Members:
    value = members.get(name)
    return value if isinstance(value, dict) else {}


def _objects(value: JSONValue) -> list[Members]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _text(value: JSONValue) -> str | None:
    return value if isinstance(value, str) and value else None
