"""How each dialect writes a request, and what it reads."""

from __future__ import annotations

from typing import Any

import pytest

from bubble.protocol.jsontext import JSONValue
from bubble.reef.card import Interface
from bubble.reef.dialects import DIALECTS, Dialect, dialect_of
from bubble.reef.events import AgentEvent, DataPart, FilePart, TextPart
from bubble.reef.failures import Broken, Refused
from bubble.reef.messages import OutgoingMessage, function_response

URL = "http://agent/base"
BOTH = list(DIALECTS)
RPC = [key for key in BOTH if key[1] == "JSONRPC"]
REST = [key for key in BOTH if key[1] == "HTTP+JSON"]


def dialect(generation: str, binding: str, tenant: str = "") -> Dialect:
    return dialect_of(Interface(generation=generation, binding=binding, url=URL, tenant=tenant))  # type: ignore[arg-type]


def message(*parts: TextPart | FilePart | DataPart, task: str | None = None) -> OutgoingMessage:
    return OutgoingMessage(parts=parts or (TextPart(text="hi"),), context_id="thread", task_id=task, message_id="m")


def written(spoken: Dialect, outgoing: OutgoingMessage) -> Any:  # noqa: ANN401 - JSON to look into
    body: Any = spoken.stream(outgoing).body
    return (body.get("params") or body)["message"]


@pytest.mark.requirement("RF-54")
@pytest.mark.parametrize(
    ("generation", "stream", "rejoin", "get", "cancel"),
    [
        ("0.3", "message/stream", "tasks/resubscribe", "tasks/get", "tasks/cancel"),
        ("1.0", "SendStreamingMessage", "SubscribeToTask", "GetTask", "CancelTask"),
    ],
)
def test_json_rpc_calls_its_generations_methods(
    generation: str, stream: str, rejoin: str, get: str, cancel: str
) -> None:
    spoken = dialect(generation, "JSONRPC")
    requests = [spoken.stream(message()), spoken.rejoin("t"), spoken.get("t"), spoken.cancel("t")]
    bodies: list[Any] = [request.body for request in requests]
    assert [body["method"] for body in bodies] == [stream, rejoin, get, cancel]
    assert [body["params"] for body in bodies[1:]] == [{"id": "t"}] * 3
    assert {(request.method, request.url) for request in requests} == {("POST", URL)}
    assert {body["jsonrpc"] for body in bodies} == {"2.0"}
    assert len({body["id"] for body in bodies}) == 4


@pytest.mark.requirement("RF-54", "RF-62")
@pytest.mark.parametrize(("generation", "prefix"), [("0.3", "/v1"), ("1.0", "")])
def test_http_goes_to_its_generations_paths(generation: str, prefix: str) -> None:
    spoken = dialect(generation, "HTTP+JSON")
    requests = [spoken.stream(message()), spoken.rejoin("t/1"), spoken.get("t/1"), spoken.cancel("t/1")]
    assert [(request.method, request.url) for request in requests] == [
        ("POST", f"{URL}{prefix}/message:stream"),
        ("GET", f"{URL}{prefix}/tasks/t%2F1:subscribe"),
        ("GET", f"{URL}{prefix}/tasks/t%2F1"),
        ("POST", f"{URL}{prefix}/tasks/t%2F1:cancel"),
    ]


def test_a_query_of_the_url_stays_behind_the_path() -> None:
    for generation, binding in BOTH:
        interface = Interface(generation=generation, binding=binding, url="http://agent/base?key=1", tenant="")
        spoken = dialect_of(interface)
        paths = ["", "", ""] if binding == "JSONRPC" else ["/message:stream", "/tasks/t:subscribe", "/tasks/t:cancel"]
        paths = [f"/v1{path}" if (generation, binding) == ("0.3", "HTTP+JSON") else path for path in paths]
        urls = [request.url for request in (spoken.stream(message()), spoken.rejoin("t"), spoken.cancel("t"))]
        assert urls == [f"http://agent/base{path}?key=1" for path in paths]


