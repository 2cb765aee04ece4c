"""Each figure can be taken, and is not fooled about what it counts. Nothing in here is timed."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("the figures are taken on Linux", allow_module_level=True)

from bench.__main__ import main
from bench.figure import Bar, Bench, Figure, Parties, Row, Scale
from bench.figures import FIGURES
from bench.load.closed import HttpAnswers
from bench.load.events import EVENT_BYTES, Deliveries, VerificationError, part_event, verify_deliveries
from bench.load.readers import Reader, Sender, Witness, fan_out, verify_ends
from bench.load.redis import RedisAnswers, xadd
from bench.load.wire import subscribe
from bench.report import table
from bench.runner import run_figure
from bench.servers.browser import CHROMIUM
from bubble.hub.encodings import WEBSOCKET_FRAMES
from bubble.protocol.events import decode_event, sequence
from tests.interop.ai_sdk.oracle import MISSING

THREAD = "thread-1"
TINY = Scale(rounds=1, factor=0.001)


def frames(first: int, last: int) -> bytes:
    """Deliveries as the product makes them."""
    at = "2026-01-02T03:04:05.678Z"
    texts = [sequence(part_event(), seq=seq, created_at=at) for seq in range(first, last + 1)]
    return b"".join(WEBSOCKET_FRAMES.encode(THREAD, texts))


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two ends of a TCP connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        far = socket.create_connection(listening.getsockname())
        near, _ = listening.accept()
    with far, near:
        yield near, far


def needs_what_is_missing(row: Row) -> bool:
    """Whether the row has a party that is not here."""
    if CHROMIUM is None and set(row.parties) <= {"pixel", "view", "hour", "idle"}:
        return True
    return any(party == "redis" or (party.endswith("npm ai") and MISSING is not None) for party in row.parties)


@pytest.mark.slow
@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_every_figure_can_be_taken(figure: Figure, tmp_path: Path) -> None:
    told: list[str] = []
    lines = run_figure(figure, Bench(directory=tmp_path, scale=TINY), tell=told.append)
    assert [line.title for line in lines] == [row.title for row in figure.rows if not needs_what_is_missing(row)]
    assert told


def test_the_bench_prints_json_on_demand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(
        ["--json", "--quick", "--rounds", "1", "--store", "memory:", "--directory", str(tmp_path), "http-appends-1"]
    )
    (figure, *_) = json.loads(capsys.readouterr().out)["figures"]
    assert code == 0
    assert figure["figure"] == "http-appends-1"
    assert figure["bubble"]["median"] > 0
    assert list(tmp_path.iterdir()) == []


def test_the_bench_refuses_a_figure_that_it_does_not_have(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["fan-in"])
    assert exit_.value.code == 2
    assert "there is no figure fan-in" in capsys.readouterr().err


def test_the_event_is_what_it_is_said_to_be() -> None:
    event = part_event()
    assert len(event) == EVENT_BYTES
    assert decode_event(event).text == event


def test_how_much_a_reader_gets_is_known_to_the_byte() -> None:
    assert len(frames(3, 1_234)) == Deliveries(THREAD).total(3, 1_234)
    verify_deliveries(frames(3, 1_234), Deliveries(THREAD), first=3, last=1_234)


@pytest.mark.parametrize(
    "received",
    [frames(3, 8), frames(3, 5) + frames(7, 9), frames(3, 9) + frames(9, 9), frames(3, 5) + frames(5, 9), b""],
    ids=["short", "gap", "long", "double", "nothing"],
)
def test_a_delivery_that_is_missing_or_doubled_is_found(received: bytes) -> None:
    with pytest.raises(VerificationError):
        verify_deliveries(received, Deliveries(THREAD), first=3, last=9)


def test_a_sender_sends_and_a_reader_counts_everything(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    frame, times = b"0123456789", 100_001
    reader = Reader(far, len(frame) * times)
    fan_out([reader], Sender(near, frame, times))
    assert reader.left == 0
    assert reader.end == (frame * times)[-len(reader.end) :]


def test_a_reader_that_gets_too_much_is_found(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    near.sendall(b"12345")
    with pytest.raises(VerificationError):
        fan_out([Reader(far, 4)])


def test_a_reader_that_is_cut_off_is_found(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    near.sendall(b"123")
    near.close()
    with pytest.raises(VerificationError):
        fan_out([Witness(far, 4)])


def test_readers_of_the_same_thread_must_end_alike(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    near.sendall(b"1234")
    reader = Reader(far, 4)
    fan_out([reader])
    verify_ends([reader], b"...1234")
    with pytest.raises(VerificationError):
        verify_ends([reader], b"...1235")


@pytest.mark.parametrize("length", [90, 124, 125, 126, 200])
def test_a_confirmation_is_read_to_its_end_and_no_further(
    pair: tuple[socket.socket, socket.socket], length: int
) -> None:
    near, far = pair
    payload = b'{"type":"thread.subscription_opened","threadId":"thread-1","throughSeq":2}'.ljust(length)
    head = bytes((0x81, length)) if length < 126 else b"\x81\x7e" + length.to_bytes(2, "big")
    near.sendall(head + payload + b"event")
    subscribe([far], [THREAD], from_seq=3)
    assert far.recv(100) == b"event"


@pytest.mark.parametrize("cut", [1, 5, 20, 60, 70])
def test_an_answer_is_complete_only_when_all_of_it_has_come(cut: int) -> None:
    answer = b"HTTP/1.1 201 Created\r\ncontent-length: 10\r\nx-request-id: 123456\r\n\r\n0123456789"
    answers = HttpAnswers()
    for _ in range(2):
        assert not answers.feed(answer[:cut])
        assert answers.feed(answer[cut:])


@pytest.mark.parametrize("answer", [b"HTTP/1.1 429 No\r\ncontent-length: 0\r\n\r\n", b"HTTP/1.1 201 Yes\r\n\r\n"])
def test_an_answer_that_is_not_as_it_should_be_is_found(answer: bytes) -> None:
    with pytest.raises(VerificationError):
        HttpAnswers().feed(answer)


def test_an_answer_of_redis_is_an_id() -> None:
    assert xadd(b"{}").startswith(b"*5\r\n$4\r\nXADD\r\n")
    answers = RedisAnswers()
    assert not answers.feed(b"$15\r\n1792393")
    assert answers.feed(b"848444-0\r\n")
    with pytest.raises(VerificationError):
        answers.feed(b"-ERR unknown command\r\n")


def numbers(*, ours: list[float], theirs: list[float], bar: Bar) -> Figure:
    """A figure without a measurement."""

    def parties(bench: Bench, stack: ExitStack) -> Parties:  # noqa: ARG001
        mine, others = iter(ours), iter(theirs)
        return {"bubble": lambda: {"rate": next(mine)}, "other": lambda: {"rate": next(others)}}

    row = Row(
        title="numbers",
        unit="/s",
        parties=("bubble", "other"),
        ours=lambda measured: measured["bubble"]["rate"],
        reference=lambda measured: measured["other"]["rate"],
        against="other numbers",
        bar=bar,
    )
    unavailable = Row(title="absent", unit="/s", parties=("bubble", "nobody"), ours=lambda _: 0.0)
    return Figure(name="numbers", open=parties, rows=(row, unavailable))


def test_a_ratio_is_the_median_of_the_rounds_and_a_row_without_its_party_is_left_out(tmp_path: Path) -> None:
    figure = numbers(ours=[10, 1, 30], theirs=[5, 1, 6], bar=Bar(at_least=2))
    (line,) = run_figure(figure, Bench(directory=tmp_path, scale=Scale(rounds=3, factor=1)), tell=lambda _: None)
    assert (line.ours.median, line.ours.least, line.ours.most) == (10, 1, 30)
    assert line.ratio is not None
    assert line.ratio.median == 2
    assert line.holds is True
    assert "2.00 ×" in table([line])


@pytest.mark.parametrize(
    ("bar", "holds"),
    [
        (Bar(at_least=2), True),
        (Bar(at_least=2.1), False),
        (Bar(at_most=2), True),
        (Bar(at_most=1.9), False),
        (Bar(of="value", at_most=100), True),
        (Bar(of="value", at_most=99), False),
    ],
)
def test_a_bar_is_about_the_ratio_or_the_value(bar: Bar, *, holds: bool) -> None:
    assert bar.holds(value=100, ratio=2) is holds
