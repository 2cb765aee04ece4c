"""Assemblers that follow what client and server have in common (spec 4, "Negotiated providers")."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from bubble.assembler import MessagePart, NativePart, ThreadSnapshot
from bubble.client import BubbleConnection, negotiation
from bubble.client.answers import Extension as Offered
from bubble.client.answers import ProtocolInfo
from bubble.client.negotiation import AssemblerProvider, Extensions
from bubble.extensions import Extension
from bubble.protocol.errors import Unavailable
from bubble.protocol.events import SequencedEvent
from bubble.protocol.jsontext import JSONValue, dump_json
from bubble.protocol.limits import Limits

pytestmark = pytest.mark.anyio


class Mention:
    """A part handler of an application's own."""

    def __init__(self, kind: str = "mention") -> None:
        self.kind = kind

    def to_chunks(self, part: NativePart, /) -> list[dict[str, JSONValue]]:
        return [{"type": f"data-app-{self.kind}", "data": part["who"]}]

    def from_ui_part(self, part: MessagePart, /) -> NativePart | None:
        return {"kind": self.kind, "who": part["data"]} if part["type"] == f"data-app-{self.kind}" else None


def extension(name: str, version: int = 1, *, kind: str | None = None) -> Extension:
    return Extension(name=name, version=version, part_handlers=(Mention(kind or name),))


class Server:
    """Says which extensions it has."""

    def __init__(self, *offered: tuple[str, int]) -> None:
        self.offered: Sequence[tuple[str, int]] = offered
        self.is_gone = False

    async def ask(self) -> ProtocolInfo:
        if self.is_gone:
            raise Unavailable("It is gone.")
        extensions = [Offered(name=name, version=version) for name, version in self.offered]
        return ProtocolInfo(protocol_version=1, limits=Limits(), extensions=extensions)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[Extension]:
    """What is installed here."""
    extensions: list[Extension] = []
    monkeypatch.setattr(negotiation, "installed_extensions", lambda: tuple(extensions))
    return extensions


@pytest.fixture
def provider() -> AssemblerProvider:
    return AssemblerProvider()


def a_part(kind: str) -> SequencedEvent:
    event = {"principalId": "ann", "runId": "r", "version": "bubble-v1", "part": {"kind": kind, "who": "bob"}}
    stored = {"seq": 1, "createdAt": "2026-05-06T12:34:56.789Z", "type": "message_part", **event}
    return SequencedEvent.from_text(dump_json(stored))


async def shown(provider: AssemblerProvider, kind: str = "mention") -> JSONValue:
    """How an assembler of the provider shows a part of this kind: the type of what it becomes."""
    snapshot: ThreadSnapshot = await provider.create().assemble([a_part(kind)])
    [message] = snapshot.messages
    [part] = message["parts"]
    return part["type"]


LOSSLESS = "data-bubble-extension"


@pytest.mark.requirement("TA-C-02")
async def test_before_negotiation_nothing_is_ready_and_only_the_core_is_known(provider: AssemblerProvider) -> None:
    assert (provider.ready, provider.revision) == (False, 0)
    assert await shown(provider) == LOSSLESS


@pytest.mark.requirement("TA-C-01", "TA-C-02")
@pytest.mark.parametrize(
    ("here", "there", "shows"),
    [
        (extension("mention"), ("mention", 1), "data-app-mention"),
        (extension("mention", 2), ("mention", 2), "data-app-mention"),
        (extension("mention", 2), ("mention", 1), LOSSLESS),
        (extension("mention"), ("other", 1), LOSSLESS),
        (None, ("mention", 1), LOSSLESS),
        (extension("mention"), None, LOSSLESS),
    ],
    ids=["both", "both, a later version", "another version", "another one", "the server only", "the client only"],
)
async def test_handlers_are_those_that_both_sides_have_in_the_same_version(
    provider: AssemblerProvider,
    installed: list[Extension],
    here: Extension | None,
    there: tuple[str, int] | None,
    shows: str,
) -> None:
    installed.extend([here] if here is not None else [])
    server = Server(*([there] if there is not None else []))
    common = await Extensions(server.ask, provider).negotiate()
    assert provider.ready
    assert await shown(provider) == shows
    assert list(common) == ([here] if shows != LOSSLESS else [])


@pytest.mark.requirement("TA-C-02")
async def test_a_negotiation_that_fails_settles_nothing(
    provider: AssemblerProvider, installed: list[Extension]
) -> None:
    installed.append(extension("mention"))
    server = Server(("mention", 1))
    extensions = Extensions(server.ask, provider)
    server.is_gone = True
    with pytest.raises(Unavailable):
        await extensions.negotiate()
    assert [provider.ready] == [False]
    server.is_gone = False
    await extensions.negotiate()
    server.is_gone = True
    with pytest.raises(Unavailable):
        await extensions.negotiate()
    assert (provider.ready, provider.revision, await shown(provider)) == (True, 0, "data-app-mention")