@pytest.mark.parametrize("task_id", ["..", ".", "\ud800", "x" * 5_000])
@pytest.mark.parametrize("generation", ["0.3", "1.0"])
def test_a_task_whose_id_can_be_no_part_of_an_address_is_said_to_be_so(generation: str, task_id: str) -> None:
    spoken = dialect(generation, "HTTP+JSON")
    for ask in (spoken.rejoin, spoken.get, spoken.cancel):
        with pytest.raises(Broken, match=r"calls its task .*: it can be no part of an address") as raised:
            ask(task_id)
        assert len(raised.value.message) < 1_000
    for ask in (dialect(generation, "JSONRPC").rejoin, dialect(generation, "JSONRPC").get):
        assert ask(task_id).url == URL


@pytest.mark.requirement("RF-54", "RF-61")
def test_only_the_newer_generation_names_its_version() -> None:
    for generation, binding in BOTH:
        headers = dialect(generation, binding).stream(message()).headers
        assert headers == ({"A2A-Version": "1.0"} if generation == "1.0" else {})


@pytest.mark.requirement("RF-56")
def test_a_tenant_goes_into_the_path_or_the_parameters() -> None:
    assert dialect("1.0", "HTTP+JSON", "a b").get("t").url == f"{URL}/a%20b/tasks/t"
    body: Any = dialect("1.0", "JSONRPC", "a b").get("t").body
    assert body["params"] == {"tenant": "a b", "id": "t"}


@pytest.mark.requirement("RF-54")
@pytest.mark.parametrize(
    ("generation", "binding", "shape"),
    [
        ("0.3", "JSONRPC", {"kind": "message", "role": "user", "parts": [{"kind": "text", "text": "hi"}]}),
        ("0.3", "HTTP+JSON", {"role": "ROLE_USER", "content": [{"text": "hi"}]}),
        ("1.0", "JSONRPC", {"role": "ROLE_USER", "parts": [{"text": "hi"}]}),
        ("1.0", "HTTP+JSON", {"role": "ROLE_USER", "parts": [{"text": "hi"}]}),
    ],
)
def test_a_message_has_its_generations_shape(generation: str, binding: str, shape: dict[str, JSONValue]) -> None:
    ids = {"messageId": "m", "contextId": "thread"}
    assert written(dialect(generation, binding), message()) == {**ids, **shape}
    assert written(dialect(generation, binding), message(task="t")) == {**ids, **shape, "taskId": "t"}


@pytest.mark.requirement("RF-63")
@pytest.mark.parametrize(
    ("generation", "binding", "part"),
    [
        ("0.3", "JSONRPC", {"kind": "data", "data": "D", "metadata": {"adk_type": "function_response"}}),
        ("0.3", "HTTP+JSON", {"data": {"data": "D"}, "metadata": {"adk_type": "function_response"}}),
        ("1.0", "JSONRPC", {"data": "D", "metadata": {"adk_type": "function_response"}}),
        ("1.0", "HTTP+JSON", {"data": "D", "metadata": {"adk_type": "function_response"}}),
    ],
)
def test_a_function_response_is_a_marked_data_part(generation: str, binding: str, part: dict[str, JSONValue]) -> None:
    response = function_response(call_id="c", name="f", output={"ok": True})
    data: JSONValue = {"id": "c", "name": "f", "response": {"ok": True}}
    wanted = {**part, "data": {"data": data} if part["data"] == {"data": "D"} else data}
    message_ = written(dialect(generation, binding), message(response))
    assert (message_.get("parts") or message_.get("content")) == [wanted]


@pytest.mark.requirement("RF-63")
@pytest.mark.parametrize("output", ["yes", 3, None, [1]])
def test_a_response_that_is_no_object_is_wrapped(output: JSONValue) -> None:
    assert function_response(call_id="c", name=None, output=output).data == {"id": "c", "response": {"result": output}}


