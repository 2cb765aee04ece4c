"""The names that users import: they are there, they are what they say, and a client does not load the server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import bubble


def test_every_public_name_can_be_had() -> None:
    assert {name for name in bubble.__all__ if not hasattr(bubble, name)} == set()
    assert set(bubble.__all__) <= set(dir(bubble))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = bubble.nonsense


def test_the_client_does_not_load_the_server() -> None:
    code = "import sys; from bubble import BubbleConnection; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert [name for name in loaded if name.startswith(("bubble.server", "bubble.store", "bubble.hub"))] == []


@pytest.mark.requirement("TA-100")
def test_the_documented_calls_type_check(tmp_path: Path) -> None:
    program = tmp_path / "surface.py"
    program.write_text(
        """
from bubble import BubbleConnection, BubbleError, Settings, create_app, open_store
from bubble import MessageReducer, ReducerError, create_assembler, parse_partial_json
from bubble import WatchCursor, WatchDecoder, bot_events_sse, watch_bot
from bubble.watch import WatchSource


async def embedded() -> int:
    store = await open_store("sqlite:///./bubble.db", run_integrity="strict")
    stored = await store.append("thread-42", {"type": "run_started", "principalId": "ann", "runId": "r"})
    sub = await store.subscribe("thread-42", print, from_seq=18, filter=None)
    await sub.unsubscribe()
    page = await store.get_event_page("thread-42", from_seq=1, to_seq=None, limit=50)
    return stored.seq + sub.through_seq + len(page.events) + (page.next_seq or 0)


async def remote() -> None:
    async with BubbleConnection("http://localhost:3000", token="t") as bubble:
        me = await bubble.who_am_i()
        thread = await bubble.create_thread(title="Lunch")
        event = {"type": "run_started", "principalId": me.principal_id, "runId": "r"}
        stored = await bubble.append_event(thread.thread_id, event)
        async with bubble.run(thread.thread_id, kind="agent_work") as run:
            await run.text("hello")
        async with bubble.subscribe_thread(thread.thread_id, from_seq=1) as events:
            async for one in events:
                print(one.seq)
        async with bubble.subscribe_grants() as changes:
            async for change in changes:
                print(change)
        await bubble.advance_cursor(thread.thread_id, stored.seq)


async def assembled() -> str:
    assembler = create_assembler(part_handlers=[])
    thread = assembler.open(grouping="speaker")
    applied = await thread.apply([{"type": "run_started", "principalId": "ann", "runId": "r"}])
    snapshot = await thread.snapshot()
    await thread.prepend([])
    window = await thread.window()
    await thread.clear_window(window.through_seq)
    await thread.close()
    parts = await assembler.encode(snapshot.messages[0])
    again = await assembler.assemble([], grouping="run")
    return f"{applied.changed} {snapshot.head_seq} {snapshot.oldest_seq} {parts[0].version} {again.messages[0]['id']}"


def reduced() -> object:
    reducer = MessageReducer(message=None)
    try:
        emitted: bool = reducer.apply({"type": "start", "messageId": "m"})
    except ReducerError as error:
        return error.chunk_type, error.chunk_id
    partial = parse_partial_json('{"a": tru')
    return emitted, reducer.snapshot(), partial.value, partial.state


async def watched(source: WatchSource, resume_from: str | None) -> bytes:
    events = watch_bot(source, bot_id="bot", session_id="", resume_from=resume_from)
    async for event in events:
        if event.type == "message":
            print(event.id, event.data.text)
    stream = bot_events_sse(events, keep_alive_ms=15_000)
    cursor = WatchCursor.decode(resume_from or "")
    WatchDecoder(bot_id="bot", session_id="", cursor=cursor).decode({"heartbeat": {}})
    return b"".join([piece async for piece in stream]) + stream.headers["content-type"].encode()


app = create_app(Settings())
error: type[Exception] = BubbleError
""",
        encoding="utf-8",
    )
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--config-file=", str(program)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout
