"""Starting and stopping an application without a server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from bubble.testing.lifespan import lifespan_of

pytestmark = pytest.mark.anyio


async def test_the_application_is_started_and_stopped_in_one_task_and_gives_its_state() -> None:
    tasks: list[object] = []

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[Mapping[str, object]]:
        tasks.append(asyncio.current_task())
        yield {"pool": 7}
        tasks.append(asyncio.current_task())

    async with lifespan_of(Starlette(lifespan=lifespan)) as state:
        assert state == {"pool": 7}
        assert len(tasks) == 1
    assert len(tasks) == 2
    assert tasks[0] is tasks[1]


async def test_an_application_that_cannot_start_says_why() -> None:
    async def connect() -> None:
        raise LookupError("no database")

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await connect()
        yield

    with pytest.raises(RuntimeError, match="no database"):
        async with lifespan_of(Starlette(lifespan=lifespan)):
            raise AssertionError("The block must not be entered.")


async def test_an_application_without_lifespan_is_left_as_it_is() -> None:
    async def plain(scope: Scope, _: Receive, __: Send) -> None:
        assert scope["type"] == "http"

    async with lifespan_of(plain) as state:
        assert state == {}


async def test_the_application_is_stopped_when_the_block_fails() -> None:
    before = len(asyncio.all_tasks())
    with pytest.raises(LookupError):
        async with lifespan_of(Starlette()):
            raise LookupError
    assert len(asyncio.all_tasks()) == before
