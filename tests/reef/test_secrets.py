"""What opens the agent is shown to nobody, also where the agent says it."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable
from urllib.parse import quote

import pytest

from bubble.reef.agent import ReefAgent
from tests.amphibian.world import World
from tests.reef.raw_agent import event_stream, json_answer, raw_agent
from tests.reef.test_conversations import artifact, in_turn, status
from tests.reef.test_doctor import findings

pytestmark = pytest.mark.anyio

ReefTo = Callable[..., ReefAgent]
BEARER = "T0k-S3CR3T/1+z"
PASSWORD = "Pw-S3CR3T:2"
KEY = "K3y-S3CR3T 3"
SPELLINGS = [
    "invalid token {}",
    "Authorization: Bearer {}",
    "authorization={}",
    "Bearer: {}",
    "Bearer '{}'",
    'the bearer "{}"',
    "Bearer%20{}",
    "bearer\u00a0{}",
    "Bearer \u200b{}",
    "x-api-key: {}",
    "(scout:{}@agents.example)",
    "https:\\/\\/scout:{}@agents.example",
    "No route for /agents?key={}",
]


def echoes() -> list[str]:
    """Sentences with one of the secrets, as it is or in other letters."""
    whole = base64.b64encode(f"scout:{PASSWORD}".encode()).decode()
    spelt = [each for secret in (BEARER, PASSWORD, KEY) for each in (secret, quote(secret), quote(secret, safe=""))]
    odd = [BEARER.replace("S", "%53"), BEARER.replace("/", "\\/"), KEY.replace(" ", "+"), BEARER.upper(), whole]
    return [words.format(secret) for secret in [*spelt, *odd] for words in SPELLINGS]


def tells(text: str) -> bool:
    """Whether something of a secret is in a text."""
    plain = text.lower().replace("%53", "s")
    return "s3cr3t" in plain or base64.b64encode(b"scout:Pw-").decode().lower() in plain


async def test_what_an_agent_echoes_of_its_secrets_reaches_neither_thread_nor_log(
    world: World, reef_to: ReefTo, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="bubble")
    lines = echoes()
    answers = [
        event_stream(status("FAILED", {"text": "\n".join(lines)})),
        *(json_answer({"error": {"code": 500, "message": line}}, status=500) for line in lines[::12]),
        *(json_answer({"detail": line}, status=500) for line in lines[::17]),
    ]
    async with raw_agent(in_turn(*answers)) as raw:
        url = raw.url.replace("//", f"//scout:{quote(PASSWORD, safe='')}@")
        async with world.connector(reef_to(f"{url}/?key={quote(KEY)}", bearer=lambda: BEARER)):
            thread = await world.thread()
            told = []
            for _ in answers:
                await thread.say("Hi")
                told.append(await thread.answered(outcome="failed"))
    assert [line for text in told for line in text.splitlines() if tells(line)] == []
    assert not tells(caplog.text)


async def test_what_an_agent_says_as_its_reply_is_its_own(world: World, reef_to: ReefTo) -> None:
    words = f"The key of the house is {BEARER}."
    async with (
        raw_agent(in_turn(event_stream(artifact(words), status("COMPLETED")))) as raw,
        world.connector(reef_to(raw.url, bearer=lambda: BEARER)),
    ):
        thread = await world.thread()
        await thread.say("Hi")
        assert await thread.answered() == words


@pytest.mark.parametrize(
    "card",
    [
        {"name": f"Agent {BEARER}"},
        {"supportedInterfaces": [{"protocolBinding": "HTTP+JSON", "url": f"http://h/a b?key={KEY} {PASSWORD}"}]},
        {"supportedInterfaces": [{"protocolBinding": BEARER, "url": "/"}]},
        {"supportedInterfaces": [{"protocolBinding": "HTTP+JSON", "url": "/", "tenant": f"../{KEY}" * 200}]},
    ],
)
async def test_the_doctor_tells_no_secret_that_a_card_repeats(card: dict[str, object]) -> None:
    async with raw_agent(in_turn()) as raw:
        raw.card = {**raw.card, **card}
        url = raw.url.replace("//", f"//scout:{quote(PASSWORD, safe='')}@")
        found = await findings(raw, A2A_AGENT_CARD_URL=f"{url}/?key={quote(KEY)}", A2A_TOKEN=BEARER)
    assert [finding.sentence for finding in found.values() if tells(finding.sentence)] == []


async def test_the_doctor_tells_no_secret_that_an_agent_repeats_in_place_of_a_card() -> None:
    async with raw_agent(in_turn()) as raw:
        raw.card_answer = json_answer({"detail": f"Who is {BEARER}? There is no {KEY}."}, status=500)
        found = await findings(raw, A2A_AGENT_CARD_URL=f"{raw.url}/?key={quote(KEY)}", A2A_TOKEN=BEARER)
    assert found["card"].sentence == "The agent answered with HTTP 500: Who is …? There is no …."
