"""The client of an agent, against agents on real sockets that do as a test says."""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import pytest

from bubble.client import Backoff
from bubble.reef.client import A2AClient
from bubble.reef.dialects import Request
from bubble.reef.events import AgentEvent, TextPart
from bubble.reef.failures import AgentFailure, Broken, Busy, CardRefused, Refused, Silent, Unreachable
from bubble.reef.http import AgentHttp
from bubble.reef.messages import OutgoingMessage
from bubble.reef.peers import Peers
from tests.docs.ports import free_ports
from tests.reef.conftest import PLAIN
from tests.reef.raw_agent import Answer, Asked, Feed, RawAgent, event_stream, json_answer, raw_agent

pytestmark = pytest.mark.anyio

ClientOf = Callable[..., A2AClient]
DONE = {"statusUpdate": {"taskId": "t", "status": {"state": "TASK_STATE_COMPLETED"}}}
WORKING = {"statusUpdate": {"taskId": "t", "status": {"state": "TASK_STATE_WORKING"}}}
MESSAGE = OutgoingMessage(parts=(TextPart(text="hi"),), context_id="thread")


class Waits(list[float]):
    """A sleep that takes no time, and how long it would have been."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture
async def client_of() -> AsyncIterator[ClientOf]:
    """Makes clients that wait for nothing."""
    async with AsyncExitStack() as stack:

        def make(url: str, **options: Any) -> A2AClient:  # noqa: ANN401 - those of the client
            given = {"sleep": Waits(), "transport": httpx2.AsyncHTTPTransport(verify=PLAIN), **options}
            client = A2AClient(url, **given)
            stack.push_async_callback(client.close)
            return client

        yield make


async def heard(client: A2AClient, message: OutgoingMessage = MESSAGE) -> list[AgentEvent]:
    """Everything that a message brings."""
    return [event async for event in client.send_streaming(message)]


async def failure_of(client: A2AClient) -> AgentFailure:
    """What a message comes to."""
    with pytest.raises(AgentFailure) as caught:
        await heard(client)
    return caught.value


def once(*answers: Answer) -> Callable[[Asked], Answer]:
    """These answers, one after the other; the last one for good."""
    left = list(answers)

    def answer(asked: Asked) -> Answer:
        del asked
        return left.pop(0) if len(left) > 1 else left[0]

    return answer


# --- the card -------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("RF-08", "RF-09")
async def test_the_card_is_read_with_the_first_message_and_kept(client_of: ClientOf) -> None:
    async with raw_agent(once(event_stream(DONE))) as raw:
        client = client_of(raw.url)
        assert raw.cards == 0
        for _ in range(2):
            await heard(client)
        assert raw.cards == 1


@pytest.mark.requirement("RF-53")
async def test_a_card_that_is_only_at_its_older_name_is_found_there(client_of: ClientOf) -> None:
    async with raw_agent(once(event_stream(DONE))) as raw:
        raw.card_path = "/.well-known/agent.json"
        known = await client_of(raw.url).resolve_transport()
        assert known.card_url == f"{raw.url}/.well-known/agent.json"


@pytest.mark.requirement("RF-10")
async def test_no_card_at_all_is_said_with_the_place(client_of: ClientOf) -> None:
    async with raw_agent(once(event_stream(DONE))) as raw:
        raw.card_path = "/nowhere"
        with pytest.raises(Refused, match="There is no agent card at"):
            await client_of(raw.url).resolve_transport()


async def test_a_card_that_could_not_be_read_is_read_again(client_of: ClientOf) -> None:
    async with raw_agent(once(event_stream(DONE))) as raw:
        client = client_of(raw.url)
        raw.card_path = "/nowhere"
        with pytest.raises(Refused):
            await client.resolve_transport()
        raw.card_path = None
        assert len(await heard(client)) == 1


MUTE = Answer(headers={"Content-Type": "application/json"}, ending="open")


@pytest.mark.requirement("RF-93")
async def test_all_who_wait_for_the_card_share_one_attempt_and_its_failure(client_of: ClientOf) -> None:
    async with raw_agent(once(event_stream(DONE))) as raw:
        client = client_of(raw.url, idle_seconds=0.2)
        raw.card_answer = MUTE
        waited = await asyncio.gather(*(client.resolve_transport() for _ in range(20)), return_exceptions=True)
        assert {type(each) for each in waited} == {Silent}
        assert raw.cards == 1
        raw.card_answer = None
        known = await asyncio.gather(*(client.resolve_transport() for _ in range(20)))
        assert len(set(map(id, known))) == 1
        assert raw.cards == 2


async def test_one_who_waits_for_the_card_no_longer_leaves_the_attempt_to_the_others(client_of: ClientOf) -> None:
    async with raw_agent(once(event_stream(DONE))) as raw:
        feed = Feed()
        raw.card_answer = Answer(headers={"Content-Type": "application/json"}, feed=feed)
        client = client_of(raw.url)
        first, second = (asyncio.create_task(client.resolve_transport()) for _ in range(2))
        await raw.card_was_wanted.wait()
        first.cancel()
        await asyncio.wait({first})
        feed.send_bytes(json.dumps(raw.card).encode())
        feed.end()
        assert (await second).name == "Raw"
        assert (first.cancelled(), raw.cards) == (True, 1)


async def test_a_client_that_is_closed_waits_for_no_card(client_of: ClientOf) -> None:
    async with raw_agent(once(event_stream(DONE))) as raw:
        raw.card_answer = MUTE
        client = client_of(raw.url)
        waiting = asyncio.create_task(client.resolve_transport())
        await raw.card_was_wanted.wait()
        await client.close()
        await asyncio.wait({waiting})
        assert waiting.cancelled()


async def test_what_is_no_json_is_no_card(client_of: ClientOf) -> None:
    async with raw_agent(once(event_stream(DONE))) as raw:
        raw.card_answer = Answer(headers={"Content-Type": "text/html"}, pieces=[b"<html>Welcome</html>"])
        with pytest.raises(CardRefused, match="no agent card"):
            await client_of(raw.url).resolve_transport()


@pytest.mark.requirement("RF-66")
@pytest.mark.parametrize(
    "named", ["http://127.0.0.1:9", "http://localhost:9/x", "http://169.254.169.254/", "http://[::1]/"]
)
async def test_a_card_on_a_public_host_may_not_name_a_private_one(client_of: ClientOf, named: str) -> None:
    card = json.dumps({"capabilities": {"streaming": True}, "url": named})
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, text=card))
    with pytest.raises(CardRefused, match="private network"):
        await client_of("http://8.8.8.8", transport=transport).resolve_transport()
    trusting = client_of("http://8.8.8.8", transport=transport, trusted_origins=[named])
    assert (await trusting.resolve_transport()).interface.url == named


class Names(httpx2.AsyncBaseTransport):
    """Connects to nobody, but tells of it as the real transport does: a name is at the next of these addresses, the last one for good."""

    def __init__(self, **addresses: list[str]) -> None:
        self._addresses = addresses
        self.asked: list[str] = []
        self.hung_up = 0

    def get_extra_info(self, info: str) -> tuple[str, int]:
        assert info == "server_addr"
        if not self._address:
            raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")
        return self._address, 80

    async def aclose(self) -> None:
        self.hung_up += 1

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        left = self._addresses[request.url.host.replace(".example", "")]
        self._address = left.pop(0) if len(left) > 1 else left[0]
        await request.extensions["trace"]("connection.connect_tcp.started", {"host": request.url.host, "port": 80})
        await request.extensions["trace"]("connection.connect_tcp.complete", {"return_value": self})
        self.asked.append(str(request.url))
        if request.method == "GET":
            interface = {"url": "http://api.example", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
            return httpx2.Response(200, json={"capabilities": {"streaming": True}, "supportedInterfaces": [interface]})
        return httpx2.Response(200, json={"result": DONE})


@pytest.mark.requirement("RF-66")
@pytest.mark.parametrize("address", ["127.0.0.1", "10.1.2.3", "::1", "64:ff9b::7f00:1"])
async def test_a_name_that_has_become_that_of_a_private_host_is_hung_up_on(client_of: ClientOf, address: str) -> None:
    names = Names(card=["93.184.216.34"], api=["93.184.216.34", address])
    client = client_of("http://card.example", transport=names)
    assert len(await heard(client)) == 1
    failure = await failure_of(client)
    assert isinstance(failure, CardRefused)
    assert f"http://api.example:80 is at {address}" in failure.message
    assert "add its origin to a2a.trustedOrigins" in failure.message
    assert (names.asked[1:], names.hung_up) == (["http://api.example"], 1)


async def test_who_hangs_up_before_anything_is_said_is_tried_again(client_of: ClientOf) -> None:
    names = Names(card=["93.184.216.34"], api=["", "", "93.184.216.34"])
    assert len(await heard(client_of("http://card.example", transport=names))) == 1
    assert names.hung_up == 2


@pytest.mark.requirement("RF-66")
async def test_what_is_trusted_may_be_on_a_private_host_and_so_may_all_that_a_private_card_names(
    client_of: ClientOf,
) -> None:
    public = Names(card=["93.184.216.34"], api=["10.1.2.3"])
    assert await heard(client_of("http://card.example", transport=public, trusted_origins=["http://api.example"]))
    private = Names(card=["10.1.2.4"], api=["10.1.2.3"])
    assert await heard(client_of("http://card.example", transport=private))
    with pytest.raises(CardRefused):
        await heard(client_of("http://card.example", transport=Names(card=["93.184.216.34"], api=["10.1.2.3"])))


@pytest.mark.requirement("RF-66")
async def test_a_connection_to_a_private_host_is_hung_up_before_anything_is_said() -> None:
    async with raw_agent(once(event_stream(DONE))) as raw:
        peers = Peers(allowed=())
        http = AgentHttp(
            bearer=lambda: None, trusted=(), peers=peers, transport=httpx2.AsyncHTTPTransport(verify=PLAIN)
        )
        request = Request(method="GET", url=f"{raw.url}/tasks/t")
        peers.only_public = True
        with pytest.raises(CardRefused, match=r"is at 127\.0\.0\.1"):
            async with http.send(request, accept="*/*"):
                pass
        assert raw.asked == []
        peers.only_public = False
        async with http.send(request, accept="*/*") as response:
            assert response.status_code == 200
        assert peers.is_private(raw.url)
        await http.close()


@pytest.mark.parametrize(
    "url", ["http://h:99999", "http://[oops", "http://a b", "http://user:S3CR3T@h:99999/?key=S3CR3T"]
)
async def test_a_card_that_names_what_cannot_be_called_is_one_sentence(client_of: ClientOf, url: str) -> None:
    async with raw_agent(once(event_stream(DONE))) as raw:
        raw.card = {"capabilities": {"streaming": True}, "url": url}
        failure = await failure_of(client_of(raw.url))
        assert isinstance(failure, CardRefused)
        assert "The agent card's url is" in failure.message
        assert "S3CR3T" not in failure.message


# --- origins and the bearer -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("RF-65")
async def test_the_bearer_goes_to_the_cards_origin_and_to_trusted_ones_only(client_of: ClientOf) -> None:
    async with raw_agent(once(event_stream(DONE))) as home, raw_agent(once(event_stream(DONE))) as away:
        interface = {"url": away.url, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}
        home.card = {**home.card, "supportedInterfaces": [interface]}
        await heard(client_of(home.url, bearer=lambda: "secret"))
        await heard(client_of(home.url, bearer=lambda: "secret", trusted_origins=[away.url]))
        await heard(client_of(away.url, bearer=lambda: "secret"))
        assert [asked.headers.get("authorization") for asked in away.asked] == [None, *["Bearer secret"] * 2]


async def test_a_rotated_bearer_is_used_at_once(client_of: ClientOf) -> None:
    bearers = iter(["card", "first", "second"])
    async with raw_agent(once(event_stream(DONE))) as raw:
        client = client_of(raw.url, bearer=lambda: next(bearers))
        await heard(client)
        await heard(client)
        assert [asked.headers["authorization"] for asked in raw.asked] == ["Bearer first", "Bearer second"]


def to(url: str, status: int = 307) -> Answer:
    """A redirect."""
    return Answer(status=status, headers={"Location": url})


@pytest.mark.requirement("RF-65")
async def test_redirects_are_followed_within_the_origin_and_not_elsewhere(client_of: ClientOf) -> None:
    async with (
        raw_agent(once(event_stream(DONE))) as away,
        raw_agent(once(to("/moved"), event_stream(DONE))) as raw,
    ):
        assert len(await heard(client_of(raw.url))) == 1
        assert [asked.path for asked in raw.asked] == ["/message:stream", "/moved"]
        assert raw.asked[0].body == raw.asked[1].body
        raw.answer = once(to(f"{away.url}/message:stream"))
        failure = await failure_of(client_of(raw.url))
        assert isinstance(failure, Refused)
        assert "is not followed" in failure.message
        assert away.asked == []


@pytest.mark.parametrize(
    "location", ["http://h:99999/", "http://[oops", "http://a b/", "//u:S3CR3T@h:x/?key=S3CR3T", "ftp://h/"]
)
async def test_a_redirect_to_what_cannot_be_called_is_one_sentence(client_of: ClientOf, location: str) -> None:
    async with raw_agent(once(to(location))) as raw:
        failure = await failure_of(client_of(raw.url))
        assert isinstance(failure, Refused)
        assert "redirects (Location) to" in failure.message
        assert "S3CR3T" not in failure.message


async def test_redirects_in_a_circle_end(client_of: ClientOf) -> None:
    async with raw_agent(once(to("/message:stream"))) as raw:
        assert isinstance(await failure_of(client_of(raw.url)), Refused)


# --- retries --------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("RF-64")
@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_agent_is_asked_again_with_growing_pauses(client_of: ClientOf, status: int) -> None:
    busy = Answer(status=status)
    async with raw_agent(once(busy, busy, event_stream(DONE))) as raw:
        waits = Waits()
        client = client_of(raw.url, sleep=waits, backoff=Backoff(first=1.0, longest=8.0, random=lambda: 1.0))
        assert len(await heard(client)) == 1
        assert waits == [1.0, 2.0]
        assert len({asked.body for asked in raw.asked}) == 1


@pytest.mark.requirement("RF-64")
async def test_an_agent_may_say_when_to_come_back(client_of: ClientOf) -> None:
    busy = [Answer(status=429, headers={"Retry-After": after}) for after in ("7", "86400", "soon")]
    async with raw_agent(once(*busy, event_stream(DONE))) as raw:
        waits = Waits()
        await heard(client_of(raw.url, sleep=waits, backoff=Backoff(random=lambda: 0.0)))
        assert waits == [7.0, 30.0, 0.0]


@pytest.mark.requirement("RF-64")
async def test_patience_ends(client_of: ClientOf) -> None:
    async with raw_agent(once(Answer(status=503))) as raw:
        failure = await failure_of(client_of(raw.url, tries=3))
        assert isinstance(failure, Busy)
        assert len(raw.asked) == 3


@pytest.mark.requirement("RF-64")
async def test_an_agent_that_is_not_there_is_tried_again_until_it_is(client_of: ClientOf) -> None:
    (port,) = free_ports(1)
    stack = AsyncExitStack()
    started: list[RawAgent] = []

    async def start_meanwhile(seconds: float) -> None:
        del seconds
        if not started:
            started.append(await stack.enter_async_context(raw_agent(once(event_stream(DONE)), port=port)))

    async with stack:
        client = client_of(f"http://127.0.0.1:{port}", sleep=start_meanwhile)
        assert len(await heard(client)) == 1


async def test_nobody_there_is_said_without_secrets(client_of: ClientOf) -> None:
    (port,) = free_ports(1)
    failure = await failure_of(client_of(f"http://127.0.0.1:{port}", bearer=lambda: "secret", tries=2))
    assert isinstance(failure, Unreachable)
    assert failure.message == f"The agent at http://127.0.0.1:{port} cannot be reached."


@pytest.mark.requirement("RF-64")
@pytest.mark.parametrize(
    "answer",
    [
        Answer(status=500),
        Answer(status=401),
        Answer(status=400),
        event_stream(WORKING, ending="cut"),
        Answer(headers={"Content-Type": "text/event-stream"}, ending="cut"),
        json_answer({"error": {"code": -32603, "message": "no"}}),
    ],
    ids=["500", "401", "400", "broken", "broken at once", "error"],
)
async def test_what_may_have_been_accepted_is_not_sent_twice(client_of: ClientOf, answer: Answer) -> None:
    async with raw_agent(once(answer)) as raw:
        assert not isinstance(await failure_of(client_of(raw.url)), Unreachable)
        assert len(raw.asked) == 1


# --- what comes back ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content_type", ["application/json", "text/plain; charset=utf-8", "application/a2a+json"])
async def test_an_answer_that_is_one_object_is_one_event(client_of: ClientOf, content_type: str) -> None:
    answer = Answer(headers={"Content-Type": content_type}, pieces=[json.dumps(DONE).encode()])
    async with raw_agent(once(answer)) as raw:
        (event,) = await heard(client_of(raw.url))
        assert event.state == "completed"


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (
            Answer(headers={"Content-Type": "text/html"}, pieces=[b"<html>Log in</html>"]),
            Broken,
            "answered with text/html",
        ),
        (Answer(pieces=[b"hello"]), Broken, "something untyped"),
        (Answer(headers={"Content-Type": "text/event-stream"}, pieces=[b"data: {garbage\n\n"]), Broken, "no JSON"),
        (Answer(headers={"Content-Type": "application/json"}, pieces=[b"[1]"]), Broken, "no A2A event"),
        (Answer(status=401), Refused, "does not let this bot in"),
        (Answer(status=403), Refused, "does not let this bot in"),
        (json_answer({"detail": "Not\nFound"}, status=404), Refused, "HTTP 404: Not Found"),
        (Answer(status=500, pieces=[b"<html>" + b"x" * 200_000]), Refused, "HTTP 500."),
        (json_answer({"error": {"message": "too long " * 200}}, status=400), Refused, "…"),
        (event_stream(WORKING, {"error": {"message": "boom"}}), Refused, "boom"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_is_wrong_is_one_sentence(
    client_of: ClientOf, answer: Answer, kind: type[AgentFailure], says: str
) -> None:
    async with raw_agent(once(answer)) as raw:
        failure = await failure_of(client_of(raw.url))
        assert isinstance(failure, kind)
        assert says in failure.message
        assert "\n" not in failure.message


async def test_an_error_after_an_event_is_told_from_one_before_it(client_of: ClientOf) -> None:
    error = {"error": {"message": "boom"}}
    async with raw_agent(once(event_stream(WORKING, error), event_stream(error))) as raw:
        client = client_of(raw.url)
        assert [(await failure_of(client)).begun, (await failure_of(client)).begun] == [True, False]


@pytest.mark.requirement("RF-68")
async def test_silence_has_a_limit_and_a_keep_alive_is_a_sound(client_of: ClientOf) -> None:
    comments = Answer(headers={"Content-Type": "text/event-stream"}, pieces=[b": ping\n\n"] * 3, ending="open")
    async with raw_agent(once(comments)) as raw:
        failure = await failure_of(client_of(raw.url, idle_seconds=0.2))
        assert isinstance(failure, Silent)
        assert failure.message.endswith("has been silent for 0.2 seconds.")


async def test_an_agent_that_takes_the_question_and_never_answers_is_silent(client_of: ClientOf) -> None:
    never = Answer(headers={"Content-Type": "text/event-stream"}, ending="open")
    async with raw_agent(once(never)) as raw:
        assert isinstance(await failure_of(client_of(raw.url, idle_seconds=0.2)), Silent)


async def test_who_stops_listening_hangs_up(client_of: ClientOf) -> None:
    async with raw_agent(once(event_stream(WORKING, ending="open"))) as raw:
        events = client_of(raw.url).send_streaming(MESSAGE)
        assert (await anext(events)).state == "working"
        await events.aclose()
        await raw.left.wait()


# --- tasks ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("RF-15", "RF-57")
@pytest.mark.parametrize(
    ("binding", "generation"), [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("HTTP+JSON", "0.3"), ("JSONRPC", "0.3")]
)
async def test_cancelling_goes_to_the_agent_in_every_dialect(
    client_of: ClientOf, binding: str, generation: str
) -> None:
    async with raw_agent(once(json_answer({})), binding=binding, generation=generation) as raw:
        await client_of(raw.url).cancel_task("t")
        assert [asked.procedure for asked in raw.asked] == ["cancel"]


@pytest.mark.requirement("RF-16", "RF-57")
@pytest.mark.parametrize(
    "answer",
    [
        Answer(status=404),
        Answer(status=405),
        Answer(status=501),
        Answer(status=500),
        json_answer({"error": {"code": -32002, "message": "not cancelable"}}),
        Answer(headers={"Content-Type": "text/html"}, pieces=[b"<html>"]),
        Answer(ending="cut"),
    ],
    ids=["404", "405", "501", "500", "error", "html", "cut"],
)
async def test_cancelling_never_fails(client_of: ClientOf, answer: Answer) -> None:
    async with raw_agent(once(answer)) as raw:
        await client_of(raw.url).cancel_task("t")
        assert len(raw.asked) == 1


async def test_a_task_is_rejoined_and_asked_for(client_of: ClientOf) -> None:
    def answer(asked: Asked) -> Answer:
        task = {"id": "t", "status": {"state": "TASK_STATE_COMPLETED"}}
        return event_stream(WORKING, DONE) if asked.procedure == "rejoin" else json_answer(task)

    async with raw_agent(answer) as raw:
        client = client_of(raw.url)
        assert [event.state async for event in client.rejoin("t")] == ["working", "completed"]
        event = await client.get_task("t")
        assert event is not None
        assert event.ends_the_task
