"""The JSON of agents: its numbers, and how deep it goes."""

from __future__ import annotations

import pytest

from bubble.protocol.jsontext import JSONValue, dump_json
from bubble.reef.jsondata import MOST_LEVELS, TooDeep, load, tidy_numbers


@pytest.mark.requirement("RF-79")
def test_integers_come_back_from_floats_and_what_is_no_json_goes() -> None:
    value: JSONValue = {"a": [3.0, 4.5, -0.0, 1e300], "b": float("nan"), "c": float("inf"), "d": True}
    assert tidy_numbers(value) == {"a": [3, 4.5, 0, 1e300], "b": None, "c": None, "d": True}
    assert isinstance(tidy_numbers(3.0), int)
    assert value == {
        "a": [3.0, 4.5, -0.0, 1e300],
        "b": pytest.approx(float("nan"), nan_ok=True),
        "c": float("inf"),
        "d": True,
    }


@pytest.mark.parametrize("digits", ["1" * 20, "-" + "9" * 308, "1" * 309])
def test_an_integer_keeps_every_digit(digits: str) -> None:
    assert dump_json(tidy_numbers(load(f'{{"n": {digits}}}'))) == f'{{"n":{digits}}}'.encode()


@pytest.mark.parametrize(
    "digits", ["2" * 309, "-" + "9" * 309, "1" * 310, "1" * 4_000, "-" + "7" * 1_000_000, "1e999", "-1.5E+400"]
)
def test_a_number_that_no_float_reaches_becomes_a_text_of_its_digits(digits: str) -> None:
    assert tidy_numbers(load(f"[{digits}]")) == [digits]


def nested(levels: int) -> JSONValue:
    value: JSONValue = 1.0
    for level in range(levels):
        value = {"a": value} if level % 2 else [value]
    return value


def test_what_is_as_deep_as_the_log_takes_it_is_tidied_to_the_bottom() -> None:
    assert dump_json(tidy_numbers(nested(MOST_LEVELS))).count(b"1.0") == 0


@pytest.mark.parametrize("levels", [MOST_LEVELS + 1, 800, 100_000])
def test_what_is_deeper_is_refused_however_deep_it_is(levels: int) -> None:
    with pytest.raises(TooDeep, match="nested deeper than"):
        tidy_numbers(nested(levels))
