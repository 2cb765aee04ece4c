"""Acting in a browser: writing, deciding, stopping, and what one does with threads and bots."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, Route, expect

from tests.starfish.conftest import Look
from tests.starfish.stage import Account, Server, parts, spoken

pytestmark = pytest.mark.slow


def a_call(bot: Account, thread: str, name: str = "refund") -> str:
    """A run of the bot whose tool call waits for a decision; its id."""
    return bot.begin(
        thread,
        *spoken("I will."),
        {"type": "tool-input-available", "toolCallId": f"call-{name}", "toolName": name, "input": {"order": 1815}},
        {"type": "tool-approval-request", "approvalId": "a", "toolCallId": f"call-{name}"},
    )


def last_events(account: Account, thread: str, kind: str) -> list[dict[str, object]]:
    return [
        event for event in account.get(f"/v1/threads/{thread}/events?limit=1000")["events"] if event["type"] == kind
    ]


@pytest.mark.requirement("SF-20")
def test_enter_sends_a_message_as_one_run_and_shift_enter_begins_a_line(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    thread = ada.thread("Writing")
    page = look(ada).look_at(thread)
    box = page.get_by_label("Message", exact=True)
    box.click()
    page.keyboard.type("Hello *you*")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("second line")
    page.keyboard.press("Enter")
    expect(page.locator(".message .rich em")).to_have_text("you")
    expect(page.locator("#outbox li")).to_have_count(0)
    expect(box).to_have_value("")
    events = ada.get(f"/v1/threads/{thread}/events")["events"]
    kinds = [event["type"] for event in events]
    assert kinds == [
        "participant_joined",
        "run_started",
        "message_part",
        "message_part",
        "message_part",
        "run_finished",
    ]
    assert events[3]["part"]["delta"] == "Hello *you*\nsecond line"
    box.press("Enter")
    assert len(ada.get(f"/v1/threads/{thread}/events")["events"]) == len(events)


@pytest.mark.requirement("SF-21")
def test_what_could_not_be_sent_stays_and_is_sent_once_by_retry(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    thread = ada.thread("Failing")
    page = look(ada).look_at(thread)
    keys: list[str] = []

    def lose_the_answer(route: Route) -> None:
        keys.append(route.request.headers["idempotency-key"])
        route.fetch()
        route.abort()

    page.route("**/events:batch", lose_the_answer)
    page.get_by_label("Message", exact=True).fill("Only once")
    page.get_by_role("button", name="Send", exact=True).click()
    # The server had it: the message arrives by the stream although its answer never did.
    expect(page.locator(".message .rich")).to_have_text("Only once")
    page.unroute("**/events:batch")

    page.route("**/events:batch", lambda route: route.abort())
    page.get_by_label("Message", exact=True).fill("Later")
    page.get_by_role("button", name="Send", exact=True).click()
    pending = page.locator("#outbox li")
    expect(pending).to_contain_text("Not sent. The server cannot be reached.")
    page.unroute("**/events:batch")
    page.reload()
    expect(pending).to_contain_text("Later")
    sent: list[str] = []
    page.on(
        "request",
        lambda request: sent.append(request.headers.get("idempotency-key", "")) if "batch" in request.url else None,
    )
    pending.get_by_role("button", name="Retry").click()
    expect(page.locator(".message .rich")).to_have_text(["Only once", "Later"])
    expect(pending).to_have_count(0)
    assert len(last_events(ada, thread, "run_started")) == 2
    assert sent == [str(last_events(ada, thread, "run_started")[1]["runId"])]
    assert keys == [last_events(ada, thread, "run_started")[0]["runId"]]


@pytest.mark.requirement("SF-21")
def test_a_draft_is_kept_for_each_thread(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    one, _ = ada.thread("One"), ada.thread("Other")
    page = look(ada).look_at(one)
    box = page.get_by_label("Message", exact=True)
    box.fill("not yet")
    page.get_by_role("link", name="Other").click()
    expect(page.locator("#title")).to_have_text("Other")
    expect(box).to_have_value("")
    page.go_back()
    expect(page.locator("#title")).to_have_text("One")
    expect(box).to_have_value("not yet")


@pytest.mark.requirement("SF-22")
def test_a_call_that_waits_is_approved_and_everybody_sees_by_whom(server: Server, look: Look) -> None:
    ada, grace = server.account("Ada"), server.account("Grace")
    bot = server.account("Helper", kind="bot", owner=ada.principal_id)
    thread = ada.thread("Approving", grace, bot)
    run = a_call(bot, thread)
    mine, hers = look(ada).look_at(thread), look(grace).look_at(thread)
    expect(mine.locator(".tool-input pre")).to_contain_text('"order": 1815')
    mine.get_by_role("button", name="Approve refund").click()
    for page in (mine, hers):
        expect(page.locator(".tool-state")).to_have_text("Approved")
        expect(page.get_by_text("Ada approved the call")).to_be_visible()
        expect(page.get_by_role("button", name="Approve refund")).to_be_hidden()
    bot.go_on(thread, run, {"type": "tool-output-available", "toolCallId": "call-refund", "output": {"done": True}})
    expect(hers.locator(".tool-state")).to_have_text("Done")
    hers.get_by_text("Output", exact=True).click()
    expect(hers.locator(".tool-output pre")).to_contain_text('"done": true')
    bot.finish(thread, run)


@pytest.mark.requirement("SF-22")
def test_a_call_is_rejected_with_a_reason_and_a_second_decision_is_told(server: Server, look: Look) -> None:
    ada, grace = server.account("Ada"), server.account("Grace")
    bot = server.account("Helper", kind="bot", owner=ada.principal_id)
    thread = ada.thread("Rejecting", grace, bot)
    run = a_call(bot, thread)
    page = look(ada).look_at(thread)
    held: list[Route] = []
    page.route("**/events", lambda route: held.append(route))  # noqa: PLW0108 - Playwright marks what it is given
    page.get_by_role("button", name="Reject refund").click()
    page.get_by_label("Reason (optional)").fill("Too much")
    page.get_by_role("button", name="Reject the call").click()
    page.wait_for_function("() => document.querySelector('.why button').disabled")
    grace.append(thread, {"type": "tool_call_approval", "runId": run, "toolCallId": "call-refund", "approved": True})
    held[0].continue_()
    expect(page.locator(".tool-state")).to_have_text("Approved")
    expect(page.locator(".undone")).to_have_text("This was decided already. You wrote: Too much")
    expect(page.get_by_label("Tool call: refund")).to_be_focused()
    page.unroute("**/events")

    other = a_call(bot, thread, "delete")
    page.get_by_role("button", name="Reject delete").click()
    page.get_by_label("Reason (optional)").last.fill("Too much")
    page.get_by_role("button", name="Reject the call").last.click()
    expect(page.locator(".tool-state").last).to_have_text("Rejected: Too much")
    assert last_events(ada, thread, "tool_call_approval")[-1]["reason"] == "Too much"
    for each in (run, other):
        bot.finish(thread, each)


@pytest.mark.requirement("SF-22")
def test_who_may_not_decide_is_not_asked_to(server: Server, look: Look) -> None:
    ada, grace = server.account("Ada"), server.account("Grace")
    bot = server.account("Helper", kind="bot", owner=ada.principal_id)
    thread = ada.thread("Watching", bot)
    ada.call("PUT", f"/v1/threads/{thread}/grants/{grace.principal_id}", {"role": "observer"})
    run = a_call(bot, thread)
    page = look(grace).look_at(thread)
    expect(page.locator(".tool-state")).to_have_text("Waits for approval")
    expect(page.get_by_role("button", name="Approve refund")).to_be_hidden()
    expect(page.get_by_text("You may read this thread, not write in it.")).to_be_visible()
    expect(page.get_by_role("button", name="Stop Helper")).to_have_count(0)
    bot.finish(thread, run)


@pytest.mark.requirement("SF-27")
def test_a_call_that_its_agent_left_to_others_is_given_a_result(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    bot = server.account("Helper", kind="bot", owner=ada.principal_id)
    thread = ada.thread("Asking people", bot)
    ask = {"type": "tool-input-available", "toolCallId": "w", "toolName": "look_outside", "input": {"city": "Oslo"}}
    run = bot.begin(thread, *spoken("Somebody has to look out of the window."), ask)
    page = look(ada).look_at(thread)
    expect(page.locator(".tool-state")).to_have_text("Running")
    expect(page.get_by_label("Its result, as text or JSON")).to_be_hidden()
    bot.finish(thread, run)
    expect(page.locator(".tool-state")).to_have_text("Waits for a result")
    page.get_by_label("Its result, as text or JSON").fill('{"sky": "blue"}')
    page.get_by_role("button", name="Give the result of look_outside").click()
    expect(page.locator(".tool-state")).to_have_text("Done")
    expect(page.get_by_text("Ada answered the call")).to_be_visible()
    (result,) = last_events(ada, thread, "tool_call_result")
    assert (result["input"], result["output"]) == ({"city": "Oslo"}, {"sky": "blue"})


@pytest.mark.requirement("SF-23")
def test_an_open_run_can_be_asked_to_stop(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    bot = server.account("Helper", kind="bot", owner=ada.principal_id)
    thread = ada.thread("Stopping", bot)
    run = bot.begin(thread, *spoken("One, two"))
    page = look(ada).look_at(thread)
    page.get_by_role("button", name="Stop Helper").click()
    expect(page.locator("#running")).to_contain_text("Helper is asked to stop")
    expect(page.get_by_text("Ada asked to stop")).to_be_visible()
    assert last_events(ada, thread, "run_interrupt_requested")[0]["runId"] == run
    bot.finish(thread, run, "interrupted")
    expect(page.locator(".outcome.interrupted").first).to_have_text("Stopped")
    expect(page.locator("#running")).to_have_text("")


@pytest.mark.requirement("SF-23")
def test_a_stop_that_did_not_arrive_is_said_beside_it_and_can_be_asked_again(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    bot = server.account("Helper", kind="bot", owner=ada.principal_id)
    thread = ada.thread("Not stopping", bot)
    run = bot.begin(thread, *spoken("One, two"))
    page = look(ada, viewport={"width": 390, "height": 800}).look_at(thread)
    page.route("**/events", lambda route: route.abort())
    page.get_by_role("button", name="Stop Helper").click()
    problem = page.locator("#running").get_by_role("alert")
    expect(problem).to_have_text("The server cannot be reached.")
    expect(problem).to_be_in_viewport()
    page.unroute("**/events")
    page.get_by_role("button", name="Stop Helper").click()
    expect(page.locator("#running")).to_have_text("Helper is asked to stop …")
    bot.finish(thread, run, "interrupted")


@pytest.mark.requirement("SF-23")
def test_who_works_is_shown_however_often_runs_begin_and_end(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    bot = server.account("Helper", kind="bot", owner=ada.principal_id)
    thread = ada.thread("Busy", bot)
    looker = look(ada)
    page = looker.log_in()
    page.clock.install()
    looker.look_at(thread, page)
    expect(page.locator(".fact-line")).to_have_count(2)
    page.clock.pause_at(page.evaluate("Date.now() + 200"))
    run = bot.begin(thread, *spoken("I stay"))
    # Something begins or ends all the time, so there is no quiet moment to ask who is running. The page's clock stands between its frames.
    with page.expect_response("**/runs?**"):
        for number in range(1, 13):
            bot.say(thread, f"Number {number}", kind="agent_work")
            while page.locator(".message .rich").count() <= number:
                page.clock.run_for(16)
    page.clock.resume()
    expect(page.locator("#running")).to_contain_text("Helper is working")
    bot.finish(thread, run)


@pytest.mark.requirement("SF-23")
@pytest.mark.parametrize("width", [1280, 390])
def test_many_who_work_leave_the_messages_their_room(server: Server, look: Look, width: int) -> None:
    ada = server.account("Ada")
    bot = server.account("Helper of a very long name that goes on and on " * 2, kind="bot", owner=ada.principal_id)
    thread = ada.thread("Crowded", bot)
    runs = [bot.begin(thread) for _ in range(30)]
    page = look(ada, viewport={"width": width, "height": 800}).look_at(thread)
    running = page.locator("#running")
    more = running.get_by_role("button", name="and 28 more")
    expect(more).to_have_attribute("aria-expanded", "false")
    expect(running.get_by_role("button", name="Stop Helper")).to_have_count(2)
    assert running.evaluate("e => e.clientHeight") <= 3 * 30
    heights = running.get_by_role("button").evaluate_all("all => all.map(e => e.clientHeight)")
    assert max(heights) < 30
    assert running.evaluate("e => e.scrollWidth <= e.clientWidth")
    more.press("Enter")
    fewer = running.get_by_role("button", name="Show fewer")
    expect(fewer).to_be_focused()
    expect(running.get_by_role("button", name="Stop Helper")).to_have_count(30)
    assert running.evaluate("e => e.clientHeight") <= 160
    assert running.evaluate("e => e.scrollHeight > e.clientHeight && e.scrollWidth <= e.clientWidth")
    fewer.click()
    expect(running.get_by_role("button", name="Stop Helper")).to_have_count(2)
    for run in runs:
        bot.finish(thread, run)
    expect(running).to_have_text("")


@pytest.mark.requirement("SF-23")
def test_stop_is_for_the_run_that_is_open_now_also_when_it_follows_another_at_once(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    bot = server.account("Helper", kind="bot", owner=ada.principal_id)
    thread = ada.thread("One after the other", bot)
    first = bot.begin(thread)
    page = look(ada).look_at(thread)
    expect(page.get_by_role("button", name="Stop Helper")).to_be_visible()
    over = {"type": "run_finished", "runId": first, "outcome": "success"}
    with page.expect_response(lambda answer: "/runs?" in answer.url and "next-run" in answer.text()):
        bot.append(
            thread,
            over,
            {"type": "run_started", "runId": "next-run", "kind": "agent_work"},
            *parts("next-run", spoken("Next")),
        )
    page.get_by_role("button", name="Stop Helper").click()
    expect(page.locator("#running")).to_contain_text("asked to stop")
    assert last_events(ada, thread, "run_interrupt_requested")[0]["runId"] == "next-run"
    bot.finish(thread, "next-run", "interrupted")


# --- threads and participants ---------------------------------------------------------------------------------------------------


def answer(page: Page, button: str, value: str | None = None) -> None:
    """Answers the dialog."""
    dialog = page.locator("#ask")
    if value is not None:
        dialog.get_by_role("textbox").fill(value)
    dialog.get_by_role("button", name=button).click()
    expect(dialog).to_be_hidden()


@pytest.mark.requirement("SF-24")
def test_a_thread_is_created_renamed_and_deleted(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    page = look(ada).log_in()
    expect(page.get_by_text("No threads yet.")).to_be_visible()
    page.locator("#new-thread").click()
    answer(page, "Create", "Plans")
    expect(page.locator("#title")).to_have_text("Plans")
    page.get_by_role("button", name="Rename").click()
    answer(page, "Rename", "Better plans")
    expect(page.locator("#title")).to_have_text("Better plans")
    expect(page.locator(".thread-title")).to_have_text("Better plans")
    expect(page.locator(".fact-line").last).to_contain_text("Ada named the thread Better plans")
    page.get_by_role("button", name="Delete").click()
    answer(page, "Cancel")
    expect(page.locator("#title")).to_have_text("Better plans")
    page.get_by_role("button", name="Delete").click()
    answer(page, "Delete for good")
    expect(page.get_by_role("heading", name="The thread was deleted")).to_be_visible()
    expect(page.locator(".thread-title")).to_have_count(0)


@pytest.mark.requirement("SF-25")
def test_somebody_is_invited_given_another_role_and_removed(server: Server, look: Look) -> None:
    ada, grace = server.account("Ada"), server.account("Grace Hopper")
    thread = ada.thread("Inviting")
    page = look(ada).look_at(thread)
    page.get_by_label("Who, by principal id").fill("nobody-there")
    page.get_by_role("button", name="Invite").click()
    expect(page.locator("#invite .problem")).not_to_be_empty()
    page.get_by_label("Who, by principal id").fill(grace.principal_id)
    page.get_by_role("button", name="Invite").click()
    expect(page.locator(".fact-line").last).to_contain_text("Grace Hopper joined (by Ada)")
    role = page.get_by_label("Role of Grace Hopper")
    expect(role).to_have_value("participant")
    role.select_option("observer")
    page.wait_for_function(
        "(id) => fetch(`v1/threads/${id}/grants`).then((one) => one.text()).then((text) => text.includes('observer'))",
        arg=thread,
    )
    page.get_by_role("button", name="Remove Grace Hopper").click()
    answer(page, "Remove")
    expect(page.locator(".person")).to_have_count(1)
    assert len(ada.get(f"/v1/threads/{thread}/grants")["grants"]) == 1


@pytest.mark.requirement("SF-25")
def test_who_leaves_has_the_thread_no_more_and_the_last_owner_stays(server: Server, look: Look) -> None:
    ada, grace = server.account("Ada"), server.account("Grace")
    thread = ada.thread("Leaving", grace)
    page = look(grace).look_at(thread)
    expect(page.get_by_role("button", name="Rename")).to_be_hidden()
    page.get_by_role("button", name="Leave").click()
    answer(page, "Leave")
    expect(page.get_by_role("heading", name="You left the thread")).to_be_visible()
    owner = look(ada).look_at(thread)
    owner.get_by_role("button", name="Leave").click()
    owner.locator("#ask").get_by_role("button", name="Leave").click()
    expect(owner.locator("#ask .problem")).not_to_be_empty()


# --- bots -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("SF-26")
def test_a_bot_is_created_and_its_token_is_shown_once_and_revoked(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    page = look(ada).log_in()
    page.get_by_role("button", name="Bots").click()
    page.get_by_label("Name of a new bot").fill("My helper")
    page.get_by_label("Its id").fill("my-helper")
    page.get_by_role("button", name="Create bot").click()
    page.locator("#bot-list summary").click()
    page.get_by_role("button", name="Mint a token").click()
    token = page.get_by_label("The new token").input_value()
    bot = Account(url=server.url, principal_id="my-helper", token=token)
    assert bot.get("/v1/whoami")["kind"] == "bot"
    page.get_by_role("button", name="Close bots").click()
    page.get_by_role("button", name="Bots").click()
    page.locator("#bot-list summary").click()
    expect(page.locator(".tokens li")).to_contain_text("from the page")
    assert token not in page.content()
    page.get_by_role("button", name="Revoke").click()
    expect(page.locator(".tokens li")).to_have_text("No tokens.")
    with pytest.raises(AssertionError, match="401"):
        bot.get("/v1/whoami")


def test_nothing_of_what_was_written_reaches_another_threads_log(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    one, other = ada.thread("One"), ada.thread("Other")
    page = look(ada).look_at(one)
    page.route("**/events:batch", lambda route: route.abort())
    page.get_by_label("Message", exact=True).fill("for one")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator("#outbox li")).to_contain_text("Not sent")
    page.unroute("**/events:batch")
    page.get_by_role("link", name="Other").click()
    expect(page.locator("#title")).to_have_text("Other")
    expect(page.locator("#outbox li")).to_have_count(0)
    page.get_by_role("link", name="One").click()
    page.locator("#outbox").get_by_role("button", name="Discard").click()
    expect(page.locator("#outbox li")).to_have_count(0)
    assert "for one" not in json.dumps([ada.get(f"/v1/threads/{thread}/events") for thread in (one, other)])
