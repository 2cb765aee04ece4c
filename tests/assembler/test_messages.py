"""What a message says of itself: its id, its role, its metadata."""

from __future__ import annotations

import pytest

import bubble.assembler
from bubble.assembler import Grouping, Role, Speaker, message_text
from bubble.assembler import messages as names
from tests.assembler.logs import (
    Event,
    chunk,
    delta,
    end,
    finished,
    interrupt,
    joined,
    parts,
    said,
    shown,
    start,
    started,
    texts,
    titled,
    tool,
)
from tests.assembler.logs import (
    bubble as about,
)
from tests.assembler.threads import applied, apply, assembled, run


@pytest.mark.requirement("TA-01", "TA-50")
def test_a_run_becomes_a_message_that_says_where_it_comes_from() -> None:
    log = [started(), *said("hello"), finished(outcome="success")]
    assert assembled(log) == [
        {
            "id": "r",
            "role": "assistant",
            "parts": [{"type": "text", "text": "hello", "state": "done"}],
            "metadata": {
                "bubble": {
                    "principalId": "bot",
                    "runId": "r",
                    "kind": "agent_work",
                    "firstSeq": 2,
                    "lastSeq": 5,
                    "createdAt": "2026-05-06T12:34:58.000Z",
                    "updatedAt": "2026-05-06T12:35:01.000Z",
                    "status": "finished",
                    "outcome": "success",
                }
            },
        }
    ]


@pytest.mark.requirement("TA-50", "TA-67")
def test_a_message_without_a_run_is_finished_and_has_nothing_of_a_run() -> None:
    [message] = assembled([joined("ann", by="bob")])
    assert message["id"] == "~1"
    assert about(message) == {
        "principalId": "bob",
        "firstSeq": 1,
        "lastSeq": 1,
        "createdAt": "2026-05-06T12:34:57.000Z",
        "updatedAt": "2026-05-06T12:34:57.000Z",
        "status": "finished",
    }


@pytest.mark.requirement("TA-50")
def test_a_run_without_a_kind_and_an_outcome_says_neither() -> None:
    [message] = assembled([started(kind=None), *said("a"), finished()])
    assert not {"kind", "outcome", "continuation", "reactions", "error", "producerMessageId"} & about(message).keys()


@pytest.mark.requirement("TA-50")
def test_the_last_seq_is_that_of_the_last_event_that_changed_the_message() -> None:
    thread = applied([started(), start(), delta("a")])
    [message] = run(thread.snapshot()).messages
    assert about(message)["lastSeq"] == 3
    apply(thread, chunk("finish-step"), started("s"), delta("orphan"))
    assert about(run(thread.snapshot()).messages[0])["lastSeq"] == 3
    apply(thread, finished())
    assert about(run(thread.snapshot()).messages[0])["lastSeq"] == 7


@pytest.mark.requirement("TA-52")
def test_continuations_are_counted_over_all_authors_of_a_run() -> None:
    log = [started(), *said("a"), *said("b", who="ann"), *said("c"), *said("d", run="s"), *said("e")]
    messages = assembled(log)
    assert shown(messages) == [("r", "a"), ("r~1", "b"), ("r~2", "c"), ("s", "d"), ("r~3", "e")]
    assert [about(message).get("continuation") for message in messages] == [None, 1, 2, None, 3]


@pytest.mark.requirement("TA-53")
def test_a_prepend_that_brings_the_beginning_of_a_run_renumbers_it() -> None:
    log = [started(), *said("a"), *said("b", who="ann"), *said("c")]
    thread = applied(log[4:], first=5)
    assert [message["id"] for message in run(thread.snapshot()).messages] == ["r", "r~1"]
    run(thread.prepend(wire_of(log[:4])))
    assert shown(run(thread.snapshot()).messages) == [("r", "a"), ("r~1", "b"), ("r~2", "c")]


def wire_of(events: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{"seq": seq, "createdAt": "2026-05-06T12:34:56.789Z", **event} for seq, event in enumerate(events, 1)]


@pytest.mark.requirement("TA-54")
@pytest.mark.parametrize(
    ("kind", "role"),
    [
        ("user_input", "user"),
        ("agent_work", "assistant"),
        ("system_work", "system"),
        (None, "assistant"),
        ("later", "assistant"),
    ],
)
def test_the_role_follows_the_kind_of_the_run(kind: str | None, role: str) -> None:
    [message] = assembled([started(kind=kind), *said("a")])
    assert message["role"] == role


