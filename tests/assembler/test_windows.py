"""Windows: what came after the line."""

from __future__ import annotations

import pytest

from tests.assembler.logs import (
    Event,
    approval,
    bubble,
    chunk,
    data_of,
    delta,
    end,
    finished,
    interrupt,
    joined,
    native,
    numbered,
    parts,
    reaction,
    result,
    said,
    shown,
    start,
    started,
    texts,
    tool,
)
from tests.assembler.threads import ASSEMBLER, applied, apply, run, window_after


@pytest.mark.requirement("TA-19", "TA-80")
def test_a_text_that_was_deferred_is_read_whole_with_what_came_after() -> None:
    thread = applied([started(), start(), delta("hel")])
    assert shown(run(thread.window()).messages) == [("r", "hel")]
    apply(thread, delta("lo"))
    assert shown(run(thread.window()).messages) == [("r", "hello")]


@pytest.mark.requirement("TA-19", "TA-16", "TA-81")
def test_a_text_that_was_cleared_reads_only_what_came_after_and_the_snapshot_reads_all() -> None:
    thread = applied([started(), start(), delta("hel")])
    run(thread.clear_window(3))
    apply(thread, delta("lo"))
    assert shown(run(thread.window()).messages) == [("r", "lo")]
    assert shown(run(thread.snapshot()).messages) == [("r", "hello")]


@pytest.mark.requirement("TA-10")
def test_clearing_what_a_window_covered_keeps_what_came_meanwhile() -> None:
    thread = applied([started(), start(), delta("a")])
    window = run(thread.window())
    apply(thread, delta("b"), interrupt())
    run(thread.clear_window(window.through_seq))
    assert shown(run(thread.window()).messages) == [("r", "b"), ("r~1", "")]


@pytest.mark.requirement("TA-17", "TA-83")
@pytest.mark.parametrize(
    "later",
    [
        [reaction(3)],
        [reaction(1)],
        [finished(outcome="failed")],
        [end()],
        [chunk("message-metadata", messageMetadata={"a": 1})],
        [chunk("start-step"), chunk("finish-step")],
        [chunk("error", errorText="e")],
        [delta("")],
        [started("s"), chunk("novel"), delta("orphan", run="s")],
    ],
)
def test_what_shows_nothing_new_brings_no_cleared_text_back(later: list[Event]) -> None:
    assert window_after(3, [started(), start(), delta("a"), *later]) == []


@pytest.mark.requirement("TA-83")
def test_a_window_lists_reactions_on_what_it_shows_and_no_others() -> None:
    log = [started(), start(), delta("a"), reaction(3), delta("b"), reaction(3, who="bob"), reaction(5, emoji="🫧")]
    [message] = window_after(3, log)
    assert bubble(message)["reactions"] == {"🫧": ["ann"]}


@pytest.mark.requirement("TA-83")
def test_a_reaction_on_the_cleared_beginning_of_a_run_is_not_listed_in_a_window_on_the_run() -> None:
    [message] = window_after(1, [started(), *said("a"), reaction(1), reaction(2, who="bob")])
    assert bubble(message)["reactions"] == {"👍": ["bob"]}


@pytest.mark.requirement("TA-81")
def test_segments_and_ids_of_a_window_are_those_of_the_snapshot() -> None:
    log = [started(), *said("a"), interrupt(), start(), delta("b"), joined(), delta("c")]
    assert shown(window_after(7, log)) == [("~8", ""), ("r~3", "c")]
    assert shown(window_after(4, log)) == [("r~1", ""), ("r~2", "b"), ("~8", ""), ("r~3", "c")]


@pytest.mark.requirement("TA-81", "TA-98")
def test_a_character_cut_by_the_line_shows_its_later_half() -> None:
    log = [started(), start(), delta("x🫧é\ud83e"), delta("\udee7y"), delta("🫧")]
    assert [texts(message) for message in window_after(3, log)] == ["\udee7y🫧"]
    assert [texts(message) for message in window_after(4, log)] == ["🫧"]


@pytest.mark.requirement("TA-81")
def test_a_block_carried_over_by_the_event_on_the_line_shows_what_came_after_that() -> None:
    assert shown(window_after(4, [start(), delta("a"), interrupt(), delta("b"), delta("c")])) == [("r~2", "c")]


