"""`thread.append` over a real socket, sentence by sentence, on both skins."""

from __future__ import annotations

import pytest

from tests.server.websocket.live import ADMIN_TOKEN, Live, part

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("EV-43", "WS-07", "WS-09", "WS-11", "WS-35", "WS-36", "WS-37", "WS-42", "PR-7-13")
async def test_a_run_of_frames_is_appended_in_order_without_an_answer(live: Live) -> None:
    ann = await live.person("ann")
    await live.thread("t1", ann="participant")
    async with live.peer(ann) as peer:
        await peer.append("t1", {"type": "run_started", "principalId": "ann", "runId": "a", "kind": "user_input"})
        for number in range(50):
            await peer.append("t1", part(str(number), run_id="a", by="ann"))
        await peer.append("t1", {"type": "run_finished", "principalId": "ann", "runId": "a"})
        await peer.subscribe("t1", from_seq=4)
        events = await peer.events(52)
        assert len(peer.seen) == 53, "something was answered"
    assert [event["seq"] for event in events] == list(range(4, 56))
    assert [event["part"]["delta"] for event in events[1:-1]] == [str(number) for number in range(50)]
    assert await live.page("t1", from_seq=4) == events


@pytest.mark.requirement("WS-43")
async def test_over_http_the_seq_comes_back_at_once(live: Live) -> None:
    await live.thread("t1")
    assert (await live.append("t1", part()))["seq"] == 3


@pytest.mark.requirement("WS-40", "PR-1-03")
@pytest.mark.parametrize(
    "event",
    [
        {"type": "participant_joined", "byPrincipalId": "admin", "principalId": "admin"},
        {"type": "participant_left", "byPrincipalId": "admin", "principalId": "admin"},
        {"type": "thread_title_updated", "byPrincipalId": "admin", "title": "x"},
    ],
    ids=lambda event: str(event["type"]),
)
async def test_what_the_server_writes_is_refused(live: Live, event: dict[str, object]) -> None:
    await live.thread("t1")
    async with live.peer() as peer:
        await peer.append("t1", event, ref="mine")
        error = await peer.frame()
        assert (error["code"], error["threadId"], error["ref"]) == ("invalid_request", "t1", "mine")
        assert str(event["type"]) in error["message"]
    assert len(await live.page("t1")) == 2


@pytest.mark.requirement("WS-38", "WS-45", "PR-5-11")
async def test_a_missing_capability_is_told_by_name(live: Live) -> None:
    olga = await live.person("olga")
    await live.thread("t1", olga="observer")
    async with live.peer(olga) as peer:
        await peer.append("t1", part(by="olga"))
        assert await peer.frame() == {
            "type": "error",
            "threadId": "t1",
            "code": "forbidden",
            "message": 'Principal "olga" lacks "events.message_part" on thread "t1".',
        }


@pytest.mark.requirement("WS-44", "WS-46", "WS-54", "WS-12")
async def test_failures_are_scoped_and_end_nothing(live: Live) -> None:
    await live.thread("t1")
    async with live.peer() as peer:
        await peer.subscribe("t1")
        await peer.events(2)
        await peer.append("t1", part(by="somebody"), ref="1")  # an admin may write as another, who needs no account
        assert (await peer.events(1))[0]["principalId"] == "somebody"
        await peer.append("t1", {"type": "message_part"}, ref="2")
        await peer.append("t1", part(run_id="never"), ref="3")
        await peer.append("nowhere", part(), ref="4")
        errors = [await peer.frame() for _ in range(3)]
        assert {error["ref"]: (error["code"], error["threadId"]) for error in errors} == {
            "2": ("invalid_request", "t1"),
            "3": ("conflict", "t1"),
            "4": ("not_found", "nowhere"),
        }
        assert next(error for error in errors if error["ref"] == "3")["details"] == {
            "runId": "never",
            "state": "unknown",
        }
        await peer.append("t1", part())
        assert (await peer.events(1))[0]["seq"] == 4


@pytest.mark.requirement("PR-7-01", "PR-6-51")
async def test_a_key_is_one_for_both_transports(live: Live) -> None:
    await live.thread("t1")
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", "Idempotency-Key": "k", "Content-Type": "application/json"}
    body = b'{"type":"run_interrupt_requested","principalId":"admin","runId":"r"}'
    async with live.peer() as peer:
        await peer.subscribe("t1")
        await peer.events(2)
        frame = b'{"type":"thread.append","threadId":"t1","idempotencyKey":"k","event":%b}' % body
        await peer.send(frame.decode())
        await peer.send(frame.decode())
        assert (await peer.events(1))[0]["seq"] == 3
        again = await live.http.post("/v1/threads/t1/events", content=body, headers=headers)
        assert (again.status_code, again.json()["seq"]) == (201, 3)
        assert again.headers["Idempotent-Replay"] == "true"
        await peer.append("t1", part("other"), idempotencyKey="k")
        assert (await peer.frame())["code"] == "conflict"
        assert await peer.settled() == []