@pytest.mark.requirement("TA-C-03", "TA-C-04")
async def test_the_revision_rises_when_a_later_set_differs_and_listeners_learn_of_it(
    provider: AssemblerProvider, installed: list[Extension]
) -> None:
    installed.extend([extension("mention"), extension("poll")])
    server = Server(("mention", 1), ("poll", 1))
    extensions = Extensions(server.ask, provider)
    heard: list[int] = []
    provider.subscribe(lambda: heard.append(provider.revision))
    await extensions.negotiate()
    assert (provider.revision, heard) == (0, [])
    server.offered = [("poll", 1), ("mention", 1), ("elsewhere", 3)]
    await extensions.negotiate()
    assert (provider.revision, heard) == (0, [])
    for offered in ([("mention", 1)], [("mention", 1)], [], [("poll", 1)]):
        server.offered = offered
        await extensions.negotiate()
    assert (provider.revision, heard) == (3, [1, 2, 3])
    assert [await shown(provider, kind) for kind in ("mention", "poll")] == [LOSSLESS, "data-app-poll"]


@pytest.mark.requirement("TA-C-04")
async def test_a_listener_that_ended_its_subscription_hears_nothing(
    provider: AssemblerProvider, installed: list[Extension]
) -> None:
    installed.append(extension("mention"))
    heard: list[str] = []
    end_first = provider.subscribe(lambda: heard.append("first"))
    provider.subscribe(lambda: heard.append("second"))
    provider.settle([])
    end_first()
    end_first()
    provider.settle(installed)
    assert heard == ["second"]


async def test_a_listener_may_end_subscriptions_and_one_that_fails_holds_up_no_other(
    provider: AssemblerProvider,
) -> None:
    heard: list[str] = []

    def failing() -> None:
        heard.append("failing")
        end()
        raise LookupError("no assembler")

    end = provider.subscribe(failing)
    provider.subscribe(lambda: heard.append("another"))
    provider.settle([])
    with pytest.raises(LookupError):
        provider.settle([extension("mention")])
    provider.settle([])
    assert (heard, provider.revision) == (["failing", "another", "another"], 2)


@pytest.mark.requirement("TA-C-05")
async def test_each_assembler_is_a_new_one_of_the_set_that_is_settled_then(provider: AssemblerProvider) -> None:
    provider.settle([])
    before = provider.create()
    assert provider.create() is not before
    provider.settle([extension("mention")])
    snapshot = await before.assemble([a_part("mention")])
    assert snapshot.messages[0]["parts"][0]["type"] == LOSSLESS
    assert await shown(provider) == "data-app-mention"


async def test_handlers_that_collide_are_told_when_an_assembler_is_made(provider: AssemblerProvider) -> None:
    provider.settle([extension("one", kind="mention"), extension("two", kind="mention")])
    with pytest.raises(ValueError, match="mention"):
        provider.create()


async def test_of_negotiations_at_the_same_time_the_last_answer_counts(
    provider: AssemblerProvider, installed: list[Extension]
) -> None:
    installed.append(extension("mention"))
    answers = [asyncio.get_running_loop().create_future() for _ in range(2)]
    questions = iter(answers)

    async def ask() -> ProtocolInfo:
        return await next(questions)

    extensions = Extensions(ask, provider)
    tasks = [asyncio.create_task(extensions.negotiate()) for _ in range(2)]
    await asyncio.sleep(0)
    answers[1].set_result(await Server(("mention", 1)).ask())
    await asyncio.sleep(0)
    answers[0].set_result(await Server().ask())
    assert [len(await task) for task in tasks] == [0, 1]
    assert await shown(provider) == "data-app-mention"


@pytest.mark.requirement("TA-C-01", "PR-6-11")
async def test_the_bundled_extension_is_found_on_both_sides_of_a_real_connection(
    bubble_client: BubbleConnection,
) -> None:
    common = await bubble_client.extensions.negotiate()
    assert ("artifacts", 1) in [(each.name, each.version) for each in common]
    thread = await bubble_client.create_thread()
    async with bubble_client.run(thread.thread_id) as run:
        await run.artifact("a", text="x")
    events = [event async for event in bubble_client.iter_events(thread.thread_id)]
    snapshot = await bubble_client.assembler.create().assemble(events)
    assert [part["type"] for part in snapshot.messages[-1]["parts"]] == ["data-bubble-artifact"]
