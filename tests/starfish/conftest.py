"""Browsers and servers for tests of the page. They end with their module: Playwright's loop would be in the way of other tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.starfish.stage import CHROMIUM, Account, Looker, Server, a_browser, a_server

__all__ = ["Look"]

Look = Callable[..., Looker]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser, empty for each who looks."""
    if CHROMIUM is None:
        pytest.skip("missing: chromium")
    with a_browser() as it:
        yield it


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that all tests of a module share."""
    with a_server(tmp_path_factory.mktemp("server"), store="memory:") as it:
        yield it


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """A server that a test may stop and start again."""
    with a_server(tmp_path) as it:
        yield it


@pytest.fixture
def look(browser: Browser) -> Iterator[Look]:
    """Gives somebody a browser of their own. Afterwards nothing may have gone wrong in any of them."""
    with ExitStack() as stack:
        lookers: list[Looker] = []

        def looker(account: Account, **options: Any) -> Looker:  # noqa: ANN401 - Playwright's options
            options.setdefault("viewport", {"width": 1280, "height": 800})
            context = browser.new_context(**options)
            stack.callback(context.close)
            lookers.append(Looker(context, account))
            return lookers[-1]

        yield looker
        assert [complaint for one in lookers for complaint in one.complaints] == []