@pytest.mark.requirement("PR-8-09", "PR-8-10")
async def test_a_refused_append_does_not_use_up_its_key_and_an_empty_one_is_refused(live: Live) -> None:
    await live.thread("t1")
    async with live.peer() as peer:
        await peer.subscribe("t1", from_seq=3)
        await peer.append("t1", part(run_id="later"), idempotencyKey="k")
        assert (await peer.frame())["code"] == "conflict"
        await live.append("t1", {"type": "run_started", "principalId": "admin", "runId": "later"})
        await peer.append("t1", part(run_id="later"), idempotencyKey="k")
        assert [event["type"] for event in await peer.events(2)] == ["run_started", "message_part"]
        await peer.append("t1", part(), idempotencyKey="")
        error = await peer.frame()
        assert (error["code"], error["threadId"]) == ("invalid_request", "t1")
        assert "idempotencyKey" in error["message"]


@pytest.mark.requirement("PR-7-02", "PR-8-13")
@pytest.mark.parametrize("ref", ["x" * 65, 7, None, ["a"]])
async def test_a_ref_that_is_none_is_refused(live: Live, ref: object) -> None:
    await live.thread("t1")
    async with live.peer() as peer:
        await peer.append("t1", part(), ref=ref)
        error = await peer.frame()
        assert error["code"] == "invalid_request"
        assert "ref" in error["message"]
        assert "ref" not in error
        await peer.append("t1", {"type": "nonsense"}, ref="y" * 64)
        assert (await peer.frame())["ref"] == "y" * 64


@pytest.mark.requirement("PR-1-29", "PR-1-10", "PR-1-11")
@pytest.mark.parametrize(
    ("event", "field"),
    [
        ('{"type":"run_started","principalId":"admin","runId":"a","runId":"b"}', "$.event.runId"),
        ('{"type":"run_started","principalId":"admin","runId":"a","seq":1}', "seq"),
        ('{"type":"run_started","principalId":"admin","runId":"a","createdAt":"x"}', "createdAt"),
        ('{"type":"run_started","principalId":"admin","runId":"a~1"}', "$.event.runId"),
        ('{"type":"run_started","principalId":"","runId":"a"}', "$.event.principalId"),
        ('{"type":"run_started","principalId":"admin","runId":7}', "$.event.runId"),
        (
            '{"type":"tool_call_approval","principalId":"admin","runId":"r","toolCallId":"c","approved":true,"reason":"x"}',
            "$.event.reason",
        ),
        ('"text"', "$.event"),
    ],
)
async def test_a_bad_event_is_refused_and_the_field_is_named(live: Live, event: str, field: str) -> None:
    await live.thread("t1")
    async with live.peer() as peer:
        await peer.send(f'{{"type":"thread.append","threadId":"t1","ref":"me","event":{event}}}')
        error = await peer.frame()
        assert (error["code"], error["threadId"], error["ref"]) == ("invalid_request", "t1", "me")
        assert field in error["message"]
    assert len(await live.page("t1")) == 2


@pytest.mark.requirement("PR-1-15", "PR-1-16")
async def test_payloads_come_back_to_the_byte_over_both_transports(live: Live) -> None:
    await live.thread("t1")
    payload = (
        '{ "type":"text-delta","b":-0,"a":1e400,"n":123456789012345678901234567890.00,"a":"twice",'
        '"u":"\\ud83d","z":"\\u0000 \\uDE00 \\ud83d\\ude00 é 😀","nested":[[[ ]]],\n"type" : "text-delta" }'
    )
    event = f'{{"type":"message_part","principalId":"admin","runId":"r","part":{payload},"version":"ai-sdk-v6"}}'
    async with live.peer() as peer:
        await peer.subscribe("t1", from_seq=3)
        await peer.send(f'{{"type":"thread.append","threadId":"t1","event":{event}}}')
        text = await peer.socket.recv()
    assert isinstance(text, str)
    assert payload in text
    answer = await live.http.get("/v1/threads/t1/events?fromSeq=3", headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
    assert payload in answer.content.decode()
