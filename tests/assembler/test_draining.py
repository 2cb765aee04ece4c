"""What an agent is to be told: the finished runs of others."""

from __future__ import annotations

import pytest

from bubble.assembler import DrainFile, DrainPayload, extract_drain_payload
from tests.assembler.logs import Event, chunk, delta, end, finished, interrupt, native, numbered, said, start, started
from tests.assembler.threads import ASSEMBLER, run


def drained(*events: Event) -> DrainPayload:
    return run(extract_drain_payload(numbered(events), own_principal_id="bot", assembler=ASSEMBLER))


def run_of(who: str, run: str, *texts: str) -> list[Event]:
    said_all = [event for text in texts for event in said(text, run, who)]
    return [started(run, who, "user_input"), *said_all, finished(run, who)]


@pytest.mark.requirement("TA-86", "TA-87")
def test_the_finished_runs_of_others_are_drained_as_one_text() -> None:
    payload = drained(*run_of("ann", "a", "one ", "two"), *run_of("bob", "b", "three"))
    assert payload == DrainPayload("one two\n\nthree", (), ("a", "b"), 13)


@pytest.mark.requirement("TA-86")
def test_runs_that_are_open_and_own_runs_stay() -> None:
    payload = drained(started("a", "ann"), *said("open", "a", "ann"), *run_of("bot", "mine", "own"))
    assert payload == DrainPayload("", (), (), 9)


@pytest.mark.requirement("TA-87")
def test_texts_of_runs_that_overlap_are_each_in_one_piece_in_the_order_of_the_runs() -> None:
    log = [
        started("a", "ann"),
        started("b", "bob"),
        start("b", "bob"),
        start("a", "ann"),
        delta("b1 ", "b", "bob"),
        delta("a1 ", "a", "ann"),
        delta("b2", "b", "bob"),
        delta("a2", "a", "ann"),
        finished("b", "bob"),
        finished("a", "ann"),
    ]
    assert (drained(*log).text, drained(*log[:-1]).text) == ("a1 a2\n\nb1 b2", "b1 b2")


@pytest.mark.requirement("TA-87")
def test_files_are_drained_in_order_with_their_names() -> None:
    log = [
        started("a", "ann"),
        chunk("file", "a", "ann", url="data:,1", mediaType="text/plain", filename="1.txt"),
        chunk("file", "a", "ann", url="data:,2", mediaType="image/png"),
        chunk("file", "a", "ann", url=7, mediaType="image/png"),
        finished("a", "ann"),
    ]
    assert drained(*log).files == (DrainFile("data:,1", "text/plain", "1.txt"), DrainFile("data:,2", "image/png"))


@pytest.mark.requirement("TA-87")
def test_reasoning_and_native_parts_are_no_text() -> None:
    log = [started("a", "ann"), start("a", "ann", kind="reasoning"), delta("hm", "a", "ann", kind="reasoning")]
    assert (
        drained(*log, native("novel", "a", "ann", text="x"), *said("a", "a", "ann"), finished("a", "ann")).text == "a"
    )


@pytest.mark.requirement("TA-86")
def test_what_the_agent_says_in_the_run_of_another_is_not_told_to_it() -> None:
    log = [started("a", "ann"), *said("mine", "a", "bot"), *said("theirs", "a", "ann"), finished("a", "ann")]
    assert (drained(*log).text, drained(*log).run_ids) == ("theirs", ("a",))


@pytest.mark.requirement("TA-86")
def test_a_run_in_which_nothing_was_said_is_drained_so_that_it_can_be_settled() -> None:
    log = [started("a", "ann"), finished("a", "ann"), *run_of("bob", "b", "x")]
    assert (drained(*log).text, drained(*log).run_ids) == ("x", ("a", "b"))


@pytest.mark.requirement("TA-86")
def test_a_run_whose_beginning_is_missing_is_of_whoever_speaks_first_in_it() -> None:
    assert drained(*said("x", "a", "ann"), *said("y", "a", "bot"), finished("a", "ann")).run_ids == ("a",)
    assert drained(*said("y", "a", "bot"), *said("x", "a", "ann"), finished("a", "ann")).run_ids == ()
    assert drained(interrupt("a", "ann"), finished("a", "bot")).run_ids == ()


@pytest.mark.requirement("TA-87", "TA-98")
def test_halves_of_a_character_are_put_together() -> None:
    log = [started("a", "ann"), start("a", "ann"), delta("\ud83e", "a", "ann"), delta("\udee7", "a", "ann")]
    assert drained(*log, delta(7, "a", "ann"), end("a", "ann"), finished("a", "ann")).text == "🫧"


@pytest.mark.requirement("TA-86")
def test_of_no_events_nothing_is_drained() -> None:
    assert drained() == DrainPayload("", (), (), 0)
