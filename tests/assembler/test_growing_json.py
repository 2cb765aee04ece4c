"""JSON that grows: after every piece it is what reading all of the text from the start gives."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from bubble.assembler.growing_json import GrowingJson
from bubble.assembler.partial_json import parse_partial_json
from bubble.assembler.text import joined
from tests.assembler.vectors import canonical, read_vectors

pytestmark = pytest.mark.requirement("TA-R-05")

# Pieces of which texts go wrong in every way that there is.
_FRAGMENTS = (
    *'{}[],:"\\-+.eE01 \n\t\x01atfnu',
    *("true", "fals", "null", '"a"', '"a":', '\\"', "\\u", "\\u00e9", "\\ud83d", "\\ude00", "\ud83d", "\ude00", "😀"),
    *(
        "1e+5",
        "1.5e-3",
        "e+",
        '"__proto__":',
        '"constructor":',
        '"prototype":',
        '"\\u005f_proto__":',
        "[1,2,",
        '{"k":[{"x":"y"}',
    ),
    # A quote that is escaped within a name leads the original's repair astray; here it goes on to look like a value.
    *('{"a\\"b":', '{"a\\":[x":["', '"a\\":-,b":', '{"\\":[1\\":":[', '"\\":{":'),
)
_KEYS = st.sampled_from(["a", "b", 'q"', "\\", "__proto__", "constructor", "prototype", "é😀", ""]) | st.text(
    max_size=3
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=12,
)
_TEXTS = st.builds(json.dumps, _VALUES, ensure_ascii=st.booleans(), indent=st.sampled_from([None, 1]))


def assert_grows(pieces: Iterable[str]) -> None:
    growing = GrowingJson()
    text = ""
    for piece in pieces:
        growing.append(piece)
        text = joined(text + piece)
        whole = parse_partial_json(text)
        value = growing.value()
        assert canonical(value) == canonical(whole.value if whole.has_value else UNSET), repr(text)
        assert growing.text() == text


def cut(text: str, places: Iterable[int]) -> list[str]:
    cuts = sorted({0, len(text), *(place for place in places if place < len(text))})
    return [text[start:end] for start, end in pairwise(cuts)]


@settings(max_examples=400)
@given(_TEXTS, st.lists(st.integers(0, 200), max_size=8))
def test_json_cut_anywhere(text: str, places: list[int]) -> None:
    assert_grows(cut(text, places))


@settings(max_examples=400)
@given(_TEXTS, st.integers(0, 200), st.sampled_from(_FRAGMENTS), st.lists(st.integers(0, 200), max_size=8))
def test_json_with_something_else_within(text: str, place: int, fragment: str, places: list[int]) -> None:
    assert_grows(cut(text[:place] + fragment + text[place:], places))


@settings(max_examples=1_000)
@given(st.lists(st.sampled_from(_FRAGMENTS), max_size=16))
@example(['{"a":1,"b\\":', "[x", '":["', '",', '1,"', "2]"])
@example(['{"\\":[1\\":":[', "t", "rue", ",", "1", "]}"])
@example(['["\ud83d",{"__proto__":1}', ",2", "]"])
def test_what_is_no_json_at_all(pieces: list[str]) -> None:
    assert_grows(pieces)


@pytest.mark.slow
def test_a_hundred_thousand_pieces_of_every_sort() -> None:
    random = Random(7)  # noqa: S311 - a test's dice
    for _ in range(12_000):
        assert_grows(random.choice(_FRAGMENTS) for _ in range(random.randrange(1, 16)))


@pytest.mark.parametrize("length", [1, 2, 3])
def test_every_recorded_text_piece_by_piece(length: int) -> None:
    for vector in read_vectors("partial-json"):
        text = vector["input"] or ""
        assert_grows(text[at : at + length] for at in range(0, len(text), length))


@pytest.mark.parametrize(
    "text",
    [
        '{"a":{"__proto__":1},"a":2}',
        '{"a":[{"b":{"__proto__":1}}],"b":1,"a":[]}',
        '{"__proto__":1,"__proto__":2}',
        '[{"__proto__":1},{"a":1}]',
        '{"constructor":{"prototype":1},"constructor":2}',
        '{"constructor":{"a":1,"prototype":-1},"constructor":{"prototype":{}}}',
        '{"constructor":[{"prototype":1}],"prototype":1}',
        '{"a":{"constructor":{"prototype":tru},"a":null}',
        '{"a":1,"a":-2,"a":[3],"a":"four","a":{"a":5}}',
    ],
)
def test_the_last_member_of_a_name_counts(text: str) -> None:
    assert_grows(text)


@pytest.mark.requirement("TA-R-09")
def test_a_container_that_is_closed_is_shared_and_an_open_one_is_not() -> None:
    growing = GrowingJson()
    growing.append('{"done":[1,{"a":2}],"open":[3')
    first = growing.value()
    growing.append(",4")
    second = growing.value()
    assert first == {"done": [1, {"a": 2}], "open": [3]}
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert second["done"] is first["done"]
    assert second["open"] == [3, 4]


@pytest.mark.requirement("TA-R-11")
@pytest.mark.parametrize("opening", ["[", '{"a":', '{"a\\"":['])
def test_a_text_that_only_opens_breaks_nothing(opening: str) -> None:
    growing = GrowingJson()
    for _ in range(10_000):
        growing.append(opening)
        growing.value()
    assert growing.value() is UNSET
    growing.append("]")
    assert growing.value() is UNSET
