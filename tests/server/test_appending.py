"""Appending events over HTTP: one, several, again."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.server.world import Person, World, a_world, text_part

pytestmark = pytest.mark.anyio


@pytest.fixture
async def thread(alice: Person, bob: Person) -> str:
    """Alice's thread, on which Bob takes part: two events, and an open run `r` of Alice."""
    thread_id = await alice.thread(participants=[{"principalId": bob.principal_id}])
    await alice.append(thread_id, alice.starts("r"))
    return thread_id


# --- appending --------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("EV-42", "PR-6-19", "EV-40", "EV-02", "WS-43")
async def test_an_append_is_answered_with_the_stored_event(alice: Person, thread: str) -> None:
    stored = await alice.append(thread, alice.says("r", "hello"))
    assert stored == {"seq": 4, "createdAt": "2026-05-06T12:34:56.789Z", **alice.says("r", "hello")}
    page = (await alice.get(f"/v1/threads/{thread}/events?fromSeq=4")).json()
    assert page["events"] == [stored]


@pytest.mark.requirement("PR-1-15", "PR-1-16")
@pytest.mark.parametrize(
    "part",
    [
        b'{"type":"x","n":123456789012345678901234567890,"z":-0,"e":1e400,"f":1.10}',
        b'{"z":1,"type":"x","a":2,"z":3}',
        b'{"type":"x","s":"\\ud83d","t":"\\uDE00","u":"\\u0000\\/\\u00e9"}',
        b'{"type":"x" , "white" :\t[ 1 ,\n 2 ] }',
        '{"type":"x","s":"\u2028 é 😀"}'.encode(),
    ],
)
@pytest.mark.parametrize("in_batch", [False, True])
async def test_a_payload_comes_back_to_the_byte(alice: Person, thread: str, *, part: bytes, in_batch: bool) -> None:
    event = b'{"type":"message_part","principalId":"alice","runId":"r","part":%b,"version":"ai-sdk-v6"}' % part
    path = f"/v1/threads/{thread}/events"
    if in_batch:
        body = b'{"events" : [ %b ,\n%b ] }' % (event, event)
        answer = await alice.call("POST", f"{path}:batch", content=body, expect=201)
        assert answer.content.count(part) == 2
    else:
        answer = await alice.call("POST", path, content=event, expect=201)
        assert part in answer.content
    assert part in (await alice.get(f"{path}?fromSeq=4")).content


@pytest.mark.requirement("PR-1-02")
@pytest.mark.parametrize(
    "event",
    [
        {"type": "participant_joined", "byPrincipalId": "alice", "principalId": "alice"},
        {"type": "participant_left", "byPrincipalId": "alice", "principalId": "alice"},
        {"type": "thread_title_updated", "byPrincipalId": "alice", "title": "x"},
    ],
)
async def test_what_the_server_writes_is_refused_from_clients(alice: Person, thread: str, event: object) -> None:
    await alice.append(thread, event, expect=400)
    await alice.post(f"/v1/threads/{thread}/events:batch", {"events": [alice.says("r"), event]}, expect=400)
    assert (await alice.get(f"/v1/threads/{thread}")).json()["headSeq"] == 3


@pytest.mark.requirement("PR-1-29", "EV-27", "PR-1-11", "PR-1-09", "PR-2-03", "PR-2-04")
@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"type": "nonsense"}, "type"),
        ({"principalId": 1}, "$.principalId"),
        ({"principalId": "a b"}, "$.principalId"),
        ({"runId": ""}, "$.runId"),
        ({"runId": "a~b"}, "$.runId"),
        ({"runId": "a\nb"}, "$.runId"),
        ({"runId": "x" * 257}, "$.runId"),
        ({"seq": 4}, "seq"),
        ({"createdAt": "2026-05-06T12:34:56.789Z"}, "createdAt"),
        ({"extra": 1}, "extra"),
        ({"version": "ai-sdk-v7"}, "$.version"),
        ({"part": "text"}, "$.part"),
        ({"part": {"kind": "x"}}, "$.part"),
        ({"part": {"type": 1}}, "$.part"),
    ],
)
async def test_a_wrong_event_is_named_by_its_field(
    alice: Person, thread: str, changes: dict[str, object], field: str
) -> None:
    refusal = await alice.append(thread, {**alice.says("r"), **changes}, expect=400)
    assert refusal["code"] == "invalid_request"
    assert field in str(refusal["message"])


