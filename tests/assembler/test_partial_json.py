"""JSON that is cut off: against what the original was seen to do, and at the edges."""

from __future__ import annotations

from typing import Any

import pytest

from bubble.assembler.json_repair import repair_json
from bubble.assembler.partial_json import PartialJson, parse_partial_json
from bubble.protocol.jsontext import MAX_DEPTH
from tests.assembler.vectors import canonical, decoded, read_vectors

VECTORS = list(read_vectors("partial-json"))


def name_of(vector: dict[str, Any]) -> str:
    return str(vector["name"])


@pytest.mark.requirement("TA-R-04")
@pytest.mark.parametrize("vector", VECTORS, ids=name_of)
def test_a_text_is_read_as_the_original_reads_it(vector: dict[str, Any]) -> None:
    parsed = parse_partial_json(vector["input"])
    assert parsed.state == vector["state"]
    assert parsed.has_value == vector["hasValue"]
    assert canonical(parsed.value) == canonical(decoded(vector.get("value")))


@pytest.mark.requirement("TA-R-04")
@pytest.mark.parametrize("vector", [vector for vector in VECTORS if "fixed" in vector], ids=name_of)
def test_a_text_is_repaired_as_the_original_repairs_it(vector: dict[str, Any]) -> None:
    assert repair_json(vector["input"]) == vector["fixed"]


@pytest.mark.requirement("TA-R-04")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a":1,"b', {"a": 1}),
        ('{"a":tru', {"a": True}),
        ('"x\\u12', "x"),
        ('{"a":1e+5', {"a": 1}),
        ("[1e+5", [100_000.0]),
        ('{"a":-', {}),
        ('{"a":1}{"b"', {"a": 1}),
        ('{"a":1]', {"a": 1}),
        ("nullx", None),
    ],
)
def test_what_is_repaired_is_the_part_that_can_be_kept(text: str, value: object) -> None:
    assert parse_partial_json(text) == PartialJson(value, "repaired-parse")  # type: ignore[arg-type]


@pytest.mark.requirement("TA-R-04")
@pytest.mark.parametrize(
    "text", ["", " ", "-", "[-", "01", "NaN", "[Infinity", "\ufeff{}", '"\t"', "\u00a01", "x{}", "'a'"]
)
def test_what_is_no_beginning_of_json_has_no_value(text: str) -> None:
    assert parse_partial_json(text) == PartialJson(None, "failed-parse")


@pytest.mark.requirement("TA-R-04")
@pytest.mark.parametrize(
    "text",
    [
        '{"__proto__":1}',
        '[{"a":{"__proto__":"',
        r'{"\u005f_proto__":{}}',
        '{"constructor":{"prototype":1',
        '["\ud83d",{"__proto__":1},2]',
    ],
)
def test_what_would_change_a_prototype_is_refused_as_a_whole(text: str) -> None:
    assert parse_partial_json(text).state == "failed-parse"


@pytest.mark.requirement("TA-R-04")
@pytest.mark.parametrize(
    "text",
    [
        '{"a":"__proto__"}',
        '{"__proto__',
        '{"constructor":{}}',
        '{"prototype":1}',
        '{"constructor":[{"prototype":1}]}',
        '{"a":{"__proto__":1},"a":2}',
        '{"constructor":{"prototype":1},"constructor":2}',
    ],
)
def test_what_only_looks_like_it_is_not(text: str) -> None:
    assert parse_partial_json(text).has_value


@pytest.mark.requirement("TA-R-04", "TA-R-07")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"\\ud83d', "\ud83d"),
        ('"\ud83d\\ude00"', "😀"),
        ('["\ud83d\ude00', ["😀"]),
        ('{"\\ud83d\ude00":"\ude00\\ud83d"}', {"😀": "\ude00\ud83d"}),
    ],
    ids=ascii,
)
def test_halves_of_a_character_join_and_lone_ones_stay(text: str, value: object) -> None:
    assert parse_partial_json(text).value == value


@pytest.mark.requirement("TA-R-11")
@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
def test_what_is_nested_too_deep_is_not_read(opening: str) -> None:
    brackets = opening.count("[") + opening.count("{")
    assert parse_partial_json(opening * (MAX_DEPTH // brackets)).has_value
    assert not parse_partial_json(opening * (MAX_DEPTH // brackets + 1)).has_value
    assert not parse_partial_json(opening * 100_000).has_value


@pytest.mark.requirement("TA-R-11")
def test_brackets_within_strings_are_no_depth() -> None:
    assert parse_partial_json('["' + "[" * 10_000).value == ["[" * 10_000]


@pytest.mark.requirement("TA-R-11")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9" * 100_000, float("inf")),
        ("-" + "9" * 100_000, float("-inf")),
        ("123456789012345678901234567890", 123456789012345678901234567890),
    ],
    ids=["large", "small", "exact"],
)
def test_a_number_may_have_any_length(text: str, value: float) -> None:
    assert parse_partial_json(text) == PartialJson(value, "successful-parse")
