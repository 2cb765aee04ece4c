"""`bubble messages`: pages of messages as the server assembles them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from bubble.client import BubbleConnection
from tests.cli.conftest import Shell, carry_out


@pytest.fixture
def thread(admin: Shell) -> str:
    """A thread on which four things were said."""
    thread = admin.ok("threads", "create").strip()

    async def talk(bubble: BubbleConnection) -> None:
        for text in ("one", "two", "three", "four"):
            await bubble.send_message(thread, text)

    carry_out(talk, admin)
    return thread


def said(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.startswith("   ")]


def test_the_newest_messages_are_told(admin: Shell, thread: str) -> None:
    told = admin.ok("messages", thread)
    assert said(told) == ["one", "two", "three", "four"]
    assert "admin joins" in told


def test_a_page_says_how_to_read_the_one_before(admin: Shell, thread: str) -> None:
    newest = admin("messages", thread, "--limit", "2")
    assert said(newest.out) == ["three", "four"]
    found = re.fullmatch(rf"Those before: `bubble (messages {thread} --before \d+)`\.\n", newest.err)
    assert found is not None
    assert said(admin.ok(*found[1].split(), "--limit", "2")) == ["one", "two"]


def test_a_page_is_json_for_machines(admin: Shell, thread: str) -> None:
    page: Any = admin.json("messages", thread, "--limit", "1")
    assert [message["parts"][0]["text"] for message in page["messages"]] == ["four"]
    assert page["headSeq"] == 21
    assert page["nextBefore"] == page["messages"][0]["metadata"]["bubble"]["firstSeq"]


def test_by_run_each_run_is_told_in_one_piece(admin: Shell, thread: str) -> None:
    async def talk(bubble: BubbleConnection) -> None:
        async with bubble.run(thread, kind="agent_work") as run:
            await run.text("half a ")
            await run.flush()
            await bubble.send_message(thread, "Yes?")
            await run.text("sentence")

    carry_out(talk, admin)
    assert said(admin.ok("messages", thread))[-3:] == ["half a", "Yes?", "sentence"]
    assert said(admin.ok("messages", thread, "--grouping", "run"))[-2:] == ["half a sentence", "Yes?"]


def test_where_nothing_was_said_that_is_said(admin: Shell, thread: str) -> None:
    result = admin("messages", thread, "--before", "1")
    assert (result.code, result.out, result.err) == (0, "", "There are no messages.\n")
