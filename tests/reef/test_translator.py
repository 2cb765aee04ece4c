"""An agent's events, as what is said in a run."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubble.protocol.jsontext import JSONValue
from bubble.reef.events import AgentEvent, Content, DataPart, FilePart, Part, TaskState, TextPart
from bubble.reef.sayings import EndBlock, Event, Failure, FileShown, Reasoning, Saying, Text, ToolInput, ToolOutput
from bubble.reef.translator import Translator

Words = str | Part


def _parts(words: Sequence[Words]) -> tuple[Part, ...]:
    return tuple(TextPart(text=each) if isinstance(each, str) else each for each in words)


def status(state: TaskState = "working", *words: Words) -> AgentEvent:
    content = Content(carrier="status", parts=_parts(words), is_status=True)
    return AgentEvent(carrier="status", contents=(content,) if words else (), state=state, task_id="t")


def artifact(*words: Words, id: str = "a", append: bool = False, last: bool = False) -> AgentEvent:
    content = Content(carrier="artifact", parts=_parts(words), id=id, append=append, last_chunk=last)
    return AgentEvent(carrier="artifact", contents=(content,), task_id="t")


def task(*contents: Content, state: TaskState = "working") -> AgentEvent:
    return AgentEvent(carrier="task", contents=contents, state=state, task_id="t")


def held(*words: Words, id: str | None = None, is_status: bool = False) -> Content:
    return Content(carrier="task", parts=_parts(words), id=id, is_status=is_status)


def message(*words: Words) -> AgentEvent:
    content = Content(carrier="message", parts=_parts(words))
    return AgentEvent(carrier="message", contents=(content,))


def delta(text: str) -> TextPart:
    return TextPart(text=text, partial=True)


def thought(text: str) -> TextPart:
    return TextPart(text=text, thought=True)


def call(name: str = "f", *, id: str | None = "c", args: JSONValue = None) -> DataPart:
    data: dict[str, JSONValue] = {"name": name, "args": args or {}}
    return DataPart(data=data if id is None else {**data, "id": id})


def response(output: JSONValue, *, id: str | None = "c", name: str | None = "f") -> DataPart:
    named: dict[str, JSONValue] = {"id": id, "name": name}
    return DataPart(data={**{key: value for key, value in named.items() if value is not None}, "response": output})


DONE = status("completed")


def translated(*events: AgentEvent, translator: Translator | None = None) -> list[Saying]:
    own = translator or Translator()
    sayings = [saying for event in events for saying in own.translate(event)]
    return sayings + own.finalize()


def text_of(sayings: Sequence[Saying]) -> str:
    return "".join(saying.delta for saying in sayings if isinstance(saying, Text))


def blocks(sayings: Sequence[Saying]) -> list[str]:
    """The text, block by block."""
    found, is_open = [""], False
    for saying in sayings:
        if isinstance(saying, Text):
            if not is_open:
                found.append("")
            found[-1] += saying.delta
        is_open = isinstance(saying, Text)
    return found[1:]


# --- text -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("RF-29")
def test_text_is_one_block_with_a_delta_for_each_chunk() -> None:
    sayings = translated(artifact("Hel"), artifact("lo", append=True), artifact("!", append=True, last=True), DONE)
    assert sayings == [Text("Hel"), Text("lo"), Text("!"), EndBlock()]


@pytest.mark.requirement("RF-30", "RF-70")
@pytest.mark.parametrize(
    "again", [artifact("Hello", last=True), artifact("Hello", append=True, last=True), artifact("Hello", id="b")]
)
def test_a_full_re_send_collapses_whatever_its_id_and_flags(again: AgentEvent) -> None:
    assert text_of(translated(artifact("Hel"), artifact("lo", append=True), again, DONE)) == "Hello"


@pytest.mark.requirement("RF-70")
def test_deltas_under_ever_new_artifact_ids_are_one_text_and_their_re_send_is_known() -> None:
    deltas = [artifact(word, id=word) for word in ("Hel", "lo ", "you")]
    assert text_of(translated(*deltas, artifact("Hello you", id="whole", last=True), DONE)) == "Hello you"


@pytest.mark.requirement("RF-71")
def test_a_re_send_that_extends_the_text_says_only_the_extension() -> None:
    sayings = translated(artifact("Hel"), artifact("Hello", append=False), artifact("Hello you", last=True), DONE)
    assert sayings == [Text("Hel"), Text("lo"), Text(" you"), EndBlock()]


@pytest.mark.requirement("RF-72")
def test_a_re_send_that_replaces_the_text_stands_in_a_block_of_its_own() -> None:
    sayings = translated(artifact("Helo"), artifact("Hello", last=True), DONE)
    assert blocks(sayings) == ["Helo", "Hello"]


@pytest.mark.requirement("RF-73")
def test_a_marked_delta_is_never_a_re_send() -> None:
    assert text_of(translated(artifact(delta("ha")), artifact(delta("ha"), last=True), DONE)) == "haha"


@pytest.mark.requirement("RF-73")
def test_the_whole_after_a_single_marked_delta_is_a_re_send() -> None:
    whole = TextPart(text="Hi", partial=False)
    assert text_of(translated(artifact(delta("Hi")), artifact(whole, id="b"), DONE)) == "Hi"
    assert text_of(translated(artifact(delta("Hi")), artifact("Hi", id="b"), DONE)) == "Hi"


@pytest.mark.requirement("RF-74")
@pytest.mark.parametrize("again", [artifact("ha", last=True), status("completed", "ha"), status("working", "ha")])
def test_an_unmarked_text_equal_to_a_single_chunk_collapses_where_it_is_last_final_or_elsewhere(
    again: AgentEvent,
) -> None:
    assert text_of(translated(artifact("ha"), again, DONE)) == "ha"


@pytest.mark.requirement("RF-74")
def test_an_unmarked_text_equal_to_a_single_chunk_is_another_one_otherwise() -> None:
    assert text_of(translated(artifact("ha"), artifact("ha", append=True), artifact("!", append=True), DONE)) == "haha!"
    assert text_of(translated(status("working", "ha"), status("working", "ha"), DONE)) == "haha"


@pytest.mark.requirement("RF-74")
def test_a_doubtful_repetition_is_decided_by_what_comes_next() -> None:
    twice = [status("working", "ha"), status("working", "ha")]
    assert text_of(translated(*twice, artifact("ha", last=True), DONE)) == "ha"
    assert text_of(translated(*twice, artifact("haha", last=True), DONE)) == "haha"
    assert text_of(translated(*twice, status("working", " ha"), DONE)) == "haha ha"
    assert [type(each) for each in translated(*twice, artifact(call()))][:3] == [Text, Text, ToolInput]


@pytest.mark.requirement("RF-69")
def test_the_same_text_as_a_message_and_as_an_artifact_is_said_once() -> None:
    assert text_of(translated(status("working", "Hello"), artifact("Hello", last=True), DONE)) == "Hello"
    assert text_of(translated(artifact("Hello", last=True), status("completed", "Hello"))) == "Hello"


@pytest.mark.requirement("RF-76")
def test_an_answer_that_is_sent_again_after_something_else_was_said_is_known() -> None:
    events = [
        status("working", "thinking…"),
        artifact("Hel"),
        artifact("lo", append=True),
        artifact("Hello", last=True),
    ]
    assert text_of(translated(*events, DONE)) == "thinking…Hello"


@pytest.mark.requirement("RF-75")
def test_what_a_working_status_says_is_part_of_the_reply() -> None:
    assert text_of(translated(status("working", "Just a moment. "), artifact("Done."), DONE)) == "Just a moment. Done."


def test_short_tokens_that_begin_alike_are_deltas() -> None:
    tokens = ["Look:", "\n", "\n\n", "- ", "-- ", "a", "ab"]
    assert text_of(translated(*(status("working", token) for token in tokens), DONE)) == "".join(tokens)


def test_messages_that_grow_are_one_text() -> None:
    grown = ["Hello", "Hello, how", "Hello, how are", "Hello, how are you"]
    sayings = translated(*(status("working", text) for text in grown), status("completed", grown[-1]))
    assert sayings == [Text("Hello"), Text(", how"), Text(" are"), Text(" you"), EndBlock()]


def test_two_halves_of_a_character_are_passed_on_as_they_came() -> None:
    assert translated(artifact("\ud83d"), artifact("\ude00", append=True), DONE)[:2] == [Text("\ud83d"), Text("\ude00")]


_pieces = st.lists(st.text("ab ", min_size=1, max_size=4), min_size=1, max_size=8)


@given(
    pieces=_pieces,
    carrier=st.sampled_from(["artifact", "new artifacts", "status"]),
    again=st.lists(st.sampled_from(["status", "artifact", "task"]), max_size=3),
)
def test_marked_deltas_are_said_once_however_they_are_sent_again(
    pieces: list[str], carrier: str, again: list[str]
) -> None:
    whole = "".join(pieces)
    sent = [
        status("working", delta(piece))
        if carrier == "status"
        else artifact(delta(piece), id=f"{at}" if carrier == "new artifacts" else "a", append=at > 0)
        for at, piece in enumerate(pieces)
    ]
    repeated = {
        "status": status("working", TextPart(text=whole, partial=False)),
        "artifact": artifact(whole, id="whole", last=True),
        "task": task(held(whole, id="whole")),
    }
    assert text_of(translated(*sent, *(repeated[each] for each in again), DONE)) == whole


def test_the_re_send_of_twenty_thousand_deltas_is_known() -> None:
    translator = Translator()
    for at in range(20_000):
        translator.translate(status("working", f"{at} "))
    whole = "".join(f"{at} " for at in range(20_000))
    assert text_of(translator.translate(artifact(whole, last=True))) == ""


# --- reasoning, tools, data, files ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("RF-78")
def test_thoughts_are_reasoning_and_said_once_as_well() -> None:
    both = [thought("hm"), TextPart(text="Hi")]
    sayings = translated(status("working", *both), artifact(*both, last=True), DONE)
    assert [each for each in sayings if not isinstance(each, EndBlock)] == [Reasoning("hm"), Text("Hi")]


def test_thoughts_and_words_that_come_one_by_one_and_then_together_are_said_once() -> None:
    both = [thought("hm"), TextPart(text="Hi")]
    events = [
        status("working", both[0]),
        status("working", both[1]),
        status("working", *both),
        artifact(*both, last=True),
    ]
    assert [each for each in translated(*events, DONE) if not isinstance(each, EndBlock)] == [
        Reasoning("hm"),
        Text("Hi"),
    ]


@pytest.mark.requirement("RF-32", "RF-81")
def test_a_call_that_arrives_twice_with_one_id_is_said_once() -> None:
    sayings = translated(status("working", call(args={"n": 3.0})), status("input-required", call(args={"n": 3.0})))
    assert [each for each in sayings if isinstance(each, ToolInput)] == [
        ToolInput(tool_call_id="c", name="f", input={"n": 3})
    ]


@pytest.mark.requirement("RF-32")
def test_a_call_without_an_id_gets_one_and_its_response_finds_it() -> None:
    first, second = translated(artifact(call(id=None)), artifact(response({"x": 1}, id=None), append=True), DONE)[:2]
    assert isinstance(first, ToolInput)
    assert second == ToolOutput(tool_call_id=first.tool_call_id, output={"x": 1})


def test_calls_without_ids_are_two_where_they_are_made_twice_and_one_where_they_are_sent_twice() -> None:
    made = translated(artifact(call(id=None)), artifact(call(id=None), append=True), DONE)
    sent = translated(status("working", call(id=None)), artifact(call(id=None), last=True), DONE)
    assert [sum(isinstance(each, ToolInput) for each in sayings) for sayings in (made, sent)] == [2, 1]


@pytest.mark.requirement("RF-82")
def test_a_pending_answer_is_one_output_and_the_same_output_is_said_once() -> None:
    pending: JSONValue = {"status": "pending"}
    events = [
        status("working", call()),
        status("working", response(pending)),
        artifact(call(), response(pending), last=True),
    ]
    assert sum(isinstance(each, ToolOutput) for each in translated(*events, DONE)) == 1


def test_another_output_of_the_same_call_is_said_as_well() -> None:
    events = [artifact(call()), artifact(response("a"), append=True), artifact(response("b"), append=True)]
    outputs = [each.output for each in translated(*events, DONE) if isinstance(each, ToolOutput)]
    assert outputs == ["a", "b"]


@pytest.mark.requirement("RF-33")
def test_a_response_to_a_call_that_this_run_does_not_show_is_data() -> None:
    orphan: JSONValue = {"id": "old", "name": "f", "response": {"x": 1}}
    assert translated(artifact(DataPart(data=orphan)), DONE)[0] == Event(name="data", data=orphan)
    assert translated(artifact(DataPart(data={"result": 5})), DONE)[0] == Event(name="data", data={"result": 5})


@pytest.mark.requirement("RF-34", "RF-35")
def test_nothing_is_the_event_empty_and_anything_else_the_event_data() -> None:
    sayings = translated(artifact(DataPart(data={}), DataPart(data={"progress": 50.0})), DONE)
    assert sayings[:2] == [Event(name="empty"), Event(name="data", data={"progress": 50})]


def test_data_that_is_sent_again_elsewhere_is_said_once_and_data_that_recurs_is_said_again() -> None:
    beat = DataPart(data={"beat": 1})
    assert len(translated(status("working", beat), artifact(beat, last=True), DONE)) == 2
    assert len(translated(artifact(beat), artifact(beat, append=True), DONE)) == 3


@pytest.mark.requirement("RF-83")
def test_files_become_files_once() -> None:
    whole = FilePart(base64="QUJD", media_type="image/png", filename="p.png")
    elsewhere = FilePart(url="https://f.test/d.pdf", media_type="application/pdf")
    sayings = translated(status("working", whole, elsewhere), artifact(whole, elsewhere, last=True), DONE)
    assert [each for each in sayings if isinstance(each, FileShown)] == [
        FileShown(url="data:image/png;base64,QUJD", media_type="image/png", filename="p.png"),
        FileShown(url="https://f.test/d.pdf", media_type="application/pdf", filename=None),
    ]


@pytest.mark.requirement("RF-67")
@pytest.mark.parametrize(
    "part", [FilePart(url="file:///etc/passwd"), FilePart(url="gs://bucket/x"), FilePart(base64="%%%")]
)
def test_a_file_that_no_reader_can_have_is_only_told_of(part: FilePart) -> None:
    (first, *_) = translated(artifact(part), DONE)
    assert isinstance(first, Event)
    assert first.name == "data"


@pytest.mark.parametrize("media_type", [None, "", "image/png, text/html;base64,", "a b"])
def test_a_media_type_that_would_break_the_url_is_not_used(media_type: str | None) -> None:
    (first, *_) = translated(artifact(FilePart(base64="QUJD", media_type=media_type)), DONE)
    assert first == FileShown(
        url="data:application/octet-stream;base64,QUJD", media_type="application/octet-stream", filename=None
    )


def test_text_around_a_tool_call_is_in_order() -> None:
    events = [artifact("Let me see. ", call()), artifact(response(1), append=True), artifact("It is 1.", append=True)]
    kinds = [type(each) for each in translated(*events, DONE)]
    assert kinds == [Text, ToolInput, ToolOutput, Text, EndBlock]


# --- states ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("RF-36")
@pytest.mark.parametrize(
    ("state", "outcome"),
    [("completed", "success"), ("failed", "failed"), ("rejected", "failed"), ("canceled", "interrupted")],
)
def test_a_terminal_state_ends_the_block_and_the_reply(state: TaskState, outcome: str) -> None:
    translator = Translator()
    translator.translate(artifact("Hi"))
    assert EndBlock() in translator.translate(status(state))
    assert (translator.is_complete, translator.outcome) == (True, outcome)


@pytest.mark.requirement("RF-37")
def test_nothing_is_said_after_the_end_and_finalize_is_idempotent() -> None:
    translator = Translator()
    translator.translate(DONE)
    assert translator.translate(artifact("late")) == translator.finalize() == translator.finalize() == []
    other = Translator()
    assert (other.finalize(), other.finalize()) == ([EndBlock()], [])


@pytest.mark.requirement("RF-84")
@pytest.mark.parametrize("state", ["failed", "rejected"])
def test_a_failure_is_an_error_with_its_words_and_they_are_no_text(state: TaskState) -> None:
    sayings = translated(artifact("Hi"), status(state, "no quota", DataPart(data={"code": 1})))
    assert sayings == [Text("Hi"), Event(name="data", data={"code": 1}), EndBlock(), Failure("no quota")]
    assert translated(status(state)) == [EndBlock(), Failure(f"The agent ended its work as {state}.")]


@pytest.mark.requirement("RF-85")
def test_a_cancelled_task_is_no_error() -> None:
    assert not any(isinstance(each, Failure) for each in translated(status("canceled", "stopped")))


@pytest.mark.requirement("RF-60")
@pytest.mark.parametrize("state", ["input-required", "auth-required"])
def test_a_task_that_waits_ends_the_reply_and_not_the_task(state: TaskState) -> None:
    translator = Translator()
    assert text_of(translator.translate(status(state, "Which one?"))) == "Which one?"
    assert (translator.is_complete, translator.is_waiting, translator.outcome) == (True, True, None)


def test_a_task_that_is_continued_may_be_shown_as_it_was() -> None:
    translator = Translator(continues="t", known_artifacts=["old"])
    translator.translate(task(held("before", id="old"), held("Which?", is_status=True), state="input-required"))
    assert not translator.is_complete
    translator.translate(status("input-required", "And then?"))
    assert translator.is_waiting


def test_a_task_that_is_only_shown_to_wait_waits_again() -> None:
    translator = Translator(continues="t")
    translator.translate(task(held("Which one, then?", is_status=True), state="input-required"))
    translator.hear_the_end()
    assert translator.is_waiting


def test_what_an_earlier_turn_brought_is_not_said_again_with_the_task() -> None:
    translator = Translator(continues="t", known_artifacts=["old"])
    sayings = translated(
        task(held("before", id="old"), held("now", id="new"), state="completed"), translator=translator
    )
    assert text_of(sayings) == "now"


def test_a_plain_message_is_a_whole_reply() -> None:
    translator = Translator()
    assert text_of(translator.translate(message("Hello"))) == "Hello"
    assert (translator.is_complete, translator.outcome, translator.task_id) == (True, "success", None)


def test_a_message_in_the_middle_of_a_task_does_not_end_it() -> None:
    translator = Translator()
    sayings = translated(status("working"), message("One moment. "), artifact("Done."), DONE, translator=translator)
    assert text_of(sayings) == "One moment. Done."
    assert translator.outcome == "success"


def test_a_task_that_is_all_of_the_answer_is_said() -> None:
    sayings = translated(
        task(held("one", id="1"), held("two", id="2"), held("three", is_status=True), state="completed")
    )
    assert blocks(sayings) == ["one", "two", "three"]


def test_a_task_that_is_shown_again_after_a_break_says_what_was_missed() -> None:
    events = [status("working", "thinking…"), artifact("tick0 "), artifact("tick2 ", append=True)]
    snapshot = task(held("tick0 ", "tick2 ", "tick4 ", id="a"), held("thinking…", is_status=True))
    assert (
        text_of(translated(*events, snapshot, artifact("tick6 ", append=True), DONE))
        == "thinking…tick0 tick2 tick4 tick6 "
    )


def test_a_state_that_nobody_knows_changes_nothing() -> None:
    assert text_of(translated(status("unknown", "hm"), artifact("Hi"), DONE)) == "hmHi"
