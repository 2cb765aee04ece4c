"""What a run can say: every word of it as the chunks that the AI SDK knows, and the parts that are Bubble's own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from bubble.assembler import MessagePart, validate_chunk
from bubble.client import BubbleConnection, Run
from bubble.protocol.errors import Conflict, InvalidRequest, PayloadTooLarge
from bubble.protocol.jsontext import JSONValue
from tests.client.logs import outcome_of, parts_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def thread_id(bubble_client: BubbleConnection) -> str:
    return (await bubble_client.create_thread()).thread_id


Saying = Callable[[Run], Awaitable[object]]


async def said(client: BubbleConnection, thread_id: str, *sayings: Saying) -> list[dict[str, JSONValue]]:
    async with client.run(thread_id) as run:
        for say in sayings:
            await say(run)
    return await parts_of(client, thread_id)


def kinds(parts: list[dict[str, JSONValue]]) -> list[JSONValue]:
    return [part.get("type") or part["kind"] for part in parts]


async def test_reasoning_and_text_follow_each_other_as_blocks_of_their_own(
    bubble_client: BubbleConnection, thread_id: str
) -> None:
    assert await said(
        bubble_client,
        thread_id,
        lambda run: run.reasoning("Let me "),
        lambda run: run.reasoning("see.", provider_metadata={"anthropic": {"signature": "s"}}),
        lambda run: run.text("Yes."),
        lambda run: run.reasoning("Sure?"),
    ) == [
        {"type": "reasoning-start", "id": "reasoning-1"},
        {"type": "reasoning-delta", "id": "reasoning-1", "delta": "Let me "},
        {
            "type": "reasoning-delta",
            "id": "reasoning-1",
            "delta": "see.",
            "providerMetadata": {"anthropic": {"signature": "s"}},
        },
        {"type": "reasoning-end", "id": "reasoning-1"},
        {"type": "text-start", "id": "text-1"},
        {"type": "text-delta", "id": "text-1", "delta": "Yes."},
        {"type": "text-end", "id": "text-1"},
        {"type": "reasoning-start", "id": "reasoning-2"},
        {"type": "reasoning-delta", "id": "reasoning-2", "delta": "Sure?"},
        {"type": "reasoning-end", "id": "reasoning-2"},
    ]


async def test_a_block_can_be_ended_so_that_the_next_text_is_another_part(
    bubble_client: BubbleConnection, thread_id: str
) -> None:
    chunks = await said(
        bubble_client,
        thread_id,
        lambda run: run.text("one"),
        lambda run: run.end_block(),
        lambda run: run.end_block(),
        lambda run: run.text("two"),
    )
    assert [(each["type"], each["id"]) for each in chunks if each["type"] != "text-delta"] == [
        ("text-start", "text-1"),
        ("text-end", "text-1"),
        ("text-start", "text-2"),
        ("text-end", "text-2"),
    ]


@pytest.mark.parametrize("piece", ["x", "\u00e9", "\U0001f600", "\x00", "\ud83d"], ids=ascii)
async def test_a_text_of_any_length_is_said_in_pieces_that_fit(
    bubble_client: BubbleConnection, thread_id: str, piece: str
) -> None:
    text = piece * 300_001
    chunks = await said(bubble_client, thread_id, lambda run: run.text(text))
    deltas = [str(each["delta"]) for each in chunks if "delta" in each]
    assert "".join(deltas) == text
    assert len(deltas) > 1


async def test_what_shows_in_the_message_ends_the_text_before_it(
    bubble_client: BubbleConnection, thread_id: str
) -> None:
    shown: list[Saying] = [
        lambda run: run.file("https://example.com/a.png"),
        lambda run: run.source("https://example.com/"),
        lambda run: run.source_document("Report", media_type="application/pdf"),
        lambda run: run.data("weather", {"sky": "blue"}),
        lambda run: run.artifact("a"),
        lambda run: run.event("waves"),
        lambda run: run.start_step(),
        lambda run: run.finish_step(),
        lambda run: run.error("oh"),
        lambda run: run.tool_call("add", {}),
    ]
    sayings = [say for each in shown for say in (lambda run: run.text("."), each)]
    chunks = await said(bubble_client, thread_id, *sayings)
    assert len([each for each in chunks if each.get("type") == "text-end"]) == len(shown)
    assert kinds(chunks)[3::4] == [
        *("file", "source-url", "source-document", "data-weather", "artifact", "agent_event"),
        *("start-step", "finish-step", "error", "tool-input-available"),
    ]


async def test_what_changes_something_that_is_there_leaves_the_text_open(
    bubble_client: BubbleConnection, thread_id: str
) -> None:
    async with bubble_client.run(thread_id) as run:
        call = await run.tool_call("add", {})
        await run.data("progress", 1, id="p")
        await run.artifact("a", text="x")
        await run.event("typing", 1, id="t")
        await run.text("one ")
        await call.output(3)
        await run.data("progress", 2, id="p")
        await run.data("tick", 1, transient=True)
        await run.artifact("a", op="append", text="y")
        await run.event("typing", 2, id="t")
        await run.metadata({"model": "m"})
        await run.text("two")
    chunks = await parts_of(bubble_client, thread_id)
    assert kinds(chunks).count("text-start") == 1
    assert kinds(chunks)[-1] == "text-end"


async def test_steps_are_blocks_of_code(bubble_client: BubbleConnection, thread_id: str) -> None:
    async with bubble_client.run(thread_id) as run:
        async with run.step():
            await run.text("one")
        async with run.step():
            pass
    assert kinds(await parts_of(bubble_client, thread_id)) == [
        *("start-step", "text-start", "text-delta", "text-end", "finish-step"),
        *("start-step", "finish-step"),
    ]


async def test_a_step_that_fails_is_not_finished(bubble_client: BubbleConnection, thread_id: str) -> None:
    async def work() -> None:
        async with bubble_client.run(thread_id) as run, run.step():
            raise LookupError("no model")

    with pytest.raises(LookupError):
        await work()
    assert kinds(await parts_of(bubble_client, thread_id)) == ["start-step"]


@pytest.mark.parametrize(
    ("say", "chunk"),
    [
        (
            lambda run: run.source("https://example.com/", title="Example", source_id="s"),
            {"type": "source-url", "sourceId": "s", "url": "https://example.com/", "title": "Example"},
        ),
        (
            lambda run: run.source_document("Report", media_type="application/pdf", filename="r.pdf", source_id="s"),
            {
                "type": "source-document",
                "sourceId": "s",
                "mediaType": "application/pdf",
                "title": "Report",
                "filename": "r.pdf",
            },
        ),
        (lambda run: run.data("weather", None), {"type": "data-weather", "data": None}),
        (lambda run: run.data("weather", [1], id=""), {"type": "data-weather", "id": "", "data": [1]}),
        (lambda run: run.data("tick", 1, transient=True), {"type": "data-tick", "data": 1, "transient": True}),
        (lambda run: run.event("waves"), {"kind": "agent_event", "name": "waves"}),
        (
            lambda run: run.event("mood", {"m": 1}, id="m"),
            {"kind": "agent_event", "name": "mood", "data": {"m": 1}, "id": "m"},
        ),
        (lambda run: run.event("empty"), {"kind": "agent_event", "name": "empty"}),
        (
            lambda run: run.metadata({"model": "m", "usage": {"tokens": 3}}),
            {"type": "message-metadata", "messageMetadata": {"model": "m", "usage": {"tokens": 3}}},
        ),
        (lambda run: run.error("out of credit"), {"type": "error", "errorText": "out of credit"}),
        (
            lambda run: run.artifact("a", name="Plan", media_type="text/markdown", text="# Plan"),
            {
                "kind": "artifact",
                "artifactId": "a",
                "op": "create",
                "name": "Plan",
                "mediaType": "text/markdown",
                "text": "# Plan",
            },
        ),
        (
            lambda run: run.artifact("a", op="replace", data=None),
            {"kind": "artifact", "artifactId": "a", "op": "replace", "data": None},
        ),
        (lambda run: run.artifact("a", op="delete"), {"kind": "artifact", "artifactId": "a", "op": "delete"}),
        (
            lambda run: run.artifact("a", url="https://example.com/x"),
            {"kind": "artifact", "artifactId": "a", "op": "create", "url": "https://example.com/x"},
        ),
    ],
)
async def test_each_word_is_one_chunk(
    bubble_client: BubbleConnection, thread_id: str, say: Saying, chunk: dict[str, JSONValue]
) -> None:
    assert await said(bubble_client, thread_id, say) == [chunk]


async def test_sources_that_are_given_no_id_have_different_ones(
    bubble_client: BubbleConnection, thread_id: str
) -> None:
    chunks = await said(bubble_client, thread_id, *[lambda run: run.source("https://example.com/")] * 2)
    assert len({str(each["sourceId"]) for each in chunks}) == 2


@pytest.mark.parametrize(
    "say",
    [
        lambda run: run.data("", 1),
        lambda run: run.data("data-weather", 1),
        lambda run: run.data("weather", float("nan")),
        lambda run: run.data("weather", object()),
        lambda run: run.event(""),
        lambda run: run.event("empty", 1),
        lambda run: run.artifact("a", text="x", url="y"),
        lambda run: run.artifact("a", op="delete", text="x"),
        lambda run: run.artifact("a", op="append", data=1),
        lambda run: run.artifact("a", op="append"),
        lambda run: run.tool_call("add", {}, tool_call_id=""),
        lambda run: run.tool_call("add", {1, 2}),
        lambda run: run.file("/etc/passwd"),
        lambda run: run.file("C:\\secret.txt"),
        lambda run: run.file(b"data"),
        lambda run: run.file(5),
        lambda run: run.text(5),
        lambda run: run.data("x", float("inf")),
        lambda run: run.file("https://example.com/avatar"),
    ],
)
async def test_what_cannot_be_said_is_refused_at_once_and_the_run_goes_on(
    bubble_client: BubbleConnection, thread_id: str, say: Saying
) -> None:
    async with bubble_client.run(thread_id) as run:
        with pytest.raises(InvalidRequest):
            await say(run)
        await run.text("still here")
    assert kinds(await parts_of(bubble_client, thread_id)) == ["text-start", "text-delta", "text-end"]


# --- files ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("say", "chunk"),
    [
        (
            lambda run: run.file("https://example.com/a%20b.png?x=1"),
            {"type": "file", "url": "https://example.com/a%20b.png?x=1", "mediaType": "image/png"},
        ),
        (
            lambda run: run.file("https://example.com/avatar", media_type="image/webp", filename="me.webp"),
            {"type": "file", "url": "https://example.com/avatar", "mediaType": "image/webp", "filename": "me.webp"},
        ),
        (
            lambda run: run.file("https://example.com/download", filename="me.png"),
            {"type": "file", "url": "https://example.com/download", "mediaType": "image/png", "filename": "me.png"},
        ),
        (
            lambda run: run.file("data:image/gif;base64,R0lG"),
            {"type": "file", "url": "data:image/gif;base64,R0lG", "mediaType": "image/gif"},
        ),
        (lambda run: run.file("data:,hi"), {"type": "file", "url": "data:,hi", "mediaType": "text/plain"}),
        (
            lambda run: run.file(b"\x00\xff", media_type="image/png"),
            {"type": "file", "url": "data:image/png;base64,AP8=", "mediaType": "image/png"},
        ),
        (
            lambda run: run.file(b"{}", filename="a.json"),
            {
                "type": "file",
                "url": "data:application/json;base64,e30=",
                "mediaType": "application/json",
                "filename": "a.json",
            },
        ),
        (
            lambda run: run.file(b"", filename="nobody-knows"),
            {
                "type": "file",
                "url": "data:application/octet-stream;base64,",
                "mediaType": "application/octet-stream",
                "filename": "nobody-knows",
            },
        ),
    ],
)
async def test_a_file_is_shown_by_its_url_or_whole(
    bubble_client: BubbleConnection, thread_id: str, say: Saying, chunk: dict[str, JSONValue]
) -> None:
    assert await said(bubble_client, thread_id, say) == [chunk]


async def test_a_path_is_read_and_named(bubble_client: BubbleConnection, thread_id: str, tmp_path: Path) -> None:
    path = tmp_path / "note.txt"
    path.write_bytes(b"hi")
    assert await said(bubble_client, thread_id, lambda run: run.file(path)) == [
        {"type": "file", "url": "data:text/plain;base64,aGk=", "mediaType": "text/plain", "filename": "note.txt"}
    ]


async def test_a_path_that_is_not_there_is_an_error_of_the_system(
    bubble_client: BubbleConnection, thread_id: str, tmp_path: Path
) -> None:
    async with bubble_client.run(thread_id) as run:
        with pytest.raises(FileNotFoundError):
            await run.file(tmp_path / "nothing")


async def test_a_file_that_just_fits_is_said(bubble_client: BubbleConnection, thread_id: str) -> None:
    data = bytes(780_000)
    [chunk] = await said(bubble_client, thread_id, lambda run: run.file(data, filename="zeros"))
    assert len(str(chunk["url"])) > 1_040_000


@pytest.mark.parametrize(
    ("say", "message"),
    [
        (lambda run: run.file(bytes(2_000_000), filename="big.bin"), r"big\.bin has 2,000,000 bytes.*URL"),
        (lambda run: run.file(bytes(786_400), filename="big.bin"), "part file is too large: 1,0"),
        (lambda run: run.data("x", "x" * 1_048_576), "part data-x is too large: 1,048,"),
        (lambda run: run.artifact("a", text="x" * 1_048_576), "part artifact is too large"),
        (lambda run: run.tool_call("add", "x" * 1_048_576), "part tool-input-available is too large"),
    ],
)
async def test_what_does_not_fit_into_an_event_is_refused_at_once_and_the_run_goes_on(
    bubble_client: BubbleConnection, thread_id: str, say: Saying, message: str
) -> None:
    async with bubble_client.run(thread_id) as run:
        with pytest.raises(PayloadTooLarge, match=message):
            await say(run)
        await run.text("still here")
    assert kinds(await parts_of(bubble_client, thread_id)) == ["text-start", "text-delta", "text-end"]


async def test_a_path_that_is_too_large_is_not_read(
    bubble_client: BubbleConnection, thread_id: str, tmp_path: Path
) -> None:
    path = tmp_path / "huge.bin"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    async with bubble_client.run(thread_id) as run:
        with pytest.raises(PayloadTooLarge, match=r"huge\.bin has 1,099,511,627,776 bytes"):
            await run.file(path)


# --- the end --------------------------------------------------------------------------------------------------------------------


async def test_a_run_that_said_an_error_ends_as_failed(bubble_client: BubbleConnection, thread_id: str) -> None:
    await said(bubble_client, thread_id, lambda run: run.error("out of credit"))
    assert await outcome_of(bubble_client, thread_id) == "failed"


async def test_a_run_that_said_an_error_may_end_otherwise_if_it_is_told(
    bubble_client: BubbleConnection, thread_id: str
) -> None:
    await said(
        bubble_client,
        thread_id,
        lambda run: run.error("a hiccup"),
        lambda run: run.text("There it is."),
        lambda run: run.finish(outcome="success"),
    )
    assert await outcome_of(bubble_client, thread_id) == "success"
    assert kinds(await parts_of(bubble_client, thread_id))[-1] == "text-end"


@pytest.mark.parametrize(
    "say", [lambda run: run.reasoning("more"), lambda run: run.tool_call("add", {}), lambda run: run.data("x", 1)]
)
async def test_nothing_is_said_after_the_end(bubble_client: BubbleConnection, thread_id: str, say: Saying) -> None:
    async with bubble_client.run(thread_id) as run:
        await run.finish()
        with pytest.raises(Conflict, match="has finished"):
            await say(run)


# --- as the AI SDK has it -------------------------------------------------------------------------------------------------------


async def say_everything(run: Run) -> None:
    await run.metadata({"model": "m"})
    async with run.step():
        await run.reasoning("Hm.", provider_metadata={"x": {"y": 1}})
        await run.text("Yes.", provider_metadata={"x": {"y": 2}})
        await run.file(b"hi", filename="note.txt")
        await run.source("https://example.com/", title="Example", source_id="s1")
        await run.source_document("Report", media_type="application/pdf", filename="r.pdf", source_id="s2")
        await run.data("weather", {"sky": "blue"}, id="w")
        await run.data("weather", {"sky": "grey"}, id="w")
        await run.data("tick", 1, transient=True)
    async with run.step():
        done = await run.tool_call(
            "add", iter(['{"a":', "1}"]), tool_call_id="c1", title="Add", dynamic=True, provider_executed=True
        )
        await done.output(1, preliminary=True)
        await done.output(2)
        failed = await run.tool_call("sql", iter(["SELECT"]), tool_call_id="c2", input_encoding="text")
        await failed.error("no table")
        await (await run.tool_call("pay", {}, tool_call_id="c3")).denied()
        await (await run.tool_call("guess", tool_call_id="c4")).input_error("unknown tool", value={"x": 1})
        await run.event("mood", {"m": 1}, id="m")
        await run.artifact("a", name="Plan", text="- one\n")
        await run.artifact("a", op="append", text="- two\n")
    await run.error("Out of credit.")


async def test_every_chunk_that_is_said_is_one_that_the_ai_sdk_accepts(
    bubble_client: BubbleConnection, thread_id: str
) -> None:
    chunks = [each for each in await said(bubble_client, thread_id, say_everything) if "type" in each]
    for chunk in chunks:
        validate_chunk(chunk)
    assert len({str(chunk["type"]) for chunk in chunks}) == 22


async def test_what_is_said_is_what_a_reader_of_messages_sees(bubble_client: BubbleConnection, thread_id: str) -> None:
    async with bubble_client.run(thread_id, kind="agent_work") as run:
        await say_everything(run)
    async with bubble_client.follow_messages(thread_id) as view:
        message = (await anext(view)).messages[-1]
    assert (message["id"], message["role"]) == (run.run_id, "assistant")
    assert message["metadata"]["model"] == "m"  # type: ignore[typeddict-item]
    assert message["metadata"]["bubble"]["error"] == "Out of credit."
    assert message["metadata"]["bubble"]["outcome"] == "failed"
    shown = [(part["type"], part.get("state"), SHOWN[str(part["type"])](part)) for part in message["parts"]]
    assert shown == [
        ("step-start", None, None),
        ("reasoning", "done", "Hm."),
        ("text", "done", "Yes."),
        ("file", None, "note.txt"),
        ("source-url", None, "Example"),
        ("source-document", None, "Report"),
        ("data-weather", None, {"sky": "grey"}),
        ("step-start", None, None),
        ("dynamic-tool", "output-available", ({"a": 1}, 2)),
        ("tool-sql", "output-error", ("SELECT", None)),
        ("tool-pay", "output-denied", ({}, None)),
        ("tool-guess", "output-error", (None, None)),
        ("data-bubble-agent-event", None, {"name": "mood", "data": {"m": 1}}),
        ("data-bubble-artifact", None, {"artifactId": "a", "name": "Plan", "text": "- one\n- two\n"}),
    ]


def _call(part: MessagePart) -> JSONValue:
    return (part.get("input"), part.get("output"))  # type: ignore[return-value]


SHOWN: Mapping[str, Callable[[MessagePart], JSONValue]] = {
    "step-start": lambda _: None,
    "reasoning": lambda part: part["text"],
    "text": lambda part: part["text"],
    "file": lambda part: part["filename"],
    "source-url": lambda part: part["title"],
    "source-document": lambda part: part["title"],
    "data-weather": lambda part: part["data"],
    "dynamic-tool": _call,
    "tool-sql": _call,
    "tool-pay": _call,
    "tool-guess": _call,
    "data-bubble-agent-event": lambda part: part["data"],
    "data-bubble-artifact": lambda part: part["data"],
}
