"""Grouping by run: one message per owner, whoever else comes in between."""

from __future__ import annotations

import pytest

from tests.assembler.logs import (
    approval,
    bubble,
    chunk,
    data_of,
    delta,
    finished,
    interrupt,
    joined,
    parts,
    result,
    said,
    shown,
    start,
    started,
    texts,
    tool,
)
from tests.assembler.threads import assembled


@pytest.mark.requirement("TA-20", "TA-22")
def test_what_a_runs_owner_says_is_one_message_whoever_comes_in_between() -> None:
    log = [started(), start(), delta("a"), *said("b", run="s", who="ann"), joined(), delta("c"), *said("d")]
    assert shown(assembled(log, "run")) == [("r", "acd"), ("s", "b"), ("~7", "")]


@pytest.mark.requirement("TA-22", "TA-23")
def test_approvals_results_and_interrupts_stay_on_the_owners_message() -> None:
    log = [started(), tool(), approval(), result(), interrupt(), finished(outcome="success")]
    [message] = assembled(log, "run")
    assert [part["type"] for part in message["parts"]] == [
        "tool-search",
        "data-bubble-approval",
        "data-bubble-tool-result",
        "data-bubble-interrupt",
    ]
    assert [data["principalId"] for data in data_of(message)] == ["ann", "ann", "ann"]
    assert (bubble(message)["principalId"], bubble(message)["outcome"]) == ("bot", "success")


@pytest.mark.requirement("TA-24")
def test_what_another_says_in_the_run_is_one_message_of_its_own() -> None:
    log = [started(), *said("a"), *said("b", who="ann"), *said("c"), *said("d", who="ann"), tool(who="ann")]
    mine, others = assembled(log, "run")
    assert (mine["id"], texts(mine), bubble(mine)["principalId"]) == ("r", "ac", "bot")
    assert (others["id"], texts(others), bubble(others)["principalId"]) == ("r~1", "bd", "ann")
    assert (others["role"], bubble(others)["continuation"]) == ("user", 1)
    assert len(parts(others, "tool-search")) == 1


@pytest.mark.requirement("TA-22")
def test_a_fact_opens_the_message_of_an_owner_who_has_said_nothing_yet() -> None:
    [message] = assembled([started(), chunk("start", messageMetadata={"model": "m"}), interrupt(), *said("a")], "run")
    assert [part["type"] for part in message["parts"]] == ["data-bubble-interrupt", "text"]
    assert bubble(message)["principalId"] == "bot"
    assert "model" in message["metadata"]


@pytest.mark.requirement("TA-22", "TA-42")
def test_a_fact_about_a_run_of_which_nobody_knows_the_owner_waits_until_somebody_does() -> None:
    assert assembled([interrupt()], "run") == []
    [message] = assembled([interrupt(), interrupt(who="bob"), *said("a")], "run")
    assert [part["type"] for part in message["parts"]] == ["text", "data-bubble-interrupt", "data-bubble-interrupt"]
    assert bubble(message)["principalId"] == "bot"
    [message] = assembled([interrupt(), started(who="bot")], "run")
    assert [bubble(message)["principalId"], bubble(message)["firstSeq"]] == ["bot", 2]


@pytest.mark.requirement("TA-22", "TA-23")
def test_a_decision_on_anothers_call_is_told_by_the_owners_message() -> None:
    mine, others = assembled([started(), *said("a"), tool(who="ann"), result(who="bob")], "run")
    assert parts(others, "tool-search")[0]["state"] == "output-available"
    assert [part["type"] for part in mine["parts"]] == ["text", "data-bubble-tool-result"]
