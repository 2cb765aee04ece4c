"""What a data part is."""

from __future__ import annotations

import pytest

from bubble.protocol.jsontext import JSONValue
from bubble.reef.events import DataPart
from bubble.reef.jsondata import MOST_LEVELS
from bubble.reef.tool_data import FunctionCall, FunctionResponse, Nothing, Opaque, Unsayable, classify_data_part


def classified(data: JSONValue, kind: str | None = None, *, long_running: bool = False) -> object:
    return classify_data_part(DataPart(data=data, kind=kind, long_running=long_running))


@pytest.mark.requirement("RF-32")
@pytest.mark.parametrize(
    "data",
    [
        {"name": "f", "args": {"a": 1}, "id": "c"},
        {"functionCall": {"name": "f", "args": {"a": 1}, "id": "c"}},
        {"function_call": {"name": "f", "args": {"a": 1}, "id": "c"}},
    ],
)
def test_a_name_with_arguments_is_a_call_also_where_it_is_nested(data: JSONValue) -> None:
    assert classified(data) == FunctionCall(name="f", args={"a": 1}, id="c")


def test_a_call_that_the_agent_marks_needs_no_arguments() -> None:
    assert classified({"name": "f"}, "function_call", long_running=True) == FunctionCall(
        name="f", args={}, long_running=True
    )


@pytest.mark.requirement("RF-33", "RF-80")
@pytest.mark.parametrize("member", ["response", "result", "output", "error"])
def test_a_response_is_unwrapped(member: str) -> None:
    data: JSONValue = {"id": "c", "name": "f", member: {"x": 1}}
    assert classified(data) == FunctionResponse(output={"x": 1}, raw=data, id="c", name="f")


@pytest.mark.requirement("RF-80")
def test_the_response_goes_before_the_other_names_of_an_output() -> None:
    data: JSONValue = {"error": "e", "output": 3, "result": 2, "response": 1}
    found = classified(data)
    assert isinstance(found, FunctionResponse)
    assert found.output == 1


def test_a_nested_response_is_found() -> None:
    data: JSONValue = {"functionResponse": {"id": "c", "name": "f", "response": {"x": 1}}}
    assert classified(data) == FunctionResponse(output={"x": 1}, raw=data, id="c", name="f")


def test_a_response_that_repeats_its_arguments_is_a_response_where_it_is_marked() -> None:
    data: JSONValue = {"name": "f", "args": {}, "response": {"x": 1}}
    assert isinstance(classified(data, "function_response"), FunctionResponse)


@pytest.mark.requirement("RF-34")
def test_an_empty_object_is_nothing() -> None:
    assert classified({}) == Nothing()


@pytest.mark.requirement("RF-35")
@pytest.mark.parametrize("data", [{"progress": 0.5}, {"name": "only"}, [1, 2], "text", None, {"name": 3, "args": {}}])
def test_anything_else_stays_what_it_is(data: JSONValue) -> None:
    assert classified(data) == Opaque(data=data)


def test_what_the_agent_calls_something_else_is_no_call() -> None:
    data: JSONValue = {"name": "python", "args": {"code": "1"}, "output": "x"}
    assert classified(data, "executable_code") == Opaque(data=data)


@pytest.mark.parametrize("id_", ["", "x" * 257, "a\nb", 7])
def test_an_id_that_the_log_could_not_hold_is_none(id_: JSONValue) -> None:
    assert classified({"name": "f", "args": {}, "id": id_}) == FunctionCall(name="f", args={}, id=None)


def test_what_nests_deeper_than_the_log_takes_cannot_be_said() -> None:
    data: JSONValue = {}
    for _ in range(MOST_LEVELS):
        data = [data]
    assert classified(data) == Unsayable(f"It is nested deeper than {MOST_LEVELS} levels.")
    assert classified({"name": "f", "args": data}) == Unsayable(f"It is nested deeper than {MOST_LEVELS} levels.")
