"""Whether the server is in reach, as the log tells it."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator

import pytest

from bubble.amphibian.contact import Contact
from bubble.client import BubbleConnection
from bubble.protocol.errors import Unavailable
from tests.amphibian.world import World

pytestmark = pytest.mark.anyio

URL = "http://bubble.test"


@pytest.fixture(autouse=True)
def _all_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="bubble.amphibian")


@pytest.fixture
def nowhere() -> Iterator[str]:
    """The URL of a port that is taken, and at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def _said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the connector's own log says; a server in this process has one, too."""
    return [record.getMessage() for record in caplog.records if record.name == "bubble.amphibian"]


def test_a_loss_is_said_once_and_so_is_its_end(caplog: pytest.LogCaptureFixture) -> None:
    contact = Contact(URL)
    for _ in range(2):
        contact.changed(Unavailable("The connection was cut."))
        contact.changed(Unavailable("Nobody listens."))
        contact.changed(None)
        contact.changed(None)
    assert _said(caplog) == [f"{URL} was lost: The connection was cut. Trying again.", f"Reached {URL}."] * 2


async def test_a_server_that_is_not_there_at_first_is_said_not_to_be(
    caplog: pytest.LogCaptureFixture, nowhere: str
) -> None:
    contact = Contact(nowhere)
    await contact.try_once(BubbleConnection(nowhere, token="token", retry_for=0))
    contact.is_there()
    (first, last) = _said(caplog)
    assert first.startswith(f"Cannot reach {nowhere}: ")
    assert first.endswith(" Trying again.")
    assert last == f"Reached {nowhere}."


async def test_who_was_reached_meanwhile_is_not_said_to_be_out_of_reach(
    caplog: pytest.LogCaptureFixture, nowhere: str
) -> None:
    contact = Contact(nowhere)
    contact.is_there()
    await contact.try_once(BubbleConnection(nowhere, token="token", retry_for=0))
    assert _said(caplog) == []


async def test_a_server_that_is_there_is_nothing_to_tell_of_whatever_it_says_to_the_token(
    caplog: pytest.LogCaptureFixture, world: World
) -> None:
    contact = Contact(world.server.url)
    await contact.try_once(world.server.connect("unknown"))
    contact.is_there()
    assert _said(caplog) == []
