"""Sessions and connections: how one comes in and out, several people and tabs, and a page whose server goes away."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from tests.starfish.conftest import Look
from tests.starfish.stage import CHILD, Account, Looker, Server

pytestmark = pytest.mark.slow


def texts(page: Page) -> list[str]:
    return [text.strip() for text in page.locator(".message .rich").all_text_contents()]


@pytest.mark.requirement("SF-30")
def test_a_login_link_leads_into_its_thread_and_is_good_once(tmp_path: Path, look: Look) -> None:
    options = {"port": 0, "data": str(tmp_path), "log": {"level": "error"}}
    child = subprocess.Popen([sys.executable, str(CHILD), json.dumps(options)], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        told = json.loads(child.stdout.readline())
        admin = Account(url=told["url"], principal_id="admin", token=told["token"])
        thread = admin.thread("The beginning")
        looker = look(admin)
        page = looker.context.new_page()
        page.goto(f"{told['login']}&thread={thread}")
        expect(page.locator("#title")).to_have_text("The beginning")
        assert "code" not in page.url
        # Somebody who is logged in decides whether to be somebody else.
        page.goto(told["login"])
        expect(page.get_by_text("You are logged in as Administrator.")).to_be_visible()
        looker.context.clear_cookies()
        page.goto(told["login"])
        expect(page.get_by_role("alert")).to_contain_text("used before, or is too old")
        expect(page.get_by_label("Your token")).to_be_visible()
    finally:
        child.kill()
        child.communicate()


@pytest.mark.requirement("SF-31")
def test_after_logout_nothing_is_left_and_the_address_asks_for_a_login(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    thread = ada.thread("Private")
    page = look(ada).look_at(thread)
    page.get_by_label("Message", exact=True).fill("a draft")
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Your token")).to_be_visible()
    expect(page.locator("#problem")).to_have_text("")
    assert page.evaluate("sessionStorage.length") == 0
    page.goto(f"{server.url}/?thread={thread}")
    expect(page).to_have_url(f"{server.url}/login")
    page.get_by_label("Your token").fill(ada.token)
    page.keyboard.press("Enter")
    expect(page.locator("#title")).to_have_text("Private")


@pytest.mark.requirement("SF-31")
def test_a_wrong_token_is_refused_in_words(server: Server, look: Look) -> None:
    page = look(server.admin).context.new_page()
    page.goto(f"{server.url}/login")
    page.get_by_label("Your token").fill("bubble_user_nothing")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_have_text(
        "This token is unknown, too old or revoked. Check that you have pasted all of it."
    )


@pytest.mark.requirement("SF-31")
def test_a_revoked_session_ends_at_the_login_that_says_so(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    thread = ada.thread("Revoked")
    page = look(ada).look_at(thread)
    expect(page.locator(".fact-line")).to_contain_text("Ada joined")
    (token,) = ada.get(f"/v1/principals/{ada.principal_id}/tokens")["tokens"]
    server.admin.call("DELETE", f"/v1/principals/{ada.principal_id}/tokens/{token['tokenId']}")
    expect(page).to_have_url(re.compile("/login"))
    expect(page.get_by_role("alert")).to_have_text("Your session has ended. Log in again.")
    assert "Revoked" not in page.content()


@pytest.mark.requirement("SF-31")
def test_a_logout_in_one_tab_is_one_in_all_tabs_also_in_those_that_slept(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    thread = ada.thread("Several tabs")
    looker = look(ada)
    one = looker.look_at(thread)
    other, asleep = (looker.look_at(thread, looker.context.new_page()) for _ in range(2))
    for page in (one, other, asleep):
        page.get_by_label("Message", exact=True).fill("a draft")
        assert page.evaluate("sessionStorage.length") == 1
    asleep.goto("about:blank")
    one.get_by_role("button", name="Log out").click()
    expect(other).to_have_url(f"{server.url}/login")
    expect(other.locator("#problem")).to_have_text("")
    asleep.goto(f"{server.url}/?thread={thread}")
    for page in (one, other, asleep):
        expect(page.get_by_label("Your token")).to_be_visible()
        assert page.evaluate("sessionStorage.length") == 0
    # Nor is there anything for who logs in now, or goes back.
    other.get_by_label("Your token").fill(ada.token)
    other.get_by_role("button", name="Log in").click()
    expect(other.locator("#title")).to_have_text("Several tabs")
    expect(other.get_by_label("Message", exact=True)).to_have_value("")


@pytest.mark.requirement("SF-31", "SF-21")
def test_a_logout_asks_first_where_it_would_take_what_could_not_be_sent(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    thread, other = ada.thread("Unsent"), ada.thread("Other")
    page = look(ada).look_at(thread)
    page.route("**/events:batch", lambda route: route.abort())
    page.get_by_label("Message", exact=True).fill("important")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator("#outbox li")).to_contain_text("Not sent")
    page.goto(f"{server.url}/?thread={other}")
    expect(page.locator("#title")).to_have_text("Other")
    page.get_by_role("button", name="Log out").click()
    expect(page.locator("#ask")).to_contain_text("Something that you wrote was not sent")
    page.locator("#ask").get_by_role("button", name="Cancel").click()
    page.goto(f"{server.url}/?thread={thread}")
    expect(page.locator("#outbox li")).to_contain_text("important")
    page.get_by_role("button", name="Log out").click()
    page.locator("#ask").get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Your token")).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 0


@pytest.mark.requirement("SF-31")
def test_what_belongs_to_another_application_of_the_same_origin_outlives_a_logout(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    page = look(ada).look_at(ada.thread("Mounted"))
    page.evaluate("sessionStorage.setItem('theirs', '1')")
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Your token")).to_be_visible()
    assert page.evaluate("({...sessionStorage})") == {"theirs": "1"}


def log_in_elsewhere(looker: Looker, account: Account) -> None:
    """In another tab of the same browser."""
    Looker(looker.context, account).log_in().close()


@pytest.mark.requirement("SF-36")
def test_a_tab_is_told_that_somebody_else_is_logged_in_now_and_keeps_its_draft(server: Server, look: Look) -> None:
    ada, grace = server.account("Ada"), server.account("Grace")
    thread = ada.thread("Whose tab", grace)
    looker = look(ada)
    page = looker.look_at(thread)
    box = page.get_by_label("Message", exact=True)
    box.fill("Ada's words")
    sent: list[str] = []
    log_in_elsewhere(looker, grace)
    notice = page.locator("#replaced")
    expect(notice).to_contain_text("You are now signed in as Grace in this browser.")
    expect(page.locator("#me")).to_have_text("Ada")
    page.on("request", lambda request: sent.append(request.url))
    box.press("Enter")
    page.get_by_role("button", name="Rename").click()
    page.locator("#ask").get_by_role("button", name="Rename").click()
    expect(page.locator("#ask .problem")).to_have_text("You are now signed in as Grace in this browser.")
    page.keyboard.press("Escape")
    expect(box).to_have_value("Ada's words")
    expect(page.locator("#outbox li")).to_have_count(0)
    assert sent == []
    notice.get_by_role("button", name="Reload").click()
    expect(page.locator("#me")).to_have_text("Grace")
    expect(box).to_have_value("")
    expect(notice).to_be_hidden()
    # What Ada wrote comes back with her.
    log_in_elsewhere(looker, ada)
    notice.get_by_role("button", name="Reload").click()
    expect(box).to_have_value("Ada's words")
    assert [event["type"] for event in ada.get(f"/v1/threads/{thread}/events")["events"]] == ["participant_joined"] * 2


def log_in_unheard(looker: Looker, account: Account) -> None:
    """As by another page of this origin, which tells no tab."""
    answer = looker.context.request.post(f"{account.url}/v1/sessions", data={"token": account.token})
    assert answer.status == 201


@pytest.mark.requirement("SF-36")
@pytest.mark.parametrize("act", ["look", "send", "stream"])
def test_a_tab_that_was_not_told_notices_with_whatever_it_asks_next(server: Server, look: Look, act: str) -> None:
    ada, grace = server.account("Ada"), server.account("Grace")
    thread = ada.thread("Unheard", grace)
    grace.thread("For Grace alone")
    looker = look(ada)
    page = looker.log_in()
    page.clock.install()
    looker.look_at(thread, page)
    expect(page.locator(".fact-line")).to_have_count(2)
    if act != "look":  # nor does it ask anything else
        for asked in ("**/v1/threads?**", "**/runs?**", "**/cursor"):
            page.route(asked, lambda route: route.abort())
    page.clock.pause_at(page.evaluate("Date.now() + 1000"))
    log_in_unheard(looker, grace)
    if act == "look":
        page.clock.run_for(6_000)
    elif act == "send":
        page.get_by_label("Message", exact=True).fill("Ada's words")
        page.get_by_role("button", name="Send", exact=True).click()
        expect(page.locator("#outbox li")).to_contain_text("Not sent. You are now signed in as Grace in this browser.")
        page.locator("#outbox").get_by_role("button", name="Retry").click()
    else:
        page.clock.run_for(41_000)
        page.clock.resume()
    expect(page.locator("#replaced")).to_contain_text("You are now signed in as Grace in this browser.")
    expect(page.locator("#connection")).to_be_hidden()
    expect(page.get_by_text("For Grace alone")).to_have_count(0)
    expect(page.locator(".fact-line")).to_have_count(2)
    assert len(ada.get(f"/v1/threads/{thread}/events")["events"]) == 2


@pytest.mark.requirement("SF-36")
def test_who_logs_in_again_as_oneself_goes_on_in_every_tab(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    thread = ada.thread("Again")
    looker = look(ada)
    page = looker.look_at(thread)
    for number, log_in in enumerate((log_in_elsewhere, log_in_unheard), 1):
        log_in(looker, ada)
        page.get_by_label("Message", exact=True).fill(f"Sent {number}")
        page.get_by_role("button", name="Send", exact=True).click()
        expect(page.locator(".message .rich")).to_have_count(number)
        expect(page.locator("#outbox li")).to_have_count(0)
    expect(page.locator("#replaced")).to_be_hidden()


@pytest.mark.requirement("SF-21")
def test_what_is_on_its_way_when_another_thread_is_opened_is_not_called_unsent(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    one, _ = ada.thread("One"), ada.thread("Other")
    page = look(ada).look_at(one)
    held: list[Route] = []
    page.route("**/events:batch", lambda route: held.append(route))  # noqa: PLW0108 - Playwright marks what it is given
    page.get_by_label("Message", exact=True).fill("On its way")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator("#outbox li")).to_contain_text("Sending")
    page.get_by_role("link", name="Other").click()
    expect(page.locator("#title")).to_have_text("Other")
    page.go_back()
    expect(page.locator("#outbox li")).to_contain_text("Sending")
    page.go_forward()
    expect(page.locator("#title")).to_have_text("Other")
    with page.expect_response("**/events:batch"):
        held[0].continue_()
    # What this tab keeps says the same as what it shows.
    page.wait_for_function("() => !Object.keys(sessionStorage).some((key) => key.includes('outbox'))")
    page.go_back()
    expect(page.locator(".message .rich")).to_have_text("On its way")
    expect(page.locator("#outbox li")).to_have_count(0)


@pytest.mark.requirement("SF-32")
def test_two_people_and_two_tabs_see_the_same(server: Server, look: Look) -> None:
    ada, grace = server.account("Ada"), server.account("Grace")
    thread = ada.thread("Together", grace)
    adas = look(ada)
    one = adas.look_at(thread)
    other = adas.context.new_page()
    adas.look_at(thread, other)
    hers = look(grace).look_at(thread)
    for page, text in ((one, "from Ada"), (hers, "from Grace"), (other, "from Ada's other tab")):
        page.get_by_label("Message", exact=True).fill(text)
        page.get_by_role("button", name="Send", exact=True).click()
        for each in (one, other, hers):
            expect(each.locator(".message .rich", has_text=text)).to_have_count(1)
    assert texts(one) == texts(other) == texts(hers) == ["from Ada", "from Grace", "from Ada's other tab"]


@pytest.mark.requirement("SF-32")
def test_what_was_read_in_one_tab_is_read_in_the_others(server: Server, look: Look) -> None:
    ada, grace = server.account("Ada"), server.account("Grace")
    first, second = ada.thread("First", grace), ada.thread("Second", grace)
    grace.say(first, "one")
    looker = look(ada)
    page = looker.look_at(second)
    other = looker.look_at(second, looker.context.new_page())
    for each in (page, other):
        expect(each.locator(".unread")).to_have_text("1")
    page.get_by_role("link", name="First").click()
    for each in (page, other):
        expect(each.locator(".unread")).to_have_count(0)


@pytest.mark.requirement("SF-33")
def test_a_restart_in_the_middle_of_a_message_loses_and_doubles_nothing(own_server: Server, look: Look) -> None:
    ada = own_server.account("Ada")
    bot = own_server.account("Helper", kind="bot", owner=ada.principal_id)
    thread = ada.thread("Restarting", bot)
    ada.say(thread, "Count!")
    run = bot.begin(thread, {"type": "text-start", "id": "1"}, {"type": "text-delta", "id": "1", "delta": "one "})
    page = look(ada).look_at(thread)
    expect(page.locator(".message .rich").last).to_have_text("one")
    own_server.stop()
    expect(page.locator("#connection")).to_contain_text("The connection was lost")
    page.get_by_label("Message", exact=True).fill("While you were away")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator("#outbox li")).to_contain_text("Not sent")
    own_server.start()
    bot.go_on(thread, run, {"type": "text-delta", "id": "1", "delta": "two "})
    expect(page.locator(".message .rich").last).to_have_text("one two")
    expect(page.locator("#connection")).to_be_hidden()
    page.locator("#outbox").get_by_role("button", name="Retry").click()
    expect(page.locator(".message .rich", has_text="While you were away")).to_have_count(1)
    bot.go_on(thread, run, {"type": "text-delta", "id": "1", "delta": "three"}, {"type": "text-end", "id": "1"})
    bot.finish(thread, run)
    expect(page.locator(".message .rich")).to_have_text(["Count!", "one two", "While you were away", "three"])


@pytest.mark.requirement("SF-33")
def test_a_thread_that_is_asked_for_while_the_server_is_away_is_there_when_it_is_back(
    own_server: Server, look: Look
) -> None:
    ada = own_server.account("Ada")
    one, other = ada.thread("One"), ada.thread("Other")
    ada.say(other, "Here I am")
    page = look(ada).look_at(one)
    expect(page.locator(".thread-link")).to_have_count(2)
    own_server.stop()
    page.get_by_role("link", name="Other").click()
    expect(page.locator("#connection")).to_contain_text("The connection was lost")
    expect(page.locator("#welcome")).to_be_hidden()
    assert other in page.url
    own_server.start()
    expect(page.locator("#title")).to_have_text("Other", timeout=10_000)
    expect(page.locator(".message .rich")).to_have_text("Here I am")
    expect(page.locator(".person")).to_have_count(1)
    expect(page.locator("#connection")).to_be_hidden()


@pytest.mark.requirement("SF-33")
def test_names_that_could_not_be_had_are_asked_for_again(server: Server, look: Look) -> None:
    ada, grace = server.account("Ada"), server.account("Grace Hopper")
    thread = ada.thread("Names", grace)
    grace.say(thread, "hello")
    ada.call("DELETE", f"/v1/threads/{thread}/grants/{grace.principal_id}")
    looker = look(ada)
    page = looker.log_in()
    for asked in ("**/grants?**", "**/v1/principals/**"):
        page.route(asked, lambda route: route.abort())
    looker.look_at(thread, page)
    expect(page.locator(".message .author")).to_have_text(grace.principal_id)
    page.unroute_all()
    expect(page.locator(".message .author")).to_have_text("Grace Hopper", timeout=10_000)
    expect(page.locator(".person")).to_have_count(1)


@pytest.mark.requirement("SF-34")
def test_who_is_removed_while_looking_sees_nothing_more(server: Server, look: Look) -> None:
    ada, grace = server.account("Ada"), server.account("Grace")
    thread = ada.thread("Secret", grace)
    ada.say(thread, "before")
    page = look(grace).look_at(thread)
    expect(page.locator(".message .rich")).to_have_text("before")
    ada.call("DELETE", f"/v1/threads/{thread}/grants/{grace.principal_id}")
    ada.say(thread, "after")
    expect(page.get_by_role("heading", name="You have no access to this thread")).to_be_visible()
    expect(page.locator("#log .message")).to_have_count(0)
    expect(page.locator(".thread-title")).to_have_count(0)
    assert "after" not in page.content()


@pytest.mark.requirement("SF-34")
def test_who_is_removed_while_looking_at_the_events_sees_nothing_more_of_them(server: Server, look: Look) -> None:
    ada, grace = server.account("Ada"), server.account("Grace")
    thread = ada.thread("A secret title", grace)
    ada.say(thread, "secret words")
    page = look(grace).look_at(thread)
    page.get_by_role("button", name="Events", exact=True).click()
    page.locator("#event-list summary").nth(4).click()
    expect(page.locator("#event-list pre")).to_contain_text("secret words")
    ada.call("DELETE", f"/v1/threads/{thread}/grants/{grace.principal_id}")
    expect(page.get_by_role("heading", name="You have no access to this thread")).to_be_visible()
    expect(page.locator(".thread-title")).to_have_count(0)
    assert "secret" not in page.content()
    assert ada.principal_id not in page.content()


@pytest.mark.requirement("SF-34")
def test_a_question_about_a_thread_that_is_gone_meanwhile_is_gone_with_it(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    thread = ada.thread("Going")
    page = look(ada).look_at(thread)
    page.get_by_role("button", name="Rename").click()
    ada.call("DELETE", f"/v1/threads/{thread}")
    expect(page.locator("#welcome-title")).to_have_text("You have no access to this thread")
    expect(page.locator("#ask")).to_be_hidden()
    expect(page.locator("#welcome-title")).to_be_focused()


@pytest.mark.requirement("SF-34")
def test_who_may_only_read_from_now_on_is_told_while_looking(server: Server, look: Look) -> None:
    ada, grace = server.account("Ada"), server.account("Grace")
    thread = ada.thread("Roles", grace)
    owner, page = look(ada).look_at(thread), look(grace).look_at(thread)
    expect(page.get_by_label("Message", exact=True)).to_be_visible()
    owner.get_by_label("Role of Grace").select_option("observer")
    expect(page.get_by_text("You may read this thread, not write in it.")).to_be_visible(timeout=10_000)
    expect(page.locator(".person", has_text="Grace")).to_contain_text("observer")
    owner.get_by_label("Role of Grace").select_option("owner")
    expect(page.get_by_role("button", name="Rename")).to_be_visible(timeout=10_000)


@pytest.mark.requirement("SF-34")
@pytest.mark.parametrize("thread", ["no-such-thread", "__proto__", "<img src=x>"])
def test_an_address_of_no_thread_says_so(server: Server, look: Look, thread: str) -> None:
    ada = server.account("Ada")
    for width in (1280, 390):
        page = look(ada, viewport={"width": width, "height": 800}).log_in()
        page.goto(f"{server.url}/?thread={thread}")
        expect(page.locator("#welcome-title")).to_be_in_viewport()
        expect(page.locator("#welcome-title")).not_to_have_text("Choose a thread")


@pytest.mark.requirement("SF-35")
def test_a_page_in_the_background_lets_go_of_its_connection_and_catches_up_in_the_foreground(
    server: Server, look: Look
) -> None:
    ada, grace = server.account("Ada"), server.account("Grace")
    thread = ada.thread("Background", grace)
    looker = look(ada)
    page = looker.log_in()
    page.clock.install()
    looker.look_at(thread, page)
    grace.say(thread, "seen")
    expect(page.locator(".message .rich")).to_have_text("seen")
    turn = """(state) => {
      Object.defineProperty(document, "hidden", { value: state === "hidden", configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.evaluate(turn, "hidden")
    with page.expect_event("requestfailed", lambda request: "messages/stream" in request.url):
        page.clock.run_for(61_000)
    grace.say(thread, "missed")
    page.evaluate(turn, "visible")
    page.clock.resume()
    expect(page.locator(".message .rich")).to_have_text(["seen", "missed"])


@pytest.mark.requirement("SF-20")
def test_messages_that_are_sent_quickly_stay_in_their_order(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    thread = ada.thread("Quick")
    page = look(ada).look_at(thread)
    held: list[Route] = []
    page.route("**/events:batch", lambda route: held.append(route))  # noqa: PLW0108 - Playwright marks what it is given
    box = page.get_by_label("Message", exact=True)
    for text in ("first", "second", "third"):
        box.fill(text)
        box.press("Enter")
    expect(page.locator("#outbox li")).to_have_count(3)
    for sent in range(1, 4):
        while len(held) < sent:  # the browser says so while it is asked something
            page.evaluate("() => new Promise(requestAnimationFrame)")
        assert len(held) == sent
        with page.expect_response("**/events:batch"):
            held[-1].continue_()
        expect(page.locator("#outbox li")).to_have_count(3 - sent)
    assert texts(page) == ["first", "second", "third"]