@pytest.mark.requirement("RF-54")
@pytest.mark.parametrize(
    ("generation", "binding", "whole", "elsewhere"),
    [
        (
            "0.3",
            "JSONRPC",
            {"kind": "file", "file": {"bytes": "QUJD", "mimeType": "x/y", "name": "n"}},
            {"kind": "file", "file": {"uri": "http://f"}},
        ),
        (
            "0.3",
            "HTTP+JSON",
            {"file": {"fileWithBytes": "UVVKRA==", "mimeType": "x/y", "name": "n"}},
            {"file": {"fileWithUri": "http://f"}},
        ),
        ("1.0", "JSONRPC", {"raw": "QUJD", "mediaType": "x/y", "filename": "n"}, {"url": "http://f"}),
        ("1.0", "HTTP+JSON", {"raw": "QUJD", "mediaType": "x/y", "filename": "n"}, {"url": "http://f"}),
    ],
)
def test_files_have_their_generations_shape(
    generation: str, binding: str, whole: dict[str, JSONValue], elsewhere: dict[str, JSONValue]
) -> None:
    files = FilePart(base64="QUJD", media_type="x/y", filename="n"), FilePart(url="http://f")
    spoken = written(dialect(generation, binding), message(*files))
    assert (spoken.get("parts") or spoken.get("content")) == [whole, elsewhere]


def event_of(spoken: Dialect, carrier: str, members: dict[str, JSONValue]) -> AgentEvent:
    """An event as the dialect's servers send it."""
    kinds = {"task": "task", "statusUpdate": "status-update", "artifactUpdate": "artifact-update", "message": "message"}
    older = spoken.generation == "0.3" and spoken.binding == "JSONRPC"
    tagged: dict[str, JSONValue] = {"kind": kinds[carrier]}
    payload: dict[str, JSONValue] = tagged | members if older else {carrier: members}
    envelope: JSONValue = {"jsonrpc": "2.0", "id": "1", "result": payload}
    event = spoken.read(envelope if spoken.binding == "JSONRPC" else payload)
    assert event is not None
    return event


@pytest.mark.requirement("RF-55")
@pytest.mark.parametrize("key", BOTH)
@pytest.mark.parametrize(
    ("spelled", "state"),
    [
        ("completed", "completed"),
        ("TASK_STATE_COMPLETED", "completed"),
        ("canceled", "canceled"),
        ("TASK_STATE_CANCELED", "canceled"),
        ("TASK_STATE_CANCELLED", "canceled"),
        ("input-required", "input-required"),
        ("TASK_STATE_INPUT_REQUIRED", "input-required"),
        ("TASK_STATE_AUTH_REQUIRED", "auth-required"),
        ("rejected", "rejected"),
        ("TASK_STATE_FAILED", "failed"),
        ("TASK_STATE_HOPEFUL", "unknown"),
    ],
)
def test_every_spelling_of_a_state_is_understood(key: tuple[str, str], spelled: str, state: str) -> None:
    event = event_of(dialect(*key), "statusUpdate", {"taskId": "t", "status": {"state": spelled}})
    assert (event.state, event.task_id) == (state, "t")


@pytest.mark.requirement("RF-77")
@pytest.mark.parametrize("key", BOTH)
@pytest.mark.parametrize("role", ["user", "ROLE_USER"])
def test_what_the_user_said_is_left_out(key: tuple[str, str], role: str) -> None:
    echoed: JSONValue = {"messageId": "m", "role": role, "parts": [{"kind": "text", "text": "hi"}]}
    status: JSONValue = {"state": "submitted", "message": echoed}
    for carrier in ("statusUpdate", "task"):
        assert event_of(dialect(*key), carrier, {"id": "t", "status": status, "history": [echoed]}).contents == ()
    assert event_of(dialect(*key), "message", {"role": role, "parts": [{"kind": "text", "text": "hi"}]}).contents == ()


@pytest.mark.parametrize("key", BOTH)
def test_of_a_tasks_history_only_what_followed_the_question_is_read(key: tuple[str, str]) -> None:
    def said(role: str, text: str) -> JSONValue:
        return {"messageId": text, "role": role, "parts": [{"kind": "text", "text": text}]}

    history: JSONValue = [said("user", "q1"), said("agent", "a1"), said("user", "q2"), said("agent", "a2")]
    event = event_of(dialect(*key), "task", {"id": "t", "status": {"state": "working"}, "history": history})
    assert [content.parts for content in event.contents] == [(TextPart(text="a2"),)]


