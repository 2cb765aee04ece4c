"""The proof of the demonstration notices whatever goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest
from msgspec import Raw

from bubble.assembler import BubbleMessage, create_assembler
from bubble.demo.assembled import prove_messages
from bubble.demo.proof import Claim, prove_readers, prove_replies
from bubble.demo.recordings import recording
from bubble.protocol.events import (
    BubbleEvent,
    MessagePart,
    RunFinished,
    RunStarted,
    SequencedEvent,
    encode_event,
    sequence,
)
from tests.assembler.logs import Event, approval, chunk, finished, interrupt, numbered, said, started, tool

TIME = "2026-05-06T12:34:56.789Z"
Log = list[SequencedEvent]


def stored(events: Sequence[BubbleEvent]) -> Log:
    return [
        SequencedEvent.from_stored(sequence(encode_event(event), seq=seq, created_at=TIME))
        for seq, event in enumerate(events, start=1)
    ]


def run_of(run_id: str, chunks: Sequence[bytes]) -> list[BubbleEvent]:
    return [
        RunStarted(principal_id="echo", run_id=run_id, kind="agent_work"),
        *(MessagePart(principal_id="echo", run_id=run_id, part=Raw(each), version="ai-sdk-v6") for each in chunks),
        RunFinished(principal_id="echo", run_id=run_id, outcome="success"),
    ]


REPLIES = {name: recording(name) for name in ("thinking", "weather", "greeting", "family")}


@pytest.fixture
def log() -> Log:
    """Four replies, stored one after the other."""
    return stored([event for run_id, reply in REPLIES.items() for event in run_of(run_id, reply)])


def test_a_whole_log_proves_itself(log: Log) -> None:
    claims = [*prove_readers(log, {"Ada": list(log)}), *prove_replies(log, REPLIES)]
    assert [claim.holds for claim in claims] == [True, True, True]


@pytest.mark.parametrize(
    ("harm", "failure"),
    [
        (lambda seen: seen[:-1], "the reader got 49"),
        (lambda seen: [*seen[:9], *seen[10:]], "event 10 has seq 10 in the log, the reader got seq 11"),
        (lambda seen: [*seen[:9], seen[8], *seen[9:]], "event 10 has seq 10 in the log, the reader got seq 9"),
        (lambda seen: [*seen[:9], seen[10], seen[9], *seen[11:]], "event 10 has seq 10"),
    ],
    ids=["lost at the end", "lost", "doubled", "swapped"],
)
def test_a_reader_who_missed_or_doubled_something_is_found_out(
    log: Log, harm: Callable[[Log], Log], failure: str
) -> None:
    claim = prove_readers(log, {"Ada": harm(log)})[1]
    assert not claim.holds
    assert failure in claim.failure


def test_a_gap_in_the_log_is_found(log: Log) -> None:
    claim = prove_readers([*log[:4], *log[5:]], {})[0]
    assert (claim.holds, claim.failure) == (False, "seq 5 is missing, 6 stands there")


def test_a_single_changed_byte_of_a_reply_is_found(log: Log) -> None:
    text = log[3].text.replace(b"ing", b"inG")
    harmed = [*log[:3], SequencedEvent.from_stored(text), *log[4:]]
    claim = prove_replies(harmed, REPLIES)[0]
    assert (claim.holds, claim.failure) == (False, "thinking differs at chunk 3")


def test_a_reply_that_was_cut_short_is_found(log: Log) -> None:
    assert prove_replies(log[:-1], REPLIES)[0].failure == "family is not stored whole"
    assert prove_replies([*log[:-2], log[-1]], REPLIES)[0].failure == "family differs at chunk 19"


# What happens in the two runs in which the bot of the play does something of its own.
REFUND: tuple[Event, ...] = (
    started("refund"),
    tool("c", "refund", name="refund"),
    chunk("tool-approval-request", "refund", toolCallId="c", approvalId="c"),
    approval("c", "refund", who="grace"),
    chunk("tool-output-available", "refund", toolCallId="c", output={}),
    finished("refund"),
)
COUNT: tuple[Event, ...] = (
    started("count"),
    *said("1 2 3", "count"),
    interrupt("count", who="ada"),
    finished("count", outcome="interrupted"),
)


async def claims_of(
    events: Sequence[Event],
    *,
    replies: Mapping[str, Sequence[bytes]] | None = None,
    harm: Callable[[Sequence[BubbleMessage]], Sequence[BubbleMessage]] = lambda messages: messages,
) -> list[Claim]:
    log, assembler = numbered(events), create_assembler()
    messages = (await assembler.assemble(log)).messages
    followed, served = harm(messages), harm(messages)
    return await prove_messages(log, followed, served, replies or {}, assembler=assembler)


@pytest.mark.anyio
class TestMessages:
    """What is claimed of the messages."""

    async def test_what_is_right_proves_itself(self) -> None:
        assert [claim.holds for claim in await claims_of([*REFUND, *COUNT])] == [True] * 5

    @pytest.mark.parametrize(
        ("harm", "failure"),
        [
            (lambda seen: seen[:-1], "the log makes 4 messages, here are 3"),
            (lambda seen: [seen[1], seen[0], *seen[2:]], "message refund is another one"),
            (lambda seen: [{**seen[0], "parts": []}, *seen[1:]], "message refund is another one"),
        ],
        ids=["lost", "swapped", "changed"],
    )
    async def test_a_message_that_was_followed_or_served_as_another_one_is_found(
        self, harm: Callable[[Sequence[BubbleMessage]], Sequence[BubbleMessage]], failure: str
    ) -> None:
        claims = (await claims_of([*REFUND, *COUNT], harm=harm))[:2]
        assert [(claim.holds, claim.failure) for claim in claims] == [(False, failure)] * 2

    async def test_a_reply_whose_message_is_another_one_is_found(self) -> None:
        chunks = [b'{"type":"text-start","id":"1"}', b'{"type":"text-delta","id":"1","delta":"One"}']
        same = await claims_of([started("a"), *said("One", "a"), finished("a")], replies={"a": chunks})
        other = await claims_of([started("a"), *said("Two", "a"), finished("a")], replies={"a": chunks})
        missing = await claims_of([started("a"), finished("a")], replies={"a": chunks})
        assert [claims[2].failure for claims in (same, other, missing)] == [
            "",
            "part 1 of a is another one",
            "a has 0 parts of 1",
        ]

    @pytest.mark.parametrize(
        ("refund", "failure"),
        [
            (REFUND[:-2], "its call is not there once, with an outcome: ['approval-responded']"),
            ((*REFUND[:3], *REFUND[4:]), "its call is not approved"),
            ((*REFUND[:3], approval("c", "refund", who="ada"), *REFUND[4:]), "it was decided by ['ada']"),
            ((), "its call is not there once, with an outcome: []"),
        ],
    )
    async def test_a_refund_that_was_not_made_as_it_must_be_is_found(
        self, refund: Sequence[Event], failure: str
    ) -> None:
        assert (await claims_of(refund))[3].failure == failure

    @pytest.mark.parametrize(
        ("count", "failure"),
        [
            ((*COUNT[:-1], finished("count", outcome="success")), "its outcome is success"),
            ((started("count"), *said("1 3", "count"), COUNT[-1]), "it says 1 3"),
            ((), "there is no such message"),
        ],
    )
    async def test_a_count_that_went_on_or_has_a_gap_is_found(self, count: Sequence[Event], failure: str) -> None:
        assert (await claims_of(count))[4].failure == failure