@pytest.mark.requirement("TA-54")
def test_who_speaks_in_the_run_of_another_is_a_user() -> None:
    messages = assembled([started(), *said("a"), interrupt(who="ann"), *said("b", who="bot2")])
    assert [message["role"] for message in messages] == ["assistant", "user", "user"]


@pytest.mark.requirement("TA-54")
def test_a_message_without_a_run_is_the_systems() -> None:
    assert [message["role"] for message in assembled([joined(), titled()])] == ["system", "system"]


@pytest.mark.requirement("TA-54")
def test_where_the_log_begins_within_a_run_the_first_who_says_something_in_it_counts_as_its_starter() -> None:
    messages = assembled([interrupt(who="ann"), *said("a"), *said("b", who="ann")])
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert [message["role"] for message in assembled([interrupt(who="ann")])] == ["user"]
    assert [message["role"] for message in assembled([interrupt(who="ann"), *said("b", who="ann")])] == ["assistant"]


@pytest.mark.requirement("TA-54")
def test_a_role_can_be_chosen_by_who_speaks() -> None:
    asked: list[Speaker] = []

    def role_of(speaker: Speaker) -> Role:
        asked.append(speaker)
        return "user" if speaker.principal_id == "bot" else "system"

    messages = assembled([started(), *said("a"), interrupt(), joined()], role_of=role_of)
    assert [message["role"] for message in messages] == ["user", "system", "system"]
    assert asked == [
        Speaker(principal_id="bot", run_id="r", kind="agent_work", is_starter=True),
        Speaker(principal_id="ann", run_id="r", kind="agent_work", is_starter=False),
        Speaker(principal_id="bob", run_id=None, kind=None, is_starter=True),
    ]


@pytest.mark.requirement("TA-54", "TA-06")
@pytest.mark.parametrize("news", [started("r", "ann"), delta("x", who="ann")], ids=["a late run_started", "an orphan"])
def test_whoever_turns_out_to_be_the_starter_changes_the_roles_that_were_shown(news: Event) -> None:
    thread = applied([interrupt(who="ann")])
    assert apply(thread, news) is True
    [message] = run(thread.snapshot()).messages
    assert (message["role"], about(message)["lastSeq"]) == ("assistant", 2)


@pytest.mark.requirement("TA-50", "TA-06")
def test_only_the_first_beginning_of_a_run_counts() -> None:
    thread = applied([started(), *said("a")])
    assert apply(thread, started(who="ann", kind="user_input")) is False


@pytest.mark.requirement("TA-51")
def test_the_producers_metadata_stands_beside_bubbles_and_cannot_replace_it() -> None:
    metadata = {"model": "m", "bubble": {"principalId": "mallory", "status": "finished"}}
    [message] = assembled([started(), *said("a"), chunk("message-metadata", messageMetadata=metadata)])
    assert message["metadata"].keys() == {"model", "bubble"}
    assert about(message)["principalId"] == "bot"
    assert about(message)["status"] == "streaming"


@pytest.mark.requirement("TA-51", "TA-98")
@pytest.mark.parametrize("metadata", [["a"], "text", 7, False])
def test_metadata_that_is_no_object_is_kept_all_the_same(metadata: object) -> None:
    [message] = assembled([started(), *said("a"), chunk("finish", messageMetadata=metadata)])
    assert about(message)["producerMetadata"] == metadata


@pytest.mark.requirement("TA-56")
@pytest.mark.parametrize("grouping", ["speaker", "run"])
def test_a_producers_message_id_is_kept_and_wipes_nothing(grouping: Grouping) -> None:
    log = [
        started(),
        chunk("start", messageId="m-1", messageMetadata={"model": "m"}),
        start(),
        delta("a"),
        chunk("start", messageId="m-2", messageMetadata={"tokens": 7}),
        delta("b"),
    ]
    [message] = assembled(log, grouping)
    assert (message["id"], texts(message)) == ("r", "ab")
    assert about(message)["producerMessageId"] == "m-2"
    assert {name: value for name, value in message["metadata"].items() if name != "bubble"} == {
        "model": "m",
        "tokens": 7,
    }


@pytest.mark.requirement("TA-57")
def test_an_error_is_told_by_the_authors_latest_message() -> None:
    messages = assembled([started(), *said("a"), interrupt(), chunk("error", errorText="quota"), finished()])
    assert [about(message).get("error") for message in messages] == ["quota", None]