async def test_an_approval_with_a_reason_is_refused(bob: Person, thread: str) -> None:
    approval = {"type": "tool_call_approval", "principalId": "bob", "runId": "r", "toolCallId": "c", "approved": True}
    refusal = await bob.append(thread, {**approval, "reason": "fine"}, expect=400)
    assert "$.reason" in str(refusal["message"])
    await bob.append(thread, approval)


@pytest.mark.requirement("PR-1-26")
async def test_nobody_writes_as_somebody_else(bob: Person, thread: str) -> None:
    refusal = await bob.append(thread, text_part("alice", "r", "it was her"), expect=403)
    assert refusal["code"] == "forbidden"


@pytest.mark.requirement("PR-1-27", "PR-1-28")
async def test_an_admin_writes_as_another_but_never_decides_as_another(world: World, thread: str) -> None:
    await world.admin.append(thread, text_part("alice", "r", "bridged"))
    approval = {"type": "tool_call_approval", "principalId": "bob", "runId": "r", "toolCallId": "c", "approved": True}
    await world.admin.append(thread, approval, expect=403)


@pytest.mark.requirement("PR-2-05", "PR-3-09")
async def test_an_event_has_a_largest_size(alice: Person, thread: str) -> None:
    def sized(size: int) -> bytes:
        event = json.dumps(alice.says("r", ""), separators=(",", ":"))
        return event.replace('"delta":""', f'"delta":"{"x" * (size - len(event))}"').encode()

    path = f"/v1/threads/{thread}/events"
    await alice.call("POST", path, content=sized(1024 * 1024 - 1), expect=201)
    await alice.call("POST", path, content=sized(1024 * 1024), expect=201)
    refusal = await alice.call("POST", path, content=sized(1024 * 1024 + 1), expect=413)
    assert refusal.json()["code"] == "payload_too_large"
    batch = b'{"events":[%b]}' % sized(1024 * 1024 + 1)
    await alice.call("POST", f"{path}:batch", content=batch, expect=413)


@pytest.mark.requirement("PR-1-14")
async def test_an_event_may_nest_512_deep_alone_and_in_a_batch(alice: Person, thread: str) -> None:
    def nested(depth: int) -> bytes:
        part = b'{"type":"x","v":' + b"[" * (depth - 2) + b"]" * (depth - 2) + b"}"
        return b'{"type":"message_part","principalId":"alice","runId":"r","part":%b,"version":"ai-sdk-v6"}' % part

    path = f"/v1/threads/{thread}/events"
    for body, suffix in ((b"%b", ""), (b'{"events":[%b]}', ":batch")):
        await alice.call("POST", path + suffix, content=body % nested(512), expect=201)
        await alice.call("POST", path + suffix, content=body % nested(513), expect=400)
        await alice.call("POST", path + suffix, content=body % nested(100_000), expect=400)


# --- batches ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("PR-6-20", "PR-8-01")
async def test_a_batch_gets_consecutive_seqs_in_order(alice: Person, thread: str) -> None:
    events = [alice.says("r", str(number)) for number in range(3)]
    answer = (await alice.post(f"/v1/threads/{thread}/events:batch", {"events": events})).json()
    assert answer.keys() == {"events"}
    assert [event["seq"] for event in answer["events"]] == [4, 5, 6]
    assert [event["part"]["delta"] for event in answer["events"]] == ["0", "1", "2"]


@pytest.mark.requirement("PR-6-20")
async def test_a_batch_with_one_bad_event_stores_none(alice: Person, thread: str) -> None:
    good = alice.says("r")
    for bad, status, where in (
        ({**good, "runId": "unknown"}, 409, ""),
        ({**good, "principalId": "bob"}, 403, ""),
        ({**good, "part": 1}, 400, "`$.events[1].part`"),
        (7, 400, "`$.events[1]`"),
    ):
        refusal = await alice.post(f"/v1/threads/{thread}/events:batch", {"events": [good, bad, good]}, expect=status)
        assert where in refusal.json()["message"]
    assert (await alice.get(f"/v1/threads/{thread}")).json()["headSeq"] == 3


