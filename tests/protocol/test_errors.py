"""The closed set of errors, and the one table that maps it."""

from __future__ import annotations

import pytest

from bubble.protocol import errors
from bubble.protocol.errors import ERROR_CODES, BubbleError, error_from_code, thread_not_found

TABLE = {
    "invalid_request": 400,
    "unauthenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "conflict": 409,
    "payload_too_large": 413,
    "rate_limited": 429,
    "internal": 500,
    "unavailable": 503,
}


def _public_errors() -> list[type[BubbleError]]:
    # Other packages have kinds of their own, for inside.
    return [kind for kind in BubbleError.__subclasses__() if kind.__module__ == errors.__name__]


@pytest.mark.requirement("PR-3-01", "PR-3-03")
def test_there_are_nine_codes_each_with_its_class_and_its_status() -> None:
    assert set(ERROR_CODES) == set(TABLE)
    kinds = [type(error_from_code(code, "x")) for code in ERROR_CODES]
    assert {kind.code: kind.http_status for kind in kinds} == TABLE
    assert set(kinds) == set(_public_errors())


@pytest.mark.parametrize("code", ERROR_CODES)
def test_an_error_that_came_over_the_wire_is_the_error_that_was_sent(code: str) -> None:
    error = error_from_code(code, "No.", details={"headSeq": 7})
    assert (error.code, error.message, str(error), error.details) == (code, "No.", "No.", {"headSeq": 7})


def test_a_code_of_a_later_version_is_an_internal_error() -> None:
    assert isinstance(error_from_code("teapot", "x"), errors.InternalError)


def test_a_rate_limit_says_when_to_come_back() -> None:
    assert errors.RateLimited("Slow down.", retry_after=2.5).retry_after == 2.5


@pytest.mark.requirement("PR-3-07")
def test_an_unknown_thread_and_a_hidden_one_are_spoken_of_in_the_same_words() -> None:
    assert thread_not_found("t").message == 'There is no thread "t", or you may not see it.'


def test_every_public_error_is_in_the_drawing() -> None:
    drawing = errors.__doc__ or ""
    for kind in _public_errors():
        assert f"{kind.__name__:<20} {kind.code:<19} {kind.http_status}" in drawing
