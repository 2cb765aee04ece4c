"""The page for everybody: with a keyboard alone, on a phone, in the dark, and by the rules of axe-core."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page, expect

from tests.starfish.conftest import Look
from tests.starfish.stage import Account, Server, spoken

pytestmark = pytest.mark.slow


def a_scene(server: Server) -> tuple[Account, Account, str]:
    """Ada, a bot, and a thread that has something of everything."""
    ada = server.account("Ada Lovelace")
    bot = server.account("Helper", kind="bot", owner=ada.principal_id)
    thread = ada.thread("Everything", bot)
    ada.say(
        thread,
        "# Do it\n\n- one\n- two\n\n| a | b |\n|--|--|\n| 1 | 2 |\n\n```py\ncode()\n```\n\n> quoted [link](https://example.com)",
    )
    bot.begin(
        thread,
        {"type": "reasoning-start", "id": "r"},
        {"type": "reasoning-delta", "id": "r", "delta": "hm"},
        {"type": "reasoning-end", "id": "r"},
        *spoken("I will."),
        {"type": "tool-input-available", "toolCallId": "c", "toolName": "refund", "input": {"order": 1815}},
        {"type": "tool-approval-request", "approvalId": "a", "toolCallId": "c"},
    )
    bad = bot.begin(thread, *spoken("I fail."), {"type": "error", "errorText": "No."})
    bot.finish(thread, bad, "failed")
    return ada, bot, thread


def violations(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [f"{one['id']} ({one['impact']}): {[node['html'][:160] for node in one['nodes'][:3]]}" for one in found]


@pytest.mark.requirement("SF-40")
@pytest.mark.timeout(240)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_on_any_view(
    server: Server, look: Look, scheme: Literal["light", "dark"], width: int
) -> None:
    ada, _, thread = a_scene(server)
    looker = look(ada, viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = looker.context.new_page()
    page.goto(f"{server.url}/login")
    expect(page.get_by_label("Your token")).to_be_focused()
    assert violations(page) == []
    page = looker.look_at(thread)
    expect(page.get_by_role("button", name="Approve refund")).to_be_visible()
    assert violations(page) == []
    page.locator("#as-events").click()
    page.locator("#event-list summary").last.click()
    assert violations(page) == []
    if page.locator("#people").is_hidden():
        page.locator("#to-people").click()
        assert violations(page) == []
        page.locator("#close-people").click()
    if width < 800:
        page.locator("#thread .to-threads").click()
        assert violations(page) == []
    page.get_by_role("button", name="Bots").click()
    page.locator("#bot-list summary").click()
    page.get_by_role("button", name="Mint a token").click()
    expect(page.get_by_label("The new token")).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.locator("#new-thread").click()
    assert violations(page) == []


@pytest.mark.requirement("SF-41")
def test_everything_can_be_done_with_the_keyboard_alone(server: Server, look: Look) -> None:
    ada, bot, thread = a_scene(server)
    ada.thread("Another")
    page = look(ada).context.new_page()
    page.goto(f"{server.url}/login")
    page.keyboard.type(ada.token)
    page.keyboard.press("Enter")
    expect(page.locator("#title")).to_have_text("Another")
    page.keyboard.press("Control+k")
    expect(page.get_by_label("Search threads")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("#title")).to_have_text("Everything")
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    page.keyboard.type("By keyboard")
    page.keyboard.press("Enter")
    expect(page.locator(".message .rich", has_text="By keyboard")).to_be_visible()
    tab_to(page, "Reject refund", backwards=True)
    page.keyboard.press("Enter")
    expect(page.get_by_label("Reason (optional)")).to_be_focused()
    page.keyboard.type("No")
    page.keyboard.press("Enter")
    expect(page.locator(".tool-state")).to_have_text("Rejected: No")
    tab_to(page, "Stop Helper")
    page.keyboard.press("Enter")
    expect(page.locator("#running")).to_contain_text("asked to stop")
    tab_to(page, "Rename")
    page.keyboard.press("Enter")
    page.keyboard.type("Renamed")
    page.keyboard.press("Enter")
    expect(page.locator("#title")).to_have_text("Renamed")
    tab_to(page, "Delete")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(page.locator("#ask")).to_be_hidden()
    assert bot.get(f"/v1/threads/{thread}")["title"] == "Renamed"


@pytest.mark.requirement("SF-41")
def test_the_focus_stays_near_what_was_done(server: Server, look: Look) -> None:
    ada, bot, thread = a_scene(server)
    page = look(ada).look_at(thread)
    page.get_by_role("button", name="Approve refund").press("Enter")
    expect(page.locator(".tool-state")).to_have_text("Approved")
    expect(page.get_by_label("Tool call: refund")).to_be_focused()
    # Somebody else begins to work while the button has the focus.
    page.get_by_role("button", name="Stop Helper").focus()
    other = bot.begin(thread, *spoken("Another"))
    expect(page.get_by_role("button", name="Stop Helper")).to_have_count(2)
    expect(page.get_by_role("button", name="Stop Helper").first).to_be_focused()
    bot.finish(thread, other)
    expect(page.get_by_role("button", name="Stop Helper")).to_have_count(1)
    page.get_by_role("button", name="Stop Helper").press("Enter")
    expect(page.locator("#running")).to_contain_text("asked to stop")
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    page.get_by_role("button", name="Delete").press("Enter")
    page.get_by_role("button", name="Delete for good").press("Enter")
    expect(page.locator("#welcome-title")).to_be_focused()


@pytest.mark.requirement("SF-41")
@pytest.mark.parametrize(("width", "where"), [(1280, "Message"), (390, "Message"), (390, "Close participants")])
def test_who_is_removed_has_the_focus_where_it_says_so(server: Server, look: Look, width: int, where: str) -> None:
    ada, grace = server.account("Ada"), server.account("Grace")
    thread = ada.thread("Removing", grace)
    page = look(grace, viewport={"width": width, "height": 800}).look_at(thread)
    if where == "Message":
        page.get_by_label("Message", exact=True).click()
    else:
        page.get_by_role("button", name="Participants", exact=True).click()
        expect(page.get_by_role("button", name=where)).to_be_focused()
    ada.call("DELETE", f"/v1/threads/{thread}/grants/{grace.principal_id}")
    expect(page.locator("#welcome-title")).to_be_focused()
    expect(page.locator("#welcome-title")).to_have_text("You have no access to this thread")


@pytest.mark.requirement("SF-41")
def test_who_is_removed_while_searching_hears_so_and_goes_on(server: Server, look: Look) -> None:
    ada, grace = server.account("Ada"), server.account("Grace")
    thread = ada.thread("Removing", grace)
    page = look(grace).look_at(thread)
    page.get_by_label("Search threads").fill("Rem")
    ada.call("DELETE", f"/v1/threads/{thread}/grants/{grace.principal_id}")
    expect(page.locator("#announcer")).to_have_text("You have no access to this thread")
    expect(page.get_by_label("Search threads")).to_be_focused()


@pytest.mark.requirement("SF-41")
def test_who_may_only_read_from_now_on_hears_so_and_has_the_focus(server: Server, look: Look) -> None:
    ada, grace = server.account("Ada"), server.account("Grace")
    thread = ada.thread("Only reading", grace)
    page = look(grace).look_at(thread)
    page.get_by_label("Message", exact=True).fill("half a")
    ada.call("PUT", f"/v1/threads/{thread}/grants/{grace.principal_id}", {"role": "observer"})
    expect(page.locator("#title")).to_be_focused(timeout=10_000)
    expect(page.locator("#announcer")).to_have_text("You may read this thread, not write in it.")


@pytest.mark.requirement("SF-41", "SF-22")
@pytest.mark.parametrize("how", ["decided", "ended"])
def test_a_reason_that_came_too_late_is_kept_and_said(server: Server, look: Look, how: str) -> None:
    ada, grace = server.account("Ada"), server.account("Grace")
    bot = server.account("Helper", kind="bot", owner=ada.principal_id)
    thread = ada.thread("Too late", grace, bot)
    run = bot.begin(
        thread,
        {"type": "tool-input-available", "toolCallId": "c", "toolName": "refund", "input": {}},
        {"type": "tool-approval-request", "approvalId": "a", "toolCallId": "c"},
    )
    page = look(ada).look_at(thread)
    page.get_by_role("button", name="Reject refund").press("Enter")
    page.keyboard.type("because it is too much")
    if how == "decided":
        grace.append(thread, {"type": "tool_call_approval", "runId": run, "toolCallId": "c", "approved": True})
    else:
        bot.finish(thread, run, "interrupted")
    said = {"decided": "Approved", "ended": "No outcome"}[how]
    expect(page.get_by_label("Tool call: refund")).to_be_focused()
    expect(page.locator(".tool").get_by_role("alert").filter(has_text="because")).to_have_text(
        f"{said}, before you sent: because it is too much"
    )


@pytest.mark.requirement("SF-41", "SF-27")
def test_a_result_that_came_too_late_is_kept_and_said(server: Server, look: Look) -> None:
    ada, grace = server.account("Ada"), server.account("Grace")
    bot = server.account("Helper", kind="bot", owner=ada.principal_id)
    thread = ada.thread("Two answers", grace, bot)
    run = bot.begin(thread, {"type": "tool-input-available", "toolCallId": "w", "toolName": "look_up", "input": {}})
    bot.finish(thread, run)
    page = look(ada).look_at(thread)
    page.get_by_label("Its result, as text or JSON").fill("my answer")
    grace.append(
        thread,
        {"type": "tool_call_result", "runId": run, "toolCallId": "w", "input": {}, "output": "hers"},
    )
    expect(page.get_by_label("Tool call: look_up")).to_be_focused()
    expect(page.locator(".tool .undone")).to_have_text("Done, before you sent: my answer")


@pytest.mark.requirement("SF-41")
def test_the_search_is_reached_from_the_participants_too(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    page = look(ada, viewport={"width": 700, "height": 800}).look_at(ada.thread("Searching"))
    page.get_by_role("button", name="Participants", exact=True).click()
    page.keyboard.press("Control+k")
    expect(page.get_by_label("Search threads")).to_be_focused()
    expect(page.locator("#people")).to_be_hidden()
    page.get_by_role("button", name="New thread").first.click()
    page.keyboard.press("Control+k")
    expect(page.locator("#ask-value")).to_be_focused()


@pytest.mark.requirement("SF-34")
@pytest.mark.parametrize("capabilities", [["thread.read", "events.subscribe"], ["thread.read"]])
def test_a_session_that_may_only_read_is_offered_nothing_else(
    server: Server, look: Look, capabilities: list[str]
) -> None:
    ada, _, thread = a_scene(server)
    token = ada.post(f"/v1/principals/{ada.principal_id}/tokens", {"capabilities": capabilities})["token"]
    page = look(replace(ada, token=token)).log_in()
    page.goto(f"{server.url}/?thread={thread}")
    if "events.subscribe" in capabilities:
        expect(page.get_by_text("You may read this thread, not write in it.")).to_be_visible()
        expect(page.locator("#log .tool-state").first).to_be_visible()
        expect(page.locator("#running")).to_contain_text("Helper is working")
    else:
        expect(page.locator("#welcome-title")).to_have_text("This session may not read messages")
    for name in ("Send", "Invite", "Rename", "Delete", "Leave", "Approve refund", "Stop Helper", "New thread", "Bots"):
        expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)
    expect(page.locator(".role-select")).to_have_count(0)


@pytest.mark.requirement("SF-42")
@pytest.mark.parametrize("width", [1280, 1000, 390])
def test_the_page_is_as_high_as_the_window(server: Server, look: Look, width: int) -> None:
    ada = server.account("Ada")
    page = look(ada, viewport={"width": width, "height": 800}).look_at(ada.thread("Height"))
    expect(page.locator("#log .message")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollHeight - innerHeight") == 0


@pytest.mark.requirement("SF-41")
def test_a_list_that_says_the_same_is_left_as_it_is(server: Server, look: Look) -> None:
    ada, _, thread = a_scene(server)
    page = look(ada).log_in()
    page.clock.install()
    look_at = f"{server.url}/?thread={thread}"
    page.goto(look_at)
    expect(page.locator(".person .busy")).to_be_visible()
    page.evaluate(
        "for (const one of document.querySelectorAll('#thread-list > *, #people-list > *')) one.dataset.seen = '1'"
    )
    for _ in range(2):
        with page.expect_response("**/v1/threads?**"), page.expect_response("**/runs?**"):
            page.clock.run_for(6_000)
    assert page.locator("#thread-list > :not([data-seen]), #people-list > :not([data-seen])").count() == 0


@pytest.mark.requirement("SF-41")
@pytest.mark.parametrize("width", [1280, 390])
def test_the_skip_link_leads_to_what_the_view_is_for(server: Server, look: Look, width: int) -> None:
    ada, _, thread = a_scene(server)
    looker = look(ada, viewport={"width": width, "height": 800})
    page = looker.look_at(thread)
    skip = page.get_by_role("link", name="To the messages")
    address = page.url
    if width < 800:
        page.locator("#thread .to-threads").click()
    skip.press("Enter")
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    page.locator("#as-events").click()
    skip.press("Enter")
    expect(page.get_by_role("region", name="Events")).to_be_focused()
    page.goto(f"{server.url}/?thread=none")
    expect(page.locator("#welcome-title")).to_be_visible()
    skip.press("Enter")
    expect(page.locator("#welcome-title")).to_be_focused()
    assert "#" not in page.url + address


@pytest.mark.requirement("SF-41")
def test_headings_of_a_message_stand_below_those_of_the_page(server: Server, look: Look) -> None:
    ada, _, thread = a_scene(server)
    page = look(ada).look_at(thread)
    expect(page.get_by_role("heading", name="Do it")).to_be_visible()
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    headings = [node for node in tree if node.get("role", {}).get("value") == "heading"]
    levels = {
        node["name"]["value"]: one["value"]["value"]
        for node in headings
        for one in node["properties"]
        if one["name"] == "level"
    }
    assert {name: levels[name] for name in ("Bubble", "Everything", "Today", "Do it")} == {
        "Bubble": 1,
        "Everything": 1,
        "Today": 2,
        "Do it": 3,
    }


@pytest.mark.requirement("SF-41", "SF-33")
def test_the_connection_is_said_to_who_listens(own_server: Server, look: Look) -> None:
    ada = own_server.account("Ada")
    page = look(ada).look_at(ada.thread("Listening"))
    expect(page.locator(".fact-line")).to_be_visible()
    own_server.stop()
    expect(page.locator("#announcer")).to_contain_text("The connection was lost")
    own_server.start()
    expect(page.locator("#announcer")).to_have_text("The connection is back.")


def tab_to(page: Page, name: str, *, backwards: bool = False) -> None:
    """Presses Tab until the button of that name has the focus, which must show."""
    for _ in range(80):
        page.keyboard.press("Shift+Tab" if backwards else "Tab")
        focused = page.evaluate(
            """() => {
              const one = document.activeElement;
              return [one.getAttribute("aria-label") ?? one.textContent.trim(), getComputedStyle(one).outlineStyle];
            }"""
        )
        if focused[0] == name:
            assert focused[1] != "none"
            return
    raise AssertionError(f"Tab never comes to {name}")


@pytest.mark.requirement("SF-42")
def test_on_a_phone_one_pane_is_shown_at_a_time(server: Server, look: Look) -> None:
    ada, _, _ = a_scene(server)
    page = look(ada, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True).log_in()
    expect(page.locator("#main")).to_be_hidden()
    page.get_by_role("link", name="Everything").tap()
    expect(page.locator("#threads")).to_be_hidden()
    expect(page.locator("#title")).to_be_focused()
    expect(page.get_by_role("button", name="Approve refund")).to_be_in_viewport()
    expect(page.get_by_label("Message", exact=True)).to_be_in_viewport()
    page.get_by_role("button", name="Participants", exact=True).tap()
    expect(page.get_by_label("Role of Helper")).to_be_in_viewport()
    assert page.locator("#people").bounding_box() == {"x": 0, "y": 0, "width": 390, "height": 844}
    # What lies under them is out of reach, also for Tab.
    expect(page.get_by_role("button", name="Close participants")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.closest('#main')") is None
    page.get_by_role("button", name="Close participants").tap()
    page.locator("#thread .to-threads").tap()
    expect(page.get_by_role("link", name="Everything")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    # The connection is said wherever one is.
    page.route("**/stream?**", lambda route: route.abort())
    page.reload()
    page.locator("#thread .to-threads").tap()
    expect(page.locator("#connection")).to_be_in_viewport()
    expect(page.get_by_role("link", name="Everything")).to_be_in_viewport()


@pytest.mark.requirement("SF-43")
def test_light_and_dark_follow_the_system(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    page = look(ada, color_scheme="light").log_in()
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