@pytest.mark.parametrize(
    "body", [b'{"events":[]}', b'{"events":{}}', b"{}", b'{"events":[1', b'{"events":[],"x":1}', b"[]"]
)
async def test_a_batch_that_is_none_is_refused(alice: Person, thread: str, body: bytes) -> None:
    await alice.call("POST", f"/v1/threads/{thread}/events:batch", content=body, expect=400)


@pytest.mark.requirement("PR-2-07", "PR-2-08")
async def test_a_batch_has_a_largest_length_and_size(alice: Person, thread: str) -> None:
    path = f"/v1/threads/{thread}/events:batch"
    await alice.post(path, {"events": [alice.says("r")] * 1_000})
    assert (await alice.post(path, {"events": [alice.says("r")] * 1_001}, expect=413)).json()[
        "code"
    ] == "payload_too_large"
    large = alice.says("r", "x" * 1_000_000)
    await alice.post(path, {"events": [large] * 8})
    await alice.post(path, {"events": [large] * 9}, expect=413)


# --- idempotency and expected head ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("PR-6-46", "PR-8-08")
async def test_a_repeat_is_answered_like_the_first_and_stored_once(alice: Person, thread: str) -> None:
    path, key = f"/v1/threads/{thread}/events", {"Idempotency-Key": "k"}
    first = await alice.post(path, alice.says("r"), headers=key)
    again = await alice.post(path, alice.says("r"), headers=key, expect=201)
    assert "idempotent-replay" not in first.headers
    assert again.headers["idempotent-replay"] == "true"
    assert again.content == first.content
    assert (await alice.get(f"/v1/threads/{thread}")).json()["headSeq"] == 4


@pytest.mark.requirement("PR-6-46", "PR-6-51")
async def test_a_batch_is_repeated_the_same_way_and_shares_the_keys(alice: Person, thread: str) -> None:
    path, key = f"/v1/threads/{thread}/events", {"Idempotency-Key": "k"}
    body = {"events": [alice.says("r"), alice.says("r")]}
    first = await alice.post(f"{path}:batch", body, headers=key)
    again = await alice.post(f"{path}:batch", body, headers=key)
    assert again.headers["idempotent-replay"] == "true"
    assert again.content == first.content
    await alice.post(path, alice.says("r"), headers=key, expect=409)


@pytest.mark.requirement("PR-6-49")
async def test_a_key_with_another_body_is_a_conflict(alice: Person, thread: str) -> None:
    path, key = f"/v1/threads/{thread}/events", {"Idempotency-Key": "k"}
    await alice.post(path, alice.says("r", "one"), headers=key)
    await alice.post(path, alice.says("r", "two"), headers=key, expect=409)
    respelt = json.dumps(alice.says("r", "one"), indent=1).encode()
    await alice.call("POST", path, content=respelt, headers=key, expect=409)


@pytest.mark.requirement("PR-6-50")
async def test_a_key_belongs_to_one_thread_and_caller(alice: Person, bob: Person, thread: str) -> None:
    other = await alice.thread()
    key = {"Idempotency-Key": "k"}
    await alice.post(f"/v1/threads/{thread}/events", alice.starts("x"), headers=key)
    for person, where in ((bob, thread), (alice, other)):
        answer = await person.post(f"/v1/threads/{where}/events", person.starts("y"), headers=key)
        assert "idempotent-replay" not in answer.headers


@pytest.mark.requirement("PR-6-47", "PR-8-10")
@pytest.mark.parametrize(("key", "status"), [("", 400), ("k", 201), ("k" * 128, 201), ("k" * 129, 400)])
async def test_a_key_has_a_length(alice: Person, thread: str, key: str, status: int) -> None:
    headers = {"Idempotency-Key": key}
    await alice.post(f"/v1/threads/{thread}/events", alice.says("r"), headers=headers, expect=status)


