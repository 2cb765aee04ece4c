"""`bubble tail` on a real terminal: what grows stands at the bottom, what is told scrolls away and stays as it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest

from bubble.client import BubbleConnection, Run
from tests.cli.conftest import COMMAND, TIMEOUT, Server, Shell, carry_out, running_server
from tests.cli.pseudo_terminal import PseudoTerminal, terminal_of
from tests.docs.ports import free_ports

pytestmark = pytest.mark.anyio


@pytest.fixture
def thread(admin: Shell) -> str:
    """A fresh thread of the administrator's."""
    return admin.ok("threads", "create").strip()


@pytest.fixture
def terminal(admin: Shell, thread: str) -> Iterator[PseudoTerminal]:
    """Somebody follows the thread."""
    command = [*COMMAND, "tail", thread]
    with terminal_of(command, directory=admin.directory, environment=admin.environment) as terminal:
        terminal.wait_for(lambda lines: any("admin joins" in line for line in lines))
        yield terminal


@asynccontextmanager
async def speaking(server: Server, thread: str) -> AsyncIterator[Run]:
    async with (
        BubbleConnection(server.url, token=server.admin_token) as bubble,
        bubble.run(thread, kind="agent_work") as run,
    ):
        yield run


def shows(*texts: str) -> Callable[[list[str]], bool]:
    """Whether each of these stands there, as a whole line but for spaces, exactly once."""
    return lambda lines: all([line.strip() for line in lines].count(text) == 1 for text in texts)


async def test_a_text_grows_in_its_place_and_stays_when_it_is_told(
    server: Server, thread: str, terminal: PseudoTerminal
) -> None:
    async with speaking(server, thread) as run:
        await run.reasoning("Hm.")
        await run.text("One\nTw")
        await run.flush()
        lines = terminal.wait_for(shows("One", "Tw▌"))
        assert lines[-1].strip() == "Tw▌"
        await run.text("o, three")
        await run.flush()
        terminal.wait_for(shows("One", "Two, three▌"))
    terminal.wait_for(shows("One", "Two, three"))
    lines = [line for line in terminal.interrupt() if line]
    assert lines[-4:] == ["          ┆ Hm.", "          One", "          Two, three", "Stopped following."]
    assert "▌" not in "".join(lines)


async def test_a_text_that_is_longer_than_the_screen_stands_there_once_from_beginning_to_end(
    server: Server, thread: str, terminal: PseudoTerminal
) -> None:
    numbers = [f"line {number}" for number in range(100)]
    async with speaking(server, thread) as run:
        for number in numbers:
            await run.text(f"{number}\n")
        await run.text("and a paragraph: " + "word " * 1_000 + "end")
        await run.flush()
        terminal.wait_for(lambda lines: lines[-1].endswith("end▌"))
    terminal.wait_for(lambda lines: any(line.endswith(" end") for line in lines))
    lines = [line.strip() for line in terminal.interrupt() if line]
    first = lines.index("line 0")
    assert lines[first : first + 100] == numbers
    assert " ".join(lines[first + 100 : -1]).split() == ["and", "a", "paragraph:", *["word"] * 1_000, "end"]


async def test_a_call_is_a_card_that_changes_until_it_has_an_outcome(
    server: Server, thread: str, terminal: PseudoTerminal
) -> None:
    async with speaking(server, thread) as run:
        call = await run.tool_call("weather")
        await call.input_delta('{"city":"Os')
        await run.flush()
        terminal.wait_for(shows("▸ weather  is being called", '│ {"city":"Os"}'))
        await call.input_delta('lo"}')
        await call.input_available()
        await run.flush()
        terminal.wait_for(shows("▸ weather  runs", '│ {"city":"Oslo"}'))
        await call.output({"sky": "clear"})
    lines = terminal.wait_for(shows("▸ weather  done", '│ {"city":"Oslo"}', '→ {"sky":"clear"}'))
    assert sum("weather" in line for line in lines) == 1