@pytest.mark.requirement("TA-83")
def test_a_reaction_that_was_repeated_on_what_is_cleared_is_still_on_what_is_not() -> None:
    log = [started(), start(), delta("a"), delta("b"), reaction(4), reaction(3)]
    assert bubble(window_after(3, log)[0])["reactions"] == {"👍": ["ann"]}


@pytest.mark.requirement("TA-82")
@pytest.mark.parametrize("outcome", [approval(), result(), chunk("tool-output-available", toolCallId="c", output=1)])
def test_an_outcome_in_a_window_shows_its_call(outcome: Event) -> None:
    log = [started(), *said("a"), tool(), outcome]
    message = window_after(5, log)[0]
    [part] = message["parts"]
    assert (part["type"], part["toolCallId"], part["input"]) == ("tool-search", "c", {"q": 1})
    assert part["state"] in ("approval-responded", "output-available")


@pytest.mark.requirement("TA-82")
def test_an_input_that_goes_on_after_the_line_is_shown_whole() -> None:
    log = [
        chunk("tool-input-start", toolCallId="c", toolName="search"),
        chunk("tool-input-delta", toolCallId="c", inputTextDelta='{"q":'),
        chunk("tool-input-delta", toolCallId="c", inputTextDelta="1}"),
    ]
    [message] = window_after(2, log)
    assert parts(message, "tool-search")[0]["input"] == {"q": 1}


@pytest.mark.requirement("TA-81")
def test_data_that_was_replaced_after_the_line_is_shown_as_it_is_now() -> None:
    log = [chunk("data-x", id="1", data=1), chunk("data-x", id="2", data=2), chunk("data-x", id="1", data=3)]
    assert [data_of(message) for message in window_after(2, log)] == [[3]]


@pytest.mark.requirement("TA-81")
def test_an_artifact_that_grew_after_the_line_is_shown_as_it_is_now() -> None:
    log = [
        native("artifact", artifactId="a", op="create", text="one "),
        native("artifact", artifactId="a", op="append", text="two"),
    ]
    assert [data_of(message) for message in window_after(1, log)] == [[{"artifactId": "a", "text": "one two"}]]


@pytest.mark.requirement("TA-84")
def test_a_window_reaches_to_the_head_even_when_it_is_empty() -> None:
    thread = applied([started(), *said("a")])
    run(thread.clear_window(4))
    window = run(thread.window())
    assert (window.messages, window.through_seq) == ((), 4)
    assert run(run_window_of_nothing()) == 0


async def run_window_of_nothing() -> int:
    return (await ASSEMBLER.open().window()).through_seq


@pytest.mark.requirement("TA-85")
@pytest.mark.parametrize("seq", [3, 2, 0, -1])
def test_clearing_what_is_cleared_already_does_nothing(seq: int) -> None:
    thread = applied([started(), start(), delta("a"), delta("b")])
    run(thread.clear_window(3))
    run(thread.clear_window(seq))
    assert shown(run(thread.window()).messages) == [("r", "b")]


@pytest.mark.requirement("TA-85")
def test_clearing_beyond_the_head_is_refused_and_clears_nothing() -> None:
    thread = applied([started(), start(), delta("a")])
    with pytest.raises(ValueError, match="through 4: the head is 3"):
        run(thread.clear_window(4))
    assert shown(run(thread.window()).messages) == [("r", "a")]


@pytest.mark.requirement("TA-80")
def test_a_page_that_is_prepended_is_in_the_window_as_far_as_it_lies_above_the_line() -> None:
    log = numbered([started(), start(), delta("a"), delta("b"), delta("c")])
    thread = ASSEMBLER.open()
    run(thread.apply(log[4:]))
    run(thread.clear_window(3))
    run(thread.prepend(log))
    assert shown(run(thread.window()).messages) == [("r", "bc")]


@pytest.mark.requirement("TA-09", "TA-15")
def test_what_a_window_shows_whole_is_the_snapshots_own_message() -> None:
    thread = applied([started(), *said("a"), *said("b", run="s")])
    run(thread.clear_window(4))
    [message] = run(thread.window()).messages
    assert message is run(thread.snapshot()).messages[1]


def test_a_window_shows_the_run_that_failed_at_once_after_the_line() -> None:
    thread = applied([started(), *said("a"), started("s"), chunk("error", run="s", errorText="quota")])
    run(thread.clear_window(4))
    [message] = run(thread.window()).messages
    assert (message["id"], message["parts"], bubble(message)["error"]) == ("s", [], "quota")
    run(thread.clear_window(6))
    assert run(thread.window()).messages == ()
