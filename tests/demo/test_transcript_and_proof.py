"""What the demonstration shows, and that its proof notices whatever goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from msgspec import Raw

from bubble.demo.proof import prove_readers, prove_replies
from bubble.demo.recordings import recording
from bubble.demo.transcript import Transcript
from bubble.demo.view import transcript_lines
from bubble.protocol.events import (
    BubbleEvent,
    MessagePart,
    RunFinished,
    RunStarted,
    SequencedEvent,
    encode_event,
    sequence,
)

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


REPLIES = [recording(name) for name in ("thinking", "weather", "greeting", "family")]


@pytest.fixture
def log() -> Log:
    """Four replies, stored one after the other."""
    return stored([event for number, reply in enumerate(REPLIES) for event in run_of(f"r{number}", reply)])


def test_a_transcript_says_what_was_said(log: Log) -> None:
    transcript = Transcript()
    for event in log:
        transcript.apply(event)
    assert transcript_lines(transcript.runs) == [
        "Echo   thinking",
        'Echo   weather({"city":"Paris"})  → {"temp":20}',
        "Echo   Hello, world",
        "Echo   👩‍👩‍👧 e\u0301 🇯🇵",
    ]
    assert all(said.finished for said in transcript.runs)


def test_a_text_grows_while_its_halves_of_characters_are_still_apart() -> None:
    transcript = Transcript()
    texts = []
    for event in stored(run_of("r", recording("family"))):
        transcript.apply(event)
        texts.append(transcript.runs[0].blocks[0].text if transcript.runs[0].blocks else "")
    assert "👩" in texts
    assert "\ufffd" in texts
    assert texts[-1].startswith("👩‍👩‍👧")


def test_a_whole_log_proves_itself(log: Log) -> None:
    claims = [*prove_readers(log, {"Ada": list(log)}), *prove_replies(log, REPLIES, by="echo")]
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
    claim = prove_replies(harmed, REPLIES, by="echo")[0]
    assert (claim.holds, claim.failure) == (False, "reply 1 differs at chunk 3")


def test_a_reply_that_was_cut_short_is_found(log: Log) -> None:
    assert not prove_replies(log[:-1], REPLIES, by="echo")[0].holds
    assert not prove_replies([*log[:-2], log[-1]], REPLIES, by="echo")[0].holds