@pytest.mark.requirement("RF-75")
@pytest.mark.parametrize("key", BOTH)
def test_marks_are_taken_from_the_part_the_artifact_or_the_event(key: tuple[str, str]) -> None:
    parts: JSONValue = [
        {"kind": "text", "text": "a", "metadata": {"adk_partial": False, "adk_thought": True}},
        {"kind": "text", "text": "b"},
    ]
    artifact: JSONValue = {"artifactId": "x", "parts": parts, "metadata": {"adk_partial": True}}
    event = event_of(dialect(*key), "artifactUpdate", {"taskId": "t", "artifact": artifact, "append": True})
    (content,) = event.contents
    assert content.parts == (TextPart(text="a", thought=True, partial=False), TextPart(text="b", partial=True))
    assert (content.append, content.last_chunk, content.id) == (True, False, "x")


def test_the_older_http_dialect_unwraps_data_and_bytes() -> None:
    parts: JSONValue = [
        {"data": {"data": {"x": 1}}},
        {"data": {"data": 1, "more": 2}},
        {"file": {"fileWithBytes": "UVVKRA==", "mimeType": "image/png"}},
        {"file": {"fileWithBytes": "iVBORyBmYWtl", "mimeType": "image/png"}},
        {"file": {"fileWithBytes": "dGVzdA==", "mimeType": "text/plain"}},
    ]
    event = event_of(dialect("0.3", "HTTP+JSON"), "artifactUpdate", {"artifact": {"artifactId": "a", "parts": parts}})
    assert [getattr(part, "data", None) or getattr(part, "base64", None) for part in event.contents[0].parts] == [
        {"x": 1},
        {"data": 1, "more": 2},
        "QUJD",
        "iVBORyBmYWtl",
        "dGVzdA==",  # "test" would be base64 too, but of no text
    ]


@pytest.mark.parametrize("key", BOTH)
def test_parts_without_content_and_artifacts_without_parts_say_nothing(key: tuple[str, str]) -> None:
    empty: list[dict[str, JSONValue]] = [
        {"artifact": {"artifactId": "a"}},
        {"artifact": {"artifactId": "a", "parts": [{"kind": "file", "file": {}}, {"kind": "new"}, 3]}},
        {},
    ]
    for members in empty:
        assert event_of(dialect(*key), "artifactUpdate", members).contents == ()


@pytest.mark.parametrize("key", RPC)
def test_an_error_of_json_rpc_is_told_with_its_code(key: tuple[str, str]) -> None:
    with pytest.raises(Refused, match="task not found") as caught:
        dialect(*key).read({"jsonrpc": "2.0", "id": "1", "error": {"code": -32001, "message": "task not found"}})
    assert caught.value.rpc_code == -32001


@pytest.mark.parametrize("key", REST)
@pytest.mark.parametrize("error", [{"code": 500, "message": "unknown\n exception"}, {}, "x"])
def test_an_error_within_a_stream_over_http_is_told(key: tuple[str, str], error: JSONValue) -> None:
    with pytest.raises(Refused, match="answered with an error"):
        dialect(*key).read({"error": error})


@pytest.mark.parametrize("key", BOTH)
def test_what_nobody_knows_yet_is_passed_over_and_what_is_no_object_is_not(key: tuple[str, str]) -> None:
    assert dialect(*key).read({"result": {"kind": "news"}}) is None
    assert dialect(*key).read({"result": 3}) is None
    nothing: list[JSONValue] = [3, "text", None, []]
    for payload in nothing:
        with pytest.raises(Broken):
            dialect(*key).read(payload)


def test_a_bare_task_is_the_answer_to_a_request_for_one() -> None:
    event = dialect("1.0", "HTTP+JSON").read({"id": "t", "status": {"state": "TASK_STATE_WORKING"}})
    assert event is not None
    assert (event.carrier, event.task_id, event.state) == ("task", "t", "working")
