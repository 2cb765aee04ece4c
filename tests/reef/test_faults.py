"""What an agent can do wrong: in no case does anything hang, an open run stay, or the people not learn what happened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from bubble.reef.agent import ReefAgent
from tests.docs.ports import free_ports
from tests.reef.raw_agent import Answer, Asked, event_stream, json_answer, raw_agent
from tests.reef.stage import Held, Stage
from tests.reef.test_conversations import artifact, done, in_turn, status

pytestmark = pytest.mark.anyio

MakeStage = Callable[..., Awaitable[Stage]]
ReefTo = Callable[..., ReefAgent]
SSE = {"Content-Type": "text/event-stream"}


def always(answer: Answer) -> Callable[[Asked], Answer]:
    """The same answer to everything."""
    return lambda _: answer


async def told(answer: Callable[[Asked], Answer], make_stage: MakeStage, agent: Callable[[str], ReefAgent]) -> Held:
    """What the thread holds after a question to such an agent."""
    async with raw_agent(answer) as raw:
        held = await (await make_stage()).ask(agent(raw.url), "Hello")
    assert (held.counts("run_started"), held.counts("run_finished")) == (1, 1)
    return held


@pytest.mark.requirement("RF-89")
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Answer(status=429), "The agent is busy (HTTP 429)."),
        (Answer(status=503), "The agent is busy (HTTP 503)."),
        (Answer(status=401), "The agent does not let this bot in (HTTP 401)."),
        (Answer(status=500), "The agent answered with HTTP 500."),
        (Answer(headers={"Content-Type": "text/html"}, pieces=[b"<html>"]), "The agent answered with text/html"),
        (
            Answer(headers=SSE, pieces=[b"\x00\xff garbage\n\ndata: nonsense\n\n"]),
            "The agent sent something that is no JSON.",
        ),
        (Answer(headers=SSE, pieces=[b"data: 7\n\n"]), "The agent sent something that is no A2A event."),
        (Answer(headers=SSE), "The agent ended the stream before its reply was complete."),
        (Answer(headers=SSE, ending="cut"), "was lost."),
        (
            Answer(headers=SSE, pieces=[b"data: " + b"[" * 100_000 + b"\n\n"]),
            "The agent sent JSON that is nested too deeply to be read.",
        ),
    ],
    ids=["429", "503", "401", "500", "html", "garbage", "no event", "no word", "cut", "nested"],
)
async def test_what_went_wrong_is_an_error_on_the_thread(
    make_stage: MakeStage, reef_to: ReefTo, answer: Answer, says: str
) -> None:
    held = await told(always(answer), make_stage, reef_to)
    (error,) = held.errors
    assert says in error
    assert held.outcomes == ["failed"]


@pytest.mark.requirement("RF-64", "RF-89")
async def test_an_agent_that_is_not_there_is_told_of(make_stage: MakeStage, reef_to: ReefTo) -> None:
    (port,) = free_ports(1)
    held = await (await make_stage()).ask(reef_to(f"http://127.0.0.1:{port}"), "Hello")
    assert held.errors == [f"The agent at http://127.0.0.1:{port} cannot be reached."]
    assert held.outcomes == ["failed"]


@pytest.mark.requirement("RF-68", "RF-89")
async def test_an_agent_that_never_answers_is_given_up(make_stage: MakeStage, reef_to: ReefTo) -> None:
    held = await told(
        always(Answer(headers=SSE, ending="open")), make_stage, lambda url: reef_to(url, idle_seconds=0.2)
    )
    assert held.outcomes == ["failed"]
    assert held.errors[0].endswith("has been silent for 0.2 seconds.")


@pytest.mark.requirement("RF-86", "RF-87", "RF-89")
@pytest.mark.parametrize("how", ["cut", "complete"])
async def test_an_agent_that_dies_in_the_middle_is_told_of_after_what_it_had_said(
    make_stage: MakeStage, reef_to: ReefTo, how: str
) -> None:
    begun = event_stream(status("WORKING"), artifact("I was about to"), ending="cut" if how == "cut" else "complete")
    held = await told(in_turn(begun, otherwise=Answer(status=500)), make_stage, reef_to)
    assert held.text == held.assembled_text == "I was about to"
    assert held.outcomes == ["failed"]
    assert len(held.errors) == 1


@pytest.mark.requirement("RF-86")
async def test_a_stream_that_breaks_is_taken_up_again_once(make_stage: MakeStage, reef_to: ReefTo) -> None:
    def answer(asked: Asked) -> Answer:
        if asked.procedure == "stream":
            return event_stream(status("WORKING"), artifact("one "), ending="cut")
        artifacts = [{"artifactId": "a", "parts": [{"text": "one "}, {"text": "two "}]}]
        snapshot = {"task": {"id": "t", "status": {"state": "TASK_STATE_WORKING"}, "artifacts": artifacts}}
        return event_stream(snapshot, artifact("three", append=True), status("COMPLETED"))

    held = await told(answer, make_stage, reef_to)
    assert (held.text, held.errors, held.outcomes, held.agent_events) == ("one two three", [], ["success"], [])


@pytest.mark.requirement("RF-86", "RF-89")
async def test_where_a_piece_may_be_missing_after_a_break_the_thread_says_so(
    make_stage: MakeStage, reef_to: ReefTo
) -> None:
    rest = event_stream(artifact("three", append=True), status("COMPLETED"))
    broken = event_stream(status("WORKING"), artifact("one "), ending="cut")
    held = await told(in_turn(broken, otherwise=rest), make_stage, reef_to)
    assert (held.text, held.outcomes) == ("one three", ["success"])
    ((name, _),) = held.agent_events
    assert name == "rejoined"


@pytest.mark.requirement("RF-86")
async def test_a_task_that_finished_while_the_stream_was_broken_is_asked_how(
    make_stage: MakeStage, reef_to: ReefTo
) -> None:
    def answer(asked: Asked) -> Answer:
        if asked.procedure == "stream":
            return event_stream(status("WORKING"), artifact("one "), ending="cut")
        if asked.procedure == "rejoin":
            return json_answer({"error": {"message": "Task t is in terminal state"}}, status=400)
        artifacts = [{"artifactId": "a", "parts": [{"text": "one "}, {"text": "two"}]}]
        return json_answer({"id": "t", "status": {"state": "TASK_STATE_COMPLETED"}, "artifacts": artifacts})

    held = await told(answer, make_stage, reef_to)
    assert (held.text, held.errors, held.outcomes) == ("one two", [], ["success"])


@pytest.mark.requirement("RF-86")
async def test_a_stream_that_breaks_twice_is_told_of(make_stage: MakeStage, reef_to: ReefTo) -> None:
    broken = event_stream(status("WORKING"), artifact("one "), ending="cut")
    async with raw_agent(in_turn(broken, otherwise=broken)) as raw:
        held = await (await make_stage()).ask(reef_to(raw.url), "Hello")
        assert [asked.procedure for asked in raw.asked] == ["stream", "rejoin", "get"]
    assert (held.text, held.outcomes, len(held.errors)) == ("one ", ["failed"], 1)


@pytest.mark.requirement("RF-88", "RF-89")
async def test_an_error_of_the_agents_is_told_in_its_words_and_its_task_forgotten(
    make_stage: MakeStage, reef_to: ReefTo
) -> None:
    boom = event_stream(status("WORKING"), {"error": {"code": 500, "message": "boom"}})
    async with raw_agent(in_turn(boom, done("Fine"))) as raw:
        agent, stage = reef_to(raw.url), await make_stage({"taskId": "t"})
        held = await stage.ask(agent, "Hello")
        assert (held.errors, held.outcomes) == (["The agent answered with an error: boom"], ["failed"])
        assert stage.session.get() == {}


async def test_ten_megabytes_are_held_in_pieces(make_stage: MakeStage, reef_to: ReefTo) -> None:
    text = "ten megabytes " * 750_000
    held = await told(in_turn(done(text)), make_stage, reef_to)
    assert held.text == text
    assert held.outcomes == ["success"]


async def test_what_does_not_fit_into_an_event_is_told_of_and_the_rest_is_there(
    make_stage: MakeStage, reef_to: ReefTo
) -> None:
    parts = [
        {"text": "See: "},
        {"raw": "QUJD" * 500_000, "filename": "big.bin"},
        {"data": {"x": "y" * 2_000_000}},
        {"text": "that."},
    ]
    answer = event_stream({"message": {"role": "ROLE_AGENT", "parts": parts}})
    held = await told(in_turn(answer), make_stage, reef_to)
    assert held.text == "See: that."
    assert len(held.errors) == 2
    assert all("is left out" in error for error in held.errors)
    assert held.counts("run_finished") == 1


async def test_line_separators_and_halves_of_characters_arrive_as_they_were_sent(
    make_stage: MakeStage, reef_to: ReefTo
) -> None:
    texts = ["a\u2028b\u2029c\x85", "\ud83d", "\ude00", "\ud800 alone", "\x00"]
    pieces = [artifact(text, append=at > 0) for at, text in enumerate(texts)]
    held = await told(in_turn(event_stream(*pieces, status("COMPLETED"))), make_stage, reef_to)
    assert held.assembled_text == "a\u2028b\u2029c\x85\U0001f600\ud800 alone\x00"
    assert held.outcomes == ["success"]


async def test_raw_line_separators_do_not_end_a_line(make_stage: MakeStage, reef_to: ReefTo) -> None:
    event = '{"message": {"role": "ROLE_AGENT", "parts": [{"text": "a\u2028b\u2029c\x85d"}]}}'
    answer = Answer(headers=SSE, pieces=[f"data: {event}\n\n".encode()])
    held = await told(always(answer), make_stage, reef_to)
    assert held.text == "a\u2028b\u2029c\x85d"


@pytest.mark.requirement("RF-65")
async def test_no_error_on_a_thread_shows_the_bearer(make_stage: MakeStage, reef_to: ReefTo) -> None:
    held = await told(always(Answer(status=401)), make_stage, lambda url: reef_to(url, bearer=lambda: "very-secret"))
    assert "very-secret" not in str(held.events)
