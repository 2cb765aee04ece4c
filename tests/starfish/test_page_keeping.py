"""What is written goes where its author looks, what is kept is told, and what counts as read was on the screen."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, Request, Route, expect

from tests.starfish.conftest import Look
from tests.starfish.stage import Looker, Server, parts

pytestmark = pytest.mark.slow


def held(page: Page, url: str) -> list[Route]:
    """The requests to this address from now on, which wait for the test."""
    routes: list[Route] = []
    page.route(url, lambda route: routes.append(route))  # noqa: PLW0108 - Playwright marks what it is given
    return routes


def until(page: Page, routes: list[Route], count: int = 1) -> None:
    """Returns once so many requests wait."""
    while len(routes) < count:  # the browser says so while it is asked something
        page.evaluate("() => new Promise(requestAnimationFrame)")


# --- to which thread something is sent --------------------------------------------------------------------------------------------


@pytest.mark.requirement("SF-21")
def test_what_is_written_before_the_participants_are_known_goes_into_the_thread_that_was_chosen(
    server: Server, look: Look
) -> None:
    ada, grace = server.account("Ada"), server.account("Grace")
    public, private = ada.thread("Public", grace), ada.thread("Private")
    looker = look(ada)
    page = looker.look_at(public)
    box = page.get_by_label("Message", exact=True)
    expect(page.locator("#title")).to_have_text("Public")
    box.fill("a draft for Grace")
    grants = held(page, f"**/{private}/grants?**")
    page.get_by_role("link", name="Private").click()
    until(page, grants)
    expect(box).to_have_value("")
    box.fill("for me alone")
    box.press("Enter")
    box.fill("a draft for me")
    for route in grants:
        route.continue_()
    expect(page.locator(".message .rich")).to_have_text("for me alone")
    expect(box).to_have_value("a draft for me")
    assert "for me alone" not in json.dumps(grace.get(f"/v1/threads/{public}/events"))
    page.go_back()
    expect(page.locator("#title")).to_have_text("Public")
    expect(box).to_have_value("a draft for Grace")


@pytest.mark.requirement("SF-21")
def test_what_is_sent_while_the_page_begins_is_sent(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    thread = ada.thread("Beginning")
    looker = look(ada)
    page = looker.log_in()
    expect(page.locator("#title")).to_have_text("Beginning")
    grants = held(page, "**/grants?**")
    looker.look_at(thread, page)
    until(page, grants)
    box = page.get_by_label("Message", exact=True)
    box.fill("typed at once")
    box.press("Enter")
    box.fill("and more")
    for route in grants:
        route.continue_()
    expect(page.locator(".message .rich")).to_have_text("typed at once")
    expect(page.locator("#outbox li")).to_have_count(0)
    expect(box).to_have_value("and more")
    assert "null" not in page.evaluate("Object.keys(sessionStorage).join()")


@pytest.mark.requirement("SF-21")
def test_a_thread_that_is_left_before_it_has_come_does_not_come(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    one, other = ada.thread("One"), ada.thread("Other")
    page = look(ada).look_at(one)
    expect(page.locator("#title")).to_have_text("One")
    box = page.get_by_label("Message", exact=True)
    box.fill("for one")
    grants = held(page, f"**/{other}/grants?**")
    for _ in range(2):
        page.get_by_role("link", name="Other").click()
        until(page, grants)
        page.get_by_role("link", name="One").click()
        expect(box).to_have_value("for one")
    for route in grants:
        route.continue_()
    expect(page.locator("#title")).to_have_text("One")
    expect(box).to_have_value("for one")


@pytest.mark.requirement("SF-33")
def test_whether_one_may_write_is_known_also_where_the_participants_cannot_be_had(server: Server, look: Look) -> None:
    ada, grace = server.account("Ada"), server.account("Grace")
    reading, writing = ada.thread("Reading"), ada.thread("Writing", grace)
    ada.call("PUT", f"/v1/threads/{reading}/grants/{grace.principal_id}", {"role": "observer"})
    page = look(grace).look_at(writing)
    expect(page.get_by_label("Message", exact=True)).to_be_visible()
    grants = held(page, "**/grants?**")
    page.get_by_role("link", name="Reading").click()
    until(page, grants)
    expect(page.get_by_label("Message", exact=True)).to_be_hidden()
    expect(page.get_by_text("You may read this thread, not write in it.")).to_be_visible()
    page.get_by_role("link", name="Writing").click()
    until(page, grants, 2)
    expect(page.get_by_label("Message", exact=True)).to_be_visible()
    expect(page.locator("#title")).to_have_text("Writing")


# --- what is kept, and what is told of it -----------------------------------------------------------------------------------------


@pytest.mark.requirement("SF-31", "SF-21")
def test_a_logout_asks_also_where_another_tab_would_lose_what_could_not_be_sent(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    thread = ada.thread("Unsent elsewhere")
    looker = look(ada)
    page = looker.look_at(thread)
    other = looker.look_at(thread, looker.context.new_page())
    page.route("**/events:batch", lambda route: route.abort())
    page.get_by_label("Message", exact=True).fill("important")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator("#outbox li")).to_contain_text("Not sent")
    other.get_by_role("button", name="Log out").click()
    expect(other.locator("#ask")).to_contain_text("Something that you wrote in another tab was not sent")
    other.locator("#ask").get_by_role("button", name="Cancel").click()
    expect(page.locator("#outbox li")).to_contain_text("important")
    page.locator("#outbox").get_by_role("button", name="Discard").click()
    other.get_by_role("button", name="Log out").click()
    expect(other.get_by_label("Your token")).to_be_visible()


@pytest.mark.requirement("SF-31")
def test_a_logout_that_could_not_be_done_says_so_until_it_is_read(own_server: Server, look: Look) -> None:
    ada = own_server.account("Ada")
    page = look(ada).look_at(ada.thread("Staying"))
    expect(page.locator("#title")).to_have_text("Staying")
    own_server.stop()
    page.get_by_role("button", name="Log out").click()
    dialog = page.locator("#ask")
    expect(dialog).to_contain_text("You are still logged in")
    expect(page.locator("#connection")).to_contain_text("The connection was lost")
    expect(dialog).to_contain_text("You are still logged in")
    dialog.get_by_role("button", name="Log out").click()
    expect(dialog.locator(".problem")).to_have_text("The server cannot be reached.")
    own_server.start()
    dialog.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Your token")).to_be_visible()


@pytest.mark.requirement("SF-36")
def test_a_logout_in_the_tab_of_who_was_replaced_says_whose_session_it_is(server: Server, look: Look) -> None:
    ada, grace = server.account("Ada"), server.account("Grace")
    looker = look(ada)
    page = looker.look_at(ada.thread("Replaced", grace))
    other = Looker(looker.context, grace).log_in()
    expect(page.locator("#replaced")).to_contain_text("You are now signed in as Grace")
    page.get_by_role("button", name="Log out").click()
    expect(page.locator("#ask")).to_contain_text("You are now signed in as Grace in this browser.")
    page.locator("#ask").get_by_role("button", name="Reload").click()
    expect(page.locator("#me")).to_have_text("Grace")
    expect(other.locator("#me")).to_have_text("Grace")


@pytest.mark.requirement("SF-21")
def test_what_arrived_without_an_answer_stands_once_however_far_up_it_is(server: Server, look: Look) -> None:
    ada, grace = server.account("Ada"), server.account("Grace")
    thread = ada.thread("Far up", grace)
    looker = look(ada)
    page = looker.log_in()
    page.route("**/messages/stream?**", lambda route: route.abort())
    looker.look_at(thread, page)

    def lose_the_answer(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/events:batch", lose_the_answer)
    for text in ("first of all", "second"):
        page.get_by_label("Message", exact=True).fill(text)
        page.get_by_role("button", name="Send", exact=True).click()
        expect(page.locator("#outbox li", has_text=text)).to_contain_text("Not sent")
    for number in range(120):
        grace.say(thread, f"later {number}" + " and so on\n\n" * 10)
    page.unroute_all()
    page.reload()
    expect(page.locator(".message .rich").last).to_contain_text("later 119")
    expect(page.locator("#outbox li")).to_have_count(2)
    page.locator("#outbox li", has_text="second").get_by_role("button", name="Retry").click()
    expect(page.locator("#outbox li")).to_have_count(1)
    seen = page.locator("#log .rich", has_text="first of all")
    while not seen.count():
        page.locator("#scroller").evaluate("(one) => { one.scrollTop = 0; }")
        page.evaluate("() => new Promise(requestAnimationFrame)")
    expect(seen).to_have_count(1)
    expect(page.locator("#outbox li")).to_have_count(0)


@pytest.mark.requirement("SF-21")
def test_a_message_that_is_too_long_is_not_taken_out_of_the_field(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    thread = ada.thread("Too long")
    page = look(ada).look_at(thread)
    box = page.get_by_label("Message", exact=True)
    box.click()
    box.evaluate("(field) => { field.value = 'x'.repeat(9_000_000); }")
    box.press("Enter")
    problem = page.locator("#too-long")
    expect(problem).to_contain_text("too long")
    assert box.evaluate("(field) => field.value.length") == 9_000_000
    expect(page.locator("#outbox li")).to_have_count(0)
    box.fill("short")
    expect(problem).to_be_hidden()
    box.press("Enter")
    expect(page.locator(".message .rich")).to_have_text("short")


@pytest.mark.requirement("SF-21")
def test_what_the_browser_has_no_room_to_keep_is_said_to_be_lost_by_a_reload(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    page = look(ada).look_at(ada.thread("No room"))
    page.route("**/events:batch", lambda route: route.abort())
    page.evaluate("""() => {
      for (let size = 4_000_000, number = 0; size >= 1; number += 1) {
        try { sessionStorage.setItem(`theirs${number}`, "x".repeat(size)); } catch { size = Math.floor(size / 2); }
      }
    }""")
    page.get_by_label("Message", exact=True).fill("no room for this")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator("#outbox li")).to_contain_text("It is lost when this page is loaded again")
    page.evaluate("sessionStorage.removeItem('theirs0')")
    page.locator("#outbox").get_by_role("button", name="Retry").click()
    expect(page.locator("#outbox li")).to_contain_text("Not sent")
    expect(page.locator("#outbox li")).not_to_contain_text("It is lost")


@pytest.mark.requirement("SF-30")
def test_a_login_that_is_loaded_again_still_leads_into_its_thread(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    thread, _ = ada.thread("Asked for"), ada.thread("The newest")
    page = look(ada).context.new_page()
    page.goto(f"{server.url}/login?thread={thread}")
    expect(page.get_by_label("Your token")).to_be_visible()
    page.reload()
    page.get_by_label("Your token").fill(ada.token)
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("#title")).to_have_text("Asked for")


@pytest.mark.requirement("SF-36")
@pytest.mark.parametrize("view", ["messages", "events"])
def test_two_requests_that_come_with_the_old_session_at_once_both_go_on(
    own_server: Server, look: Look, view: str
) -> None:
    ada = own_server.account("Ada")
    thread = ada.thread("Renewed")
    looker = look(ada)
    page = looker.look_at(thread)
    page.goto(f"{own_server.url}/?thread={thread}&view={view}")
    expect(page.locator("#event-list li" if view == "events" else ".fact-line")).to_have_count(1)
    held_back = held(page, "**/stream?**")
    own_server.stop()
    own_server.start()
    until(page, held_back, 2 if view == "events" else 1)
    answer = looker.context.request.post(f"{own_server.url}/v1/sessions", data={"token": ada.token})
    assert answer.status == 201
    # The list of threads is asked meanwhile and learns the new session first.
    with page.expect_response(lambda one: "/v1/threads?" in one.url and one.status == 200, timeout=15_000):
        pass
    page.unroute("**/stream?**")  # what waits goes on
    expect(page.locator("#connection")).to_be_hidden()
    ada.say(thread, "after")
    expect(page.locator("#thread")).to_be_visible()
    if view == "events":
        expect(page.locator("#event-list li")).to_have_count(6)
    else:
        expect(page.locator(".message .rich")).to_have_text("after")


# --- what is read -----------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("SF-32")
def test_on_a_phone_only_what_was_on_the_screen_counts_as_seen(server: Server, look: Look) -> None:
    ada, grace = server.account("Ada"), server.account("Grace")
    thread = ada.thread("On a phone", grace)
    looker = look(ada, viewport={"width": 390, "height": 844})
    page = looker.log_in()
    page.clock.install()
    looker.look_at(thread, page)
    expect(page.locator(".fact-line")).to_have_count(2)
    told: list[int] = []

    def hear(request: Request) -> None:
        if request.url.endswith("/cursor") and request.method == "PUT":
            told.append(json.loads(request.post_data or "{}")["seq"])

    page.on("request", hear)
    page.clock.run_for(1_000)

    def say(text: str) -> None:
        grace.say(thread, text)
        expect(page.locator("#log .rich", has_text=text)).to_have_count(1)
        page.clock.run_for(6_000)

    page.locator("#thread").get_by_role("button", name="All threads").click()
    say("while the list is shown")
    page.evaluate("() => fetch('v1/whoami').then((one) => one.text())")
    assert [seq for seq in told if seq > 2] == []
    expect(page.locator(".unread")).to_have_text("1")
    page.locator(".thread-link").click()
    page.clock.run_for(1_000)
    expect(page.locator(".unread")).to_have_count(0)
    head = ada.get(f"/v1/threads/{thread}")["headSeq"]
    while head not in told:
        page.evaluate("1")
    page.get_by_role("button", name="Participants", exact=True).click()
    say("while the participants are shown")
    page.evaluate("() => fetch('v1/whoami').then((one) => one.text())")
    assert max(told) == head
    page.get_by_role("button", name="Close participants").click()
    page.clock.run_for(1_000)
    head = ada.get(f"/v1/threads/{thread}")["headSeq"]
    page.wait_for_function(
        "([id, seq]) => fetch(`v1/threads/${id}/cursor`).then((one) => one.json()).then((one) => one.seq === seq)",
        arg=[thread, head],
    )


@pytest.mark.requirement("SF-16")
def test_earlier_events_come_without_a_gap_also_where_they_are_large(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    thread = ada.thread("Large events")
    run = ada.begin(thread, {"type": "text-start", "id": "1"})
    for _ in range(8):
        ada.append(thread, *parts(run, [{"type": "text-delta", "id": "1", "delta": "x" * 60_000}] * 20))
    ada.append(thread, *parts(run, [{"type": "text-delta", "id": "1", "delta": "y"}] * 200))
    ada.finish(thread, run)
    looker = look(ada)
    page = looker.log_in()
    page.goto(f"{server.url}/?thread={thread}&view=events")
    expect(page.locator("#event-list li")).to_have_count(200)
    page.get_by_role("button", name="Earlier events").click()
    head = ada.get(f"/v1/threads/{thread}")["headSeq"]
    expect(page.get_by_role("button", name="Earlier events")).to_be_hidden()
    assert page.locator("#event-list .seq").all_text_contents() == [str(seq) for seq in range(1, head + 1)]


# --- dialogs ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("SF-24", "SF-25")
def test_a_question_names_its_thread_and_goes_with_it(server: Server, look: Look) -> None:
    ada, grace = server.account("Ada"), server.account("Grace")
    one, other = ada.thread("One", grace), ada.thread("Other", grace)
    for thread in (one, other):
        ada.call("PUT", f"/v1/threads/{thread}/grants/{grace.principal_id}", {"role": "owner"})
    page = look(grace).look_at(one)
    expect(page.locator("#title")).to_have_text("One")
    page.get_by_role("link", name="Other").click()
    expect(page.locator("#title")).to_have_text("Other")
    dialog = page.locator("#ask")
    for button in ("Rename", "Leave", "Delete", "Remove Ada"):
        page.get_by_role("button", name=button, exact=True).click()
        expect(dialog.locator("#ask-title, #ask-text").filter(has_text="Other").first).to_be_visible()
        page.go_back()
        expect(page.locator("#title")).to_have_text("One")
        expect(dialog).to_be_hidden()
        page.go_forward()
        expect(page.locator("#title")).to_have_text("Other")
        expect(page.locator(".person")).to_have_count(2)
    page.get_by_role("button", name="Leave").click()
    ada.call("DELETE", f"/v1/threads/{other}/grants/{grace.principal_id}")
    expect(page.locator("#welcome-title")).to_have_text("You have no access to this thread")
    expect(dialog).to_be_hidden()


@pytest.mark.requirement("SF-24")
def test_what_was_asked_of_a_thread_that_was_left_meanwhile_takes_no_other_off_the_screen(
    server: Server, look: Look
) -> None:
    ada = server.account("Ada")
    one, other = ada.thread("One"), ada.thread("Other")
    page = look(ada).look_at(one)
    expect(page.locator("#title")).to_have_text("One")
    page.get_by_role("link", name="Other").click()
    expect(page.locator("#title")).to_have_text("Other")
    deletes = held(page, f"**/v1/threads/{other}")
    page.get_by_role("button", name="Delete").click()
    page.locator("#ask").get_by_role("button", name="Delete for good").click()
    until(page, deletes)
    page.go_back()
    expect(page.locator("#title")).to_have_text("One")
    deletes[0].continue_()
    expect(page.locator(".thread-title")).to_have_count(1)
    expect(page.locator("#ask")).to_be_hidden()
    expect(page.locator("#title")).to_have_text("One")