async def test_what_others_wrote_does_not_act_upon_the_terminal(
    server: Server, thread: str, terminal: PseudoTerminal
) -> None:
    async with speaking(server, thread) as run:
        await run.text("\x1b[2J\x1b]0;gone\x07[red]\u202e\r")
        await run.flush()
        terminal.wait_for(shows(r"\x1b[2J\x1b]0;gone\x07[red]\u202e\r▌"))
    terminal.wait_for(shows(r"\x1b[2J\x1b]0;gone\x07[red]\u202e\r"))
    terminal.interrupt()


async def test_who_stops_following_keeps_what_was_said_so_far(
    server: Server, thread: str, terminal: PseudoTerminal
) -> None:
    async with speaking(server, thread) as run:
        await run.text("half a sen")
        await run.flush()
        terminal.wait_for(shows("half a sen▌"))
        lines = terminal.interrupt()
    assert [line.strip() for line in lines if line][-2:] == ["half a sen", "Stopped following."]
    assert terminal.process.returncode == 0


def test_a_call_that_waits_says_so_until_somebody_decides(
    admin: Shell, thread: str, terminal: PseudoTerminal, person: Callable[..., Shell]
) -> None:
    bot = person(f"bot{thread[:8]}")
    admin.ok("grants", "put", thread, f"bot{thread[:8]}", "participant")

    async def refund(bubble: BubbleConnection) -> None:
        async with bubble.run(thread, kind="agent_work") as run:
            call = await run.tool_call("refund", {"amount": 20})
            assert await call.approval()
            await asyncio.to_thread(terminal.wait_for, shows("▸ refund  approved"))
            await call.output("refunded")

    with ThreadPoolExecutor(1) as elsewhere:
        work = elsewhere.submit(carry_out, refund, bot)
        terminal.wait_for(shows("▸ refund  waits for approval"))
        admin.ok("approve", thread)
        work.result(TIMEOUT)
    lines = terminal.wait_for(shows("→ refunded"))
    assert [line[10:] for line in lines if "refund" in line] == [
        "▸ refund  approved",
        "admin approves refund",
        "▸ refund  done",
        "→ refunded",
    ]


def test_an_outage_is_said_above_what_grows(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    (tmp_path / "server").mkdir()
    with ExitStack() as first:
        server = first.enter_context(running_server(tmp_path / "server", port=port))
        shell = Shell(directory=tmp_path, variables={"BUBBLE_URL": server.url, "BUBBLE_TOKEN": server.admin_token})
        thread = shell.ok("threads", "create").strip()

        async def begin(bubble: BubbleConnection) -> None:
            about = {"principalId": "admin", "runId": "r"}
            chunks = ({"type": "text-start", "id": "1"}, {"type": "text-delta", "id": "1", "delta": "half a sen"})
            parts = [{"type": "message_part", **about, "version": "ai-sdk-v6", "part": chunk} for chunk in chunks]
            await bubble.append_events(thread, [{"type": "run_started", **about}, *parts])

        carry_out(begin, shell)
        command = [*COMMAND, "tail", thread]
        with terminal_of(command, directory=tmp_path, environment=shell.environment) as terminal:
            terminal.wait_for(shows("half a sen▌"))
            first.close()
            lines = terminal.wait_for(lambda lines: "half a sen▌" in lines[-1] and "Disconnected. " in "".join(lines))
            assert sum("half a sen" in line for line in lines) == 1
            with running_server(tmp_path / "server", port=port, token=server.admin_token):
                shell.ok("post", thread, "I am back")
                terminal.wait_for(shows("half a sen", "Connected again; nothing was missed.", "I am back"))
                lines = [line.strip() for line in terminal.interrupt() if line]
    told = [line for line in lines if line in ("half a sen", "Connected again; nothing was missed.", "I am back")]
    assert told == ["Connected again; nothing was missed.", "half a sen", "I am back"]