@pytest.mark.requirement("PR-6-52", "PR-8-09")
async def test_a_refused_append_does_not_use_up_its_key(alice: Person, thread: str) -> None:
    path, key = f"/v1/threads/{thread}/events", {"Idempotency-Key": "k"}
    await alice.post(path, alice.says("later"), headers=key, expect=409)
    await alice.append(thread, alice.starts("later"))
    answer = await alice.post(path, alice.says("later"), headers=key)
    assert "idempotent-replay" not in answer.headers


@pytest.mark.requirement("PR-6-53")
async def test_concurrent_twins_get_one_result(alice: Person, thread: str) -> None:
    path, key = f"/v1/threads/{thread}/events", {"Idempotency-Key": "k"}
    answers = await asyncio.gather(*(alice.post(path, alice.says("r"), headers=key) for _ in range(10)))
    assert len({answer.content for answer in answers}) == 1
    assert sum("idempotent-replay" in answer.headers for answer in answers) == 9


@pytest.mark.requirement("PR-6-48")
async def test_a_key_is_kept_24_hours() -> None:
    from bubble.server.background import purge

    async with a_world() as world:
        thread, key = await world.admin.thread(), {"Idempotency-Key": "k"}
        path, event = f"/v1/threads/{thread}/events", world.admin.starts("r")
        await world.admin.post(path, event, headers=key)
        world.clock.pass_ms(24 * 3_600_000 - 1)
        await purge(world.app.services)
        assert "idempotent-replay" in (await world.admin.post(path, event, headers=key)).headers
        world.clock.pass_ms(2)
        await purge(world.app.services)
        await world.admin.post(path, event, headers=key, expect=409)  # a new append: the run has started


@pytest.mark.requirement("PR-6-54", "PR-6-55", "PR-8-05")
async def test_an_append_may_expect_a_head(alice: Person, thread: str) -> None:
    path = f"/v1/threads/{thread}/events"
    await alice.post(path, alice.says("r"), headers={"Bubble-Expected-Head": "3"})
    refusal = (await alice.post(path, alice.says("r"), headers={"Bubble-Expected-Head": "3"}, expect=409)).json()
    assert (refusal["code"], refusal["details"]) == ("conflict", {"headSeq": 4})
    batch = {"events": [alice.says("r")]}
    await alice.post(f"{path}:batch", batch, headers={"Bubble-Expected-Head": "3"}, expect=409)
    await alice.post(f"{path}:batch", batch, headers={"Bubble-Expected-Head": "4"})


@pytest.mark.parametrize("head", ["", "-1", "x", "1.0", "9007199254740992", "٣", "+1", "1" * 5_000])
async def test_an_expected_head_that_is_no_seq_is_refused(alice: Person, thread: str, head: str) -> None:
    headers = {b"Bubble-Expected-Head": head.encode()}
    answer = await alice.http.post(f"/v1/threads/{thread}/events", json=alice.says("r"), headers=headers)
    assert answer.status_code == 400


@pytest.mark.requirement("PR-3-16")
async def test_the_first_check_that_fails_is_the_answer(world: World, alice: Person, bob: Person, thread: str) -> None:
    carol = await world.user("carol")
    path, wrong_head = f"/v1/threads/{thread}/events", {"Bubble-Expected-Head": "99"}
    key = {"Idempotency-Key": "k"}
    await bob.post(path, bob.starts("b"), headers=key)
    # shape before visibility
    await carol.post(path, {"type": "nonsense"}, expect=400)
    # visibility before everything else
    await carol.post(path, alice.says("r"), headers=wrong_head, expect=404)
    # capability before idempotency, head and lifecycle
    await alice.put(f"/v1/threads/{thread}/grants/bob", {"role": "observer"})
    await bob.post(path, bob.starts("b"), headers={**key, **wrong_head}, expect=403)
    # idempotency before head and lifecycle
    await alice.put(f"/v1/threads/{thread}/grants/bob", {"role": "participant"})
    assert "idempotent-replay" in (await bob.post(path, bob.starts("b"), headers={**key, **wrong_head})).headers
    # expected head before lifecycle
    refusal = (await bob.post(path, bob.says("unknown"), headers=wrong_head, expect=409)).json()
    assert "headSeq" in refusal["details"]
