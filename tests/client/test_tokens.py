"""The bearer in use, and who is asked for another one."""

from __future__ import annotations

import asyncio
import json
from base64 import urlsafe_b64encode

import anyio
import pytest

from bubble.client.tokens import TokenSource
from bubble.protocol.errors import InvalidRequest, Unauthenticated

pytestmark = pytest.mark.anyio


def jwt(exp: object) -> str:
    claims = urlsafe_b64encode(json.dumps({"exp": exp}).encode()).decode().rstrip("=")
    return f"e30.{claims}.c2ln"


async def test_a_fixed_token_is_used_as_it_is_and_cannot_be_renewed() -> None:
    source = TokenSource("t-1")
    assert await source.get() == "t-1"
    assert not source.can_renew
    with pytest.raises(Unauthenticated):
        await source.renew(refused="t-1")


async def test_a_plain_function_is_asked_once_and_then_remembered() -> None:
    answers = iter(["t-1", "t-2"])
    source = TokenSource(lambda: next(answers))
    assert [await source.get(), await source.get()] == ["t-1", "t-1"]


async def test_a_coroutine_function_gives_the_token_too() -> None:
    async def provide() -> str:
        await asyncio.sleep(0)
        return "t-1"

    assert await TokenSource(provide).get() == "t-1"


async def test_of_many_who_want_another_token_at_once_one_asks() -> None:
    asked = 0

    async def provide() -> str:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0)
        return f"t-{asked}"

    source = TokenSource(provide)
    first = await source.get()
    assert await asyncio.gather(*(source.renew(refused=first) for _ in range(20))) == ["t-2"] * 20
    assert asked == 2


async def test_the_same_token_again_is_no_other_token() -> None:
    source = TokenSource(lambda: "t-1")
    await source.get()
    with pytest.raises(Unauthenticated):
        await source.renew(refused="t-1")


async def test_listeners_hear_of_another_token_and_not_of_the_same_one() -> None:
    answers = iter(["t-1", "t-1", "t-2"])
    source = TokenSource(lambda: next(answers))
    heard: list[str | None] = []
    source.on_change(lambda: heard.append(source.current))
    await source.get()
    with pytest.raises(Unauthenticated):
        await source.renew(refused="t-1")
    await source.renew(refused="t-1")
    assert heard == ["t-1", "t-2"]


async def test_what_the_function_raises_comes_out() -> None:
    def provide() -> str:
        raise LookupError("no key ring")

    with pytest.raises(LookupError, match="no key ring"):
        await TokenSource(provide).get()


@pytest.mark.parametrize("token", ["", "two words", "line\nbreak", "trailing\r", "ümlaut"])
async def test_what_cannot_stand_in_a_header_is_refused_without_being_repeated(token: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        TokenSource(token)
    assert token == "" or token not in str(refused.value)


async def test_no_token_is_not_told_of_as_a_wrong_one() -> None:
    with pytest.raises(InvalidRequest, match=r"^No token was given: it is empty\.$"):
        TokenSource("")
    with pytest.raises(InvalidRequest, match=r"^No token was given: it is empty\.$"):
        await TokenSource(lambda: "").get()


async def test_a_token_is_asked_for_again_before_a_jwt_ends() -> None:
    now = 1_000.0
    tokens = iter([jwt(now + 0.0), "opaque"])
    changed = asyncio.Event()
    source = TokenSource(lambda: next(tokens), clock=lambda: now)
    await source.get()
    source.on_change(changed.set)
    # An hour would be too late; `_SOONEST` is the least there is between two requests.
    assert source._seconds_until_refresh(at_most=3_600) == 5
    assert TokenSource(jwt(now + 100), clock=lambda: now)._seconds_until_refresh(at_most=3_600) == pytest.approx(80)
    assert TokenSource(jwt("soon"), clock=lambda: now)._seconds_until_refresh(at_most=3_600) == 3_600
    assert TokenSource("a.b.c", clock=lambda: now)._seconds_until_refresh(at_most=3_600) == 3_600


async def test_a_token_is_asked_for_again_at_the_interval_also_after_a_failure() -> None:
    answers: list[str | Exception] = ["t-1", ConnectionError("down"), "t-2"]

    def provide() -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    source = TokenSource(provide)
    await source.get()
    changed = asyncio.Event()
    source.on_change(changed.set)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: source.keep_fresh(every=0.001))
        with anyio.fail_after(10):
            await changed.wait()
        tasks.cancel_scope.cancel()
    assert source.current == "t-2"
