"""Reading in a browser: what streams, what is folded, what is marked, and where the reader is."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.starfish.conftest import Look
from tests.starfish.stage import Server, said, spoken

pytestmark = pytest.mark.slow


@pytest.mark.requirement("SF-10")
def test_a_message_grows_on_the_screen_and_is_one_message(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    bot = server.account("Helper", kind="bot", owner=ada.principal_id)
    thread = ada.thread("Growing", bot)
    page = look(ada).look_at(thread)
    run = bot.begin(thread, {"type": "text-start", "id": "1"}, {"type": "text-delta", "id": "1", "delta": "It *gro"})
    expect(page.locator(".message .rich")).to_have_text("It *gro")
    expect(page.locator("#running")).to_contain_text("Helper is working")
    bot.go_on(thread, run, {"type": "text-delta", "id": "1", "delta": "ws*\n\n- and **ends**"})
    expect(page.locator(".message .rich em")).to_have_text("grows")
    bot.go_on(thread, run, {"type": "text-end", "id": "1"})
    bot.finish(thread, run)
    expect(page.locator(".message .rich.growing")).to_have_count(0)
    expect(page.locator(".message .rich li strong")).to_have_text("ends")
    expect(page.locator(".message:not(.fact-line)")).to_have_count(1)
    expect(page.locator("#running")).to_have_text("")
    expect(page.locator("#announcer")).to_contain_text("Helper: It grows")


@pytest.mark.requirement("SF-11")
def test_reasoning_is_folded_and_files_sources_and_artifacts_are_shown(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    thread = ada.thread("Parts")
    picture = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    run = ada.begin(
        thread,
        {"type": "reasoning-start", "id": "r"},
        {"type": "reasoning-delta", "id": "r", "delta": "Hidden *thoughts*"},
        {"type": "reasoning-end", "id": "r"},
        {"type": "file", "url": picture, "mediaType": "image/png"},
        {"type": "file", "url": "data:text/plain;base64,aGk=", "mediaType": "text/plain"},
        {"type": "source-url", "sourceId": "s", "url": "https://example.com/a", "title": "A source"},
    )
    artifact = {
        "kind": "artifact",
        "artifactId": "a",
        "op": "create",
        "name": "notes.md",
        "mediaType": "text/markdown",
        "text": "# Notes",
    }
    ada.append(thread, {"type": "message_part", "runId": run, "version": "bubble-v1", "part": artifact})
    page = look(ada).look_at(thread)
    thoughts = page.locator(".part.reasoning .rich")
    expect(thoughts).to_be_hidden()
    page.get_by_text("Thoughts", exact=True).click()
    expect(thoughts.locator("em")).to_have_text("thoughts")
    expect(page.locator(".part.file img")).to_be_visible()
    expect(page.locator(".part.file a")).to_have_attribute("download", "file")
    expect(page.get_by_role("link", name="A source")).to_have_attribute("rel", "noopener noreferrer")
    expect(page.locator(".part.artifact h1")).to_have_text("Notes")
    ada.finish(thread, run)


@pytest.mark.requirement("SF-12")
def test_messages_of_one_author_are_joined_and_days_are_separated(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    grace = server.account("Grace")
    events: list[dict[str, object]] = []
    for day, author, run in [(1, ada, "a"), (1, ada, "b"), (2, ada, "c"), (2, grace, "d")]:
        common = {"principalId": author.principal_id, "runId": run, "createdAt": f"2026-05-0{day}T12:00:00.000Z"}
        part: dict[str, object] = {"type": "message_part", **common, "version": "ai-sdk-v6"}
        events += [
            {"type": "run_started", **common, "kind": "user_input"},
            *[{**part, "part": chunk} for chunk in spoken(run)],
            {"type": "run_finished", **common},
        ]
    body = {"events": [{"seq": seq, **event} for seq, event in enumerate(events, 1)], "title": "Days"}
    server.admin.post("/v1/threads/days/import", body)
    server.admin.call("PUT", f"/v1/threads/days/grants/{ada.principal_id}", {"role": "participant"})
    page = look(ada).look_at("days")
    expect(page.locator(".day")).to_have_count(3)  # and the day on which Ada joined
    joined = page.locator(".message:not(.fact-line)")
    expect(joined).to_have_count(4)
    assert [bool(re.search("joined", each.get_attribute("class") or "")) for each in joined.all()] == [
        False,
        True,
        False,
        False,
    ]


@pytest.mark.requirement("SF-12")
def test_at_midnight_today_becomes_yesterday(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    thread = ada.thread("Late")
    ada.say(thread, "Good night")
    looker = look(ada)
    page = looker.log_in()
    page.clock.install()
    looker.look_at(thread, page)
    expect(page.locator(".day")).to_have_text("Today")
    expect(page.locator(".thread-meta time")).to_contain_text(":")
    page.clock.fast_forward("24:00:00")
    expect(page.locator(".day")).to_have_text("Yesterday")
    expect(page.locator(".thread-meta time")).not_to_contain_text(":")
    ada.say(thread, "Good morning")
    expect(page.locator(".message .rich")).to_have_count(2)
    expect(page.locator(".day")).to_have_text(["Yesterday"])


@pytest.mark.requirement("SF-12")
def test_a_message_that_goes_on_after_somebody_spoke_says_that_it_does(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    bot = server.account("Helper", kind="bot", owner=ada.principal_id)
    thread = ada.thread("Interrupting", bot)
    run = bot.begin(thread, {"type": "text-start", "id": "1"}, {"type": "text-delta", "id": "1", "delta": "first half"})
    ada.say(thread, "A word in between")
    bot.go_on(thread, run, {"type": "text-delta", "id": "1", "delta": "second half"})
    bot.finish(thread, run)
    page = look(ada).look_at(thread)
    expect(page.locator(".message .rich")).to_have_text(["first half", "A word in between", "second half"])
    expect(page.locator(".continued:visible")).to_have_count(1)
    expect(page.locator(".message").last.locator(".continued")).to_be_visible()


@pytest.mark.requirement("SF-12")
def test_who_speaks_in_the_run_of_another_does_not_go_on(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    bot = server.account("Helper", kind="bot", owner=ada.principal_id)
    thread = ada.thread("Two voices", bot)
    run = bot.begin(thread, *spoken("one"))
    ada.go_on(thread, run, *spoken("two", "2"))
    bot.go_on(thread, run, *spoken("three", "3"))
    page = look(ada).look_at(thread)
    expect(page.locator(".message .rich")).to_have_text(["one", "two", "three"])
    expect(page.locator(".continued:visible")).to_have_count(1)
    expect(page.locator(".message").last.locator(".continued")).to_be_visible()
    bot.finish(thread, run)


@pytest.mark.requirement("SF-10")
def test_reactions_show_how_many_however_long_they_are(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    thread = ada.thread("Reactions")
    ada.say(thread, "react")
    seq = ada.get(f"/v1/threads/{thread}/messages")["messages"][-1]["metadata"]["bubble"]["firstSeq"]
    for number, emoji in enumerate(["+1", "a very long reaction that somebody made up", "\u202egpj", "1"]):
        part = {"kind": "reaction", "targetSeq": seq, "emoji": emoji, "op": "add"}
        ada.append(
            thread,
            {"type": "run_started", "runId": f"{thread}-{number}", "kind": "user_input"},
            {"type": "message_part", "runId": f"{thread}-{number}", "version": "bubble-v1", "part": part},
            {"type": "run_finished", "runId": f"{thread}-{number}", "outcome": "success"},
        )
    page = look(ada).look_at(thread)
    shown = page.locator(".reaction")
    expect(shown).to_have_text(["+1 1", "a very long reaction that somebody made up 1", r"\u202egpj 1", "1 1"])
    assert shown.locator(".count").evaluate_all(
        "all => all.every(e => e.getBoundingClientRect().right <= e.parentElement.getBoundingClientRect().right)"
    )


@pytest.mark.requirement("SF-13")
def test_who_has_scrolled_up_stays_there_and_can_jump_to_the_latest(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    grace = server.account("Grace")
    thread = ada.thread("Long", grace)
    grace.append(thread, *[event for number in range(60) for event in said(f"r{number}", f"Message {number}")])
    page = look(ada).look_at(thread)
    expect(page.get_by_text("Message 59")).to_be_in_viewport()
    page.locator("#scroller").hover()
    page.mouse.wheel(0, -1_500)
    latest = page.get_by_role("button", name="Jump to latest")
    expect(latest).to_be_visible()
    there = page.evaluate("document.getElementById('scroller').scrollTop")
    grace.say(thread, "Something new")
    expect(page.get_by_role("button", name="1 new")).to_be_visible()
    assert abs(page.evaluate("document.getElementById('scroller').scrollTop") - there) < 5
    # However much is being written, it covers nothing of that.
    page.get_by_label("Message", exact=True).fill("one line\n" * 9)
    button, box = (page.locator(one).bounding_box() for one in ("#latest", "#composer"))
    assert button is not None
    assert box is not None
    assert button["y"] + button["height"] <= box["y"]
    page.get_by_label("Message", exact=True).fill("")
    page.get_by_role("button", name="1 new").click()
    expect(page.locator("#log").get_by_text("Something new")).to_be_in_viewport()
    expect(page.locator("#latest")).to_be_hidden()


@pytest.mark.requirement("SF-14")
def test_threads_are_by_latest_activity_with_what_is_unread_and_can_be_searched(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    grace = server.account("Grace")
    first = ada.thread("First thread", grace)
    second = ada.thread("Second thread", grace)
    grace.say(first, "one")
    grace.say(first, "two")
    page = look(ada).look_at(second)
    links = page.locator(".thread-title")
    expect(links).to_have_text(["First thread", "Second thread"])
    expect(page.locator(".thread-link", has_text="First thread").locator(".unread")).to_have_text("2")
    page.get_by_role("link", name="First thread").click()
    expect(page.locator("#log").get_by_text("two")).to_be_visible()
    expect(page.locator(".unread")).to_have_count(0)
    page.wait_for_function(
        "(id) => fetch(`v1/threads/${id}/cursor`).then((one) => one.json()).then(({ seq }) => seq >= 13)", arg=first
    )
    page.get_by_label("Search threads").fill("second")
    expect(links).to_have_text(["Second thread"])
    # What the tab is called does not depend on what is searched.
    expect(page).to_have_title("First thread · Bubble")


@pytest.mark.requirement("SF-15")
def test_a_run_that_ended_badly_says_so(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    thread = ada.thread("Bad ends")
    for outcome in ("failed", "interrupted"):
        run = ada.begin(thread, *spoken(f"I {outcome}"), {"type": "error", "errorText": f"because {outcome}"})
        ada.finish(thread, run, outcome)
    page = look(ada).look_at(thread)
    expect(page.locator(".outcome")).to_have_text(["This failed", "Stopped"])
    expect(page.get_by_text("because failed")).to_be_visible()


@pytest.mark.requirement("SF-15")
def test_a_run_that_ended_badly_without_a_word_says_so_at_its_place(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    bot = server.account("Helper", kind="bot", owner=ada.principal_id)
    thread = ada.thread("No word", bot)
    told = {
        "failed": "Helper failed before it said anything",
        "interrupted": "Helper was stopped before it said anything",
        "lost": "Helper was lost before it said anything",
    }
    ada.say(thread, "first")
    bot.finish(thread, bot.begin(thread), "failed")
    ada.say(thread, "second")
    page = look(ada).look_at(thread)
    log = page.locator("#log .message:not(:has-text('joined'))")
    expect(log).to_contain_text(["first", told["failed"], "second"])
    for outcome in ("interrupted", "lost"):
        run = bot.begin(thread)
        expect(page.locator("#running")).to_contain_text("Helper is working")
        bot.finish(thread, run, outcome)
        expect(page.locator("#running")).to_have_text("")
        expect(page.locator("#announcer")).to_have_text(told[outcome])
        expect(log.last).to_contain_text(told[outcome])
    # What says how it ended by itself, or ended well, needs no line.
    bot.finish(thread, bot.begin(thread, *spoken("I tried")), "failed")
    bot.finish(thread, bot.begin(thread))
    ada.say(thread, "last")
    lines = ["first", told["failed"], "second", told["interrupted"], told["lost"], "This failed", "last"]
    expect(log).to_contain_text(lines)
    page.reload()
    expect(log).to_contain_text(lines)
    expect(log).to_have_count(len(lines))


@pytest.mark.requirement("SF-15")
def test_runs_that_ended_badly_without_a_word_are_found_among_older_messages(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    bot = server.account("Helper", kind="bot", owner=ada.principal_id)
    thread = ada.thread("Long ago", bot)
    bot.finish(thread, bot.begin(thread), "failed")
    for number in range(60):
        ada.say(thread, f"number {number}" + "\n\nand more" * 10)
    bot.finish(thread, bot.begin(thread), "failed")
    page = look(ada).look_at(thread)
    ends = page.locator("#log .fact-line", has_text="failed before it said anything")
    expect(ends).to_have_count(1)
    page.locator("#scroller").evaluate("element => { element.scrollTop = 0; }")
    expect(page.locator("#older")).to_have_text("The thread begins here.")
    expect(ends).to_have_count(2)


@pytest.mark.requirement("SF-23")
def test_who_has_ended_is_not_shown_as_working_for_a_moment(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    bot = server.account("Helper", kind="bot", owner=ada.principal_id)
    thread = ada.thread("At once", bot)
    run = bot.begin(thread, *spoken("Working"))
    page = look(ada).look_at(thread)
    expect(page.get_by_role("button", name="Stop Helper")).to_be_visible()
    page.route("**/runs?**", lambda route: route.abort())
    bot.finish(thread, run)
    expect(page.locator("#running")).to_have_text("")


@pytest.mark.requirement("SF-16")
def test_the_events_are_there_as_they_are_stored_live_and_filtered(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    thread = ada.thread("Raw")
    run = ada.begin(thread, {"type": "data-big", "data": {"number": 12345678901234567890}})
    page = look(ada).look_at(thread)
    page.get_by_role("button", name="Events", exact=True).click()
    rows = page.locator("#event-list > li:visible")
    expect(rows).to_have_count(3)
    rows.nth(2).locator("summary").click()
    expect(rows.nth(2).locator("pre")).to_contain_text("12345678901234567890")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    rows.nth(2).get_by_role("button", name="Copy JSON").click()
    expect(rows.nth(2).get_by_role("button", name="Copied")).to_be_visible()
    assert '"number":12345678901234567890' in page.evaluate("navigator.clipboard.readText()")
    ada.finish(thread, run)
    expect(rows).to_have_count(4)
    page.get_by_label("Type of event").select_option("run_finished")
    expect(rows).to_have_count(1)
    page.get_by_label("Type of event").select_option("")
    page.get_by_label("Filter by any text").fill("data-big")
    expect(rows).to_have_count(1)


@pytest.mark.requirement("SF-17")
def test_a_long_thread_is_a_few_hundred_elements_and_can_be_read_to_its_beginning(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    thread = ada.thread("Very long")
    ada.append(thread, *[event for number in range(1_000) for event in said(f"r{number}", f"Message number {number}.")])
    page = look(ada).look_at(thread)
    expect(page.get_by_text("Message number 999.")).to_be_in_viewport()
    page.evaluate(
        """async () => {
          const scroller = document.getElementById("scroller");
          globalThis.most = 0;
          while (!document.getElementById("older").textContent.includes("begins here")) {
            scroller.scrollTop = 0;
            await new Promise((next) => setTimeout(next, 30));
            globalThis.most = Math.max(globalThis.most, document.querySelectorAll(".message").length);
          }
        }"""
    )
    assert page.evaluate("globalThis.most") < 500
    page.evaluate("document.getElementById('scroller').scrollTop = 0")
    expect(page.get_by_text("Message number 0.")).to_be_in_viewport()
    # From there to the end: no message is missing, none is there twice.
    seen = page.evaluate(
        """async () => {
          const scroller = document.getElementById("scroller");
          const seen = [];
          for (;;) {
            await new Promise((next) => setTimeout(next, 25));
            for (const one of document.querySelectorAll(".message .rich")) {
              const { top, bottom } = one.getBoundingClientRect();
              if (bottom > 0 && top < innerHeight && !seen.includes(one.textContent)) seen.push(one.textContent);
            }
            if (scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 2) return seen.map((text) => text.trim());
            scroller.scrollTop += 500;
          }
        }"""
    )
    assert seen == [f"Message number {number}." for number in range(1_000)]