@pytest.mark.requirement("TA-57", "TA-60")
@pytest.mark.parametrize("grouping", ["speaker", "run"])
def test_a_run_that_failed_before_it_said_anything_is_a_message_without_parts(grouping: Grouping) -> None:
    metadata = chunk("message-metadata", messageMetadata={"model": "m"})
    log = [started(), metadata, chunk("error", errorText="quota"), finished(outcome="failed")]
    [message] = assembled(log, grouping=grouping)
    assert (message["id"], message["parts"]) == ("r", [])
    assert (about(message)["error"], about(message)["outcome"]) == ("quota", "failed")
    assert dict(message["metadata"])["model"] == "m"


def test_what_is_said_after_an_error_joins_its_message() -> None:
    [message] = assembled([started(), chunk("error", errorText="quota"), *said("a")])
    assert (texts(message), about(message)["error"], about(message)["firstSeq"]) == ("a", "quota", 2)


def test_an_error_without_a_text_is_no_message() -> None:
    assert assembled([started(), chunk("error", errorText=None), chunk("error"), finished()]) == []


@pytest.mark.requirement("TA-58")
def test_a_file_keeps_its_name() -> None:
    [message] = assembled([started(), chunk("file", url="data:,x", mediaType="text/plain", filename="x.txt")])
    assert message["parts"] == [{"type": "file", "url": "data:,x", "mediaType": "text/plain", "filename": "x.txt"}]


@pytest.mark.requirement("TA-25", "TA-41")
@pytest.mark.parametrize("grouping", ["speaker", "run"])
def test_every_part_of_a_message_comes_from_an_event(grouping: Grouping) -> None:
    log = [started(), chunk("start-step"), *said("a"), chunk("finish-step"), finished()]
    [message] = assembled(log, grouping)
    assert [part["type"] for part in message["parts"]] == ["step-start", "text"]


@pytest.mark.requirement("TA-66")
@pytest.mark.parametrize("ends", [[], [chunk("finish-step")], [start()]], ids=["left", "step ended", "begun again"])
def test_a_run_that_is_finished_leaves_no_block_open(ends: list[dict[str, object]]) -> None:
    [message] = assembled([started(), start(), delta("a"), start(kind="reasoning"), *ends, finished()])
    states = {part["state"] for kind in ("text", "reasoning") for part in parts(message, kind)}
    assert states == {"done"}


@pytest.mark.requirement("TA-66")
def test_status_and_outcome_are_those_of_every_message_of_the_run() -> None:
    messages = assembled([started(), *said("a"), interrupt(), start("s", "s"), finished(outcome="interrupted")])
    assert [(about(one)["status"], about(one).get("outcome")) for one in messages] == [
        ("finished", "interrupted"),
        ("finished", "interrupted"),
        ("streaming", None),
    ]


@pytest.mark.requirement("TA-66")
def test_what_comes_for_a_block_after_its_run_is_ignored() -> None:
    [message] = assembled([started(), start(), delta("a"), finished(), delta("b"), end(), finished(outcome="failed")])
    assert (texts(message), about(message)["lastSeq"], about(message).get("outcome")) == ("a", 4, None)


@pytest.mark.requirement("TA-66")
def test_a_run_that_is_finished_again_closes_what_was_opened_since_and_keeps_its_outcome() -> None:
    log = [started(), finished(outcome="success"), start(), delta("a"), finished(outcome="failed"), delta("b")]
    [message] = assembled(log)
    assert (texts(message), about(message)["outcome"]) == ("a", "success")


@pytest.mark.requirement("TA-43")
def test_the_names_of_bubbles_own_parts_are_in_the_module_of_message_contracts() -> None:
    values = [getattr(names, name) for name in names.__all__]
    constants = {value for value in values if isinstance(value, str)}
    assert constants == {
        "data-bubble-agent-event",
        "data-bubble-approval",
        "data-bubble-extension",
        "data-bubble-interrupt",
        "data-bubble-participant",
        "data-bubble-title",
        "data-bubble-tool-result",
    }
    assert not [name for name in bubble.assembler.__all__ if name.isupper()]


def test_the_text_of_a_message_is_that_of_its_text_parts_with_a_blank_line_between() -> None:
    log = [start(), delta("Let me "), delta("see."), tool(), start(block="2"), *said("8 euros.\n", block="3")]
    log += [chunk("reasoning-start", id="t"), chunk("reasoning-delta", id="t", delta="Hm.")]
    assert message_text(assembled(log)[0]) == "Let me see.\n\n8 euros.\n"


@pytest.mark.parametrize(
    "message", [{}, {"parts": None}, {"parts": []}, {"parts": ["text", {"type": "text", "text": ""}]}]
)
def test_a_message_that_says_nothing_has_no_text(message: dict[str, object]) -> None:
    assert message_text(message) == ""
