"""Hostile texts in a browser, wherever somebody can put a text: nothing runs, nothing is fetched, nothing breaks out of its place."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Request, expect

from tests.starfish.conftest import Look
from tests.starfish.hostile import HOSTILE
from tests.starfish.stage import Account, Looker, Server, parts, said, spoken

pytestmark = pytest.mark.slow

TRAP = "globalThis.pwned = () => { globalThis.hit = true; }; globalThis.alert = globalThis.pwned;"
WIDE = 390

# Elements that stick out of the page, or out of what scrolls them, and links to where no link may lead.
FAULTS = """() => {
  const found = [];
  if (document.documentElement.scrollWidth > innerWidth) found.push(`the page is ${document.documentElement.scrollWidth} wide`);
  for (const column of document.querySelectorAll("#scroller, #thread-box, #people .fill, #event-scroller")) {
    if (column.scrollWidth > column.clientWidth + 1) found.push(`#${column.id || column.className} scrolls sideways`);
  }
  const right = document.getElementById("scroller").getBoundingClientRect().right;
  for (const message of document.querySelectorAll(".message")) {
    if (message.getBoundingClientRect().right > right + 1) found.push(`${message.dataset.id} sticks out`);
  }
  const last = document.getElementById("composer").getBoundingClientRect();
  if (last.height && (last.bottom > innerHeight + 1 || last.top < 0)) found.push("the composer is off the screen");
  for (const link of document.querySelectorAll("a[href]")) {
    if (link.closest("#threads")) continue;
    const isFile = link.protocol === "data:" && link.hasAttribute("download");
    if (!isFile && !["http:", "https:", "mailto:"].includes(link.protocol)) found.push(link.href);
    if (link.closest(".message") && !isFile && link.rel !== "noopener noreferrer") found.push(`${link.href} has an opener`);
  }
  const never = ":is(script, iframe, object, embed, style, link, form:not(.decide, .answer), video, base, meta)";
  for (const wrong of document.querySelectorAll(`#log ${never}`)) found.push(wrong.outerHTML);
  for (const each of document.querySelectorAll("*")) {
    for (const { name } of each.attributes) if (name.startsWith("on")) found.push(each.outerHTML);
  }
  if (document.getElementById("log").textContent.includes("planted")) found.push("HTML of a producer");
  if (globalThis.hit) found.push("something ran");
  return found;
}"""


def chunks_of(number: int, text: str) -> list[Mapping[str, object]]:
    """The text at every place of a message."""
    call, failed = f"call-{number}", f"failed-{number}"
    return [
        *spoken(text, "t"),
        {"type": "reasoning-start", "id": "r"},
        {"type": "reasoning-delta", "id": "r", "delta": text},
        {"type": "reasoning-end", "id": "r"},
        {
            "type": "tool-input-available",
            "toolCallId": call,
            "toolName": text,
            "input": {text[:200]: text},
            "dynamic": True,
        },
        {"type": "tool-output-available", "toolCallId": call, "output": text},
        {"type": "tool-input-available", "toolCallId": failed, "toolName": "t", "input": [text]},
        {"type": "tool-output-error", "toolCallId": failed, "errorText": text},
        {"type": "file", "url": text, "mediaType": text},
        {"type": "file", "url": "data:text/html,<script>pwned()</script>", "mediaType": "text/html"},
        {"type": "source-url", "sourceId": "s", "url": text, "title": text},
        {"type": "source-document", "sourceId": "d", "mediaType": "text/plain", "title": text, "filename": text},
        {"type": f"data-{text[:50]}", "data": {"value": text}},
        {"type": "data-bubble-artifact", "id": "p", "data": {"artifactId": "p"}, "html": "<form><b>planted</b></form>"},
    ]


def write(account: Account, thread: str, number: int, text: str) -> None:
    run_id = f"run-{number}"
    artifact = {
        "kind": "artifact",
        "artifactId": "a",
        "op": "create",
        "name": text,
        "mediaType": "text/markdown",
        "text": text,
    }
    note = {"kind": "agent_event", "name": text[:200] or "x", "data": text}
    native = [
        {"type": "message_part", "runId": run_id, "version": "bubble-v1", "part": part} for part in (artifact, note)
    ]
    account.append(
        thread,
        {"type": "run_started", "runId": run_id, "kind": "agent_work"},
        *parts(run_id, chunks_of(number, text)),
        *native,
        *parts(run_id, [{"type": "error", "errorText": text}]),
        {"type": "run_finished", "runId": run_id, "outcome": "failed"},
    )


def watched(looker: Looker, server: Server) -> tuple[list[str], list[str]]:
    """Requests to elsewhere, and pages that opened, as they come."""
    elsewhere: list[str] = []
    opened: list[str] = []
    host = urlsplit(server.url).netloc

    def note(request: Request) -> None:
        if urlsplit(request.url).scheme in {"http", "https"} and urlsplit(request.url).netloc != host:
            elsewhere.append(request.url)

    looker.context.on("request", note)
    looker.context.on("page", lambda page: opened.append(page.url))
    looker.context.add_init_script(TRAP)
    return elsewhere, opened


def faults(page: Page) -> list[str]:
    """What is wrong, from the end of the thread to its beginning, with everything unfolded."""
    found: list[str] = []
    while True:
        page.evaluate("for (const one of document.querySelectorAll('#log details')) one.open = true")
        found += page.evaluate(FAULTS)
        if page.evaluate("document.getElementById('scroller').scrollTop") == 0 and "begins here" in (
            page.locator("#older").text_content() or ""
        ):
            return found
        page.evaluate("document.getElementById('scroller').scrollTop -= 6000")
        page.evaluate("new Promise((next) => requestAnimationFrame(() => setTimeout(next, 30)))")


@pytest.mark.requirement("SF-04")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("width", [1280, WIDE])
@pytest.mark.parametrize("third", range(3))
def test_hostile_texts_do_nothing_and_break_nothing_in_messages(
    server: Server, look: Look, width: int, third: int
) -> None:
    ada = server.account("Ada")
    thread = ada.thread("Hostile")
    for number, text in enumerate(HOSTILE[third::3]):
        write(ada, thread, number, text)
    looker = look(ada, viewport={"width": width, "height": 800})
    elsewhere, opened = watched(looker, server)
    page = looker.look_at(thread)
    expect(page.locator("#log .message").last).to_be_visible()
    assert faults(page) == []
    assert elsewhere == []
    assert len(opened) == 1
    assert page.url.startswith(server.url)


@pytest.mark.requirement("SF-04")
@pytest.mark.timeout(300)
def test_hostile_names_and_titles_do_nothing_and_break_nothing(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    named = list(
        dict.fromkeys(
            clean for text in HOSTILE if (clean := re.sub(r"[\x00-\x1f\x7f\ud800-\udfff]", "", text)[:100].strip())
        )
    )
    others = [server.principal(name) for name in named]
    thread = ada.thread("Names", *others)
    hello = [{"principalId": id, **event} for id in others for event in said(f"run of {id}", "hello")]
    server.admin.append(thread, *hello)
    for title in named:
        ada.thread(title)
        ada.call("PATCH", f"/v1/threads/{thread}", {"title": title})
    looker = look(ada, viewport={"width": WIDE, "height": 800})
    elsewhere, _ = watched(looker, server)
    page = looker.look_at(thread)
    expect(page.locator("#log .message").last).to_be_visible()
    assert faults(page) == []
    page.locator("#to-people").click()
    assert page.evaluate(FAULTS) == []
    page.locator("#close-people").click()
    page.locator("#thread .to-threads").click()
    expect(page.locator(".thread-title")).to_have_count(50)
    assert page.evaluate(FAULTS) == []
    page.set_viewport_size({"width": 1280, "height": 800})
    page.locator("#as-events").click()
    expect(page.locator("#event-list li").last).to_be_visible()
    assert page.evaluate(FAULTS) == []
    assert elsewhere == []
    assert looker.complaints == []


@pytest.mark.requirement("SF-04")
def test_a_name_turns_no_words_around_it(server: Server, look: Look) -> None:
    ada, turned = server.account("Ada"), server.account("\u2069\u202edeifirev")
    thread = ada.thread("Turned", turned)
    looker = look(ada)
    page = looker.look_at(thread)
    page.locator(".person .remove").click()
    expect(page.locator("#ask-title")).to_have_text(r"Remove \u2069\u202edeifirev from Turned?")
    expect(page.locator("#ask-title bdi").first).to_have_text(r"\u2069\u202edeifirev")
    page.keyboard.press("Escape")
    Looker(looker.context, turned).log_in().close()
    expect(page.locator("#replaced bdi")).to_have_text(r"\u2069\u202edeifirev")
    page.goto(f"{server.url}/login?code=another")
    expect(page.locator("#already bdi")).to_have_text(r"\u2069\u202edeifirev")


@pytest.mark.requirement("SF-04", "SF-22")
@pytest.mark.parametrize("width", [1280, WIDE])
def test_who_decides_sees_which_tool_it_is_and_all_of_its_input(server: Server, look: Look, width: int) -> None:
    ada = server.account("Ada \u202enimda")
    bot = server.account("Hel\u200bper", kind="bot", owner=ada.principal_id)
    thread = ada.thread("Which \u2066one", bot)
    name = "delete\u200d_data\u202ebase_" + "x" * 200
    call = {
        "toolCallId": "c",
        "toolName": name,
        "title": "Look up the weather \u202e" + "(look_up) " * 30,
        "input": {"path": "a/\u202egpj.exe\u2066", "who": "\u05d0\u05d1"},
    }
    run = bot.begin(
        thread,
        {"type": "tool-input-available", **call, "dynamic": True},
        {"type": "tool-approval-request", "approvalId": "a", "toolCallId": "c"},
    )
    page = look(ada, viewport={"width": width, "height": 800}).look_at(thread)
    shown = page.locator(".tool-name")
    expect(shown).to_have_text(name.replace("\u200d", r"\u200d").replace("\u202e", r"\u202e"))
    expect(page.locator(".tool-title")).to_contain_text(r"Look up the weather \u202e(look_up)")
    expect(page.locator(".tool-input pre")).to_contain_text(r"a/\u202egpj.exe\u2066")
    expect(page.locator(".tool-input pre")).to_contain_text("\u05d0\u05d1")
    assert shown.evaluate("e => getComputedStyle(e).overflow") == "visible"
    bottoms = page.locator(".tool-title, .tool-state").evaluate_all(
        "all => all.map(e => e.getBoundingClientRect().bottom)"
    )
    assert shown.evaluate("e => e.getBoundingClientRect().top") >= max(bottoms)
    expect(page.locator(".message .author")).to_have_text(r"Hel\u200bper")
    expect(page.locator("#title")).to_have_text(r"Which \u2066one")
    expect(page.locator("#me")).to_have_text(r"Ada \u202enimda")
    assert faults(page) == []
    bot.finish(thread, run)


@pytest.mark.requirement("SF-04")
def test_names_of_all_scripts_are_shown_as_they_are(server: Server, look: Look) -> None:
    named = [
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\u0915\u094d\u200d\u0937",
        "\u05e2\u05d1\u05e8\u05d9\u05ea",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f 1\ufe0f\u20e3",
        "\u845b\U000e0100",
        "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    ]
    ada = server.account("Ada")
    thread = ada.thread("Scripts", *[server.principal(name) for name in named])
    page = look(ada).look_at(thread)
    expect(page.locator("#people-list .name")).to_have_count(1 + len(named))
    assert set(page.locator("#people-list .name").all_text_contents()) == {"Ada", *named}


@pytest.mark.requirement("SF-05")
def test_the_policy_stops_even_what_would_get_past_the_sanitiser(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    looker = look(ada)
    looker.context.add_init_script(TRAP)
    page = looker.look_at(ada.thread("Policy"))
    refused = page.evaluate(
        """() => [
          () => { document.createElement("div").innerHTML = "<img src=x onerror=pwned()>"; },
          () => document.createElement("img").setAttribute("onerror", "pwned()"),
          () => { document.createElement("script").textContent = "pwned()"; },
          () => document.write("<script>pwned()</script>"),
          () => setTimeout("pwned()", 0),
          () => trustedTypes.createPolicy("another", { createHTML: (html) => html }),
        ].map((attempt) => { try { attempt(); return null; } catch (error) { return error.name; } })"""
    )
    assert refused == ["TypeError"] * 6
    page.evaluate(
        """() => {
          const style = document.createElement("style");
          style.textContent = "* { display: none }";
          document.body.append(style);
        }"""
    )
    assert page.evaluate("globalThis.hit") is None
    expect(page.locator("#title")).to_be_visible()
    assert any("Content Security Policy" in complaint for complaint in looker.complaints)
    looker.complaints.clear()


HUGE = 12345678901234567890123
NO_TEXT = {"toString": 1, "valueOf": 1}


@pytest.mark.requirement("SF-04")
@pytest.mark.parametrize("odd", [HUGE, NO_TEXT, [NO_TEXT]], ids=["huge", "no text", "in an array"])
def test_values_that_are_no_text_lose_no_message_and_no_event(server: Server, look: Look, odd: object) -> None:
    ada = server.account("Ada")
    thread = ada.thread("No text")
    ada.say(thread, "before")
    run_id = ada.begin(
        thread,
        {"type": "source-url", "sourceId": "s", "url": "https://x/", "title": odd},
        {"type": "tool-input-available", "toolCallId": "c", "toolName": "t", "title": odd, "input": odd},
        {"type": "file", "url": "https://x/", "mediaType": odd},
        {"type": "data-x", "data": odd},
        {"type": "constructor", "value": odd},
    )
    native = [
        {"kind": "artifact", "artifactId": odd, "op": "create", "name": odd, "mediaType": odd, "text": "x"},
        {"kind": "agent_event", "name": odd, "data": odd},
        {"kind": "x", "type": odd},
    ]
    ada.append(
        thread, *({"type": "message_part", "runId": run_id, "version": "bubble-v1", "part": part} for part in native)
    )
    ada.finish(thread, run_id)
    ada.say(thread, "after")
    page = look(ada).look_at(thread)
    expect(page.locator("#log .part.text")).to_have_text(["before", "after"])
    shown = json.dumps(odd, separators=(",", ":"))
    expect(page.locator("#log .part.source")).to_have_text(f"Source: {shown}")
    expect(page.locator("#log .tool-title")).to_have_text(shown)
    expect(page.locator("#log .tool-name")).to_have_text("t")
    page.locator("#as-events").click()
    head = ada.get(f"/v1/threads/{thread}")["headSeq"]
    expect(page.locator("#event-list li")).to_have_count(head)
    expect(page.locator("#event-list .event-what", has_text=shown)).to_have_count(1)


@pytest.mark.requirement("SF-04")
def test_what_cannot_be_shown_takes_nothing_else_with_it(server: Server, look: Look) -> None:
    ada = server.account("Ada")
    thread = ada.thread("Poison")
    ada.say(thread, "before")
    source = {"type": "source-url", "sourceId": "s", "url": "https://x/", "title": "poison"}
    run_id = ada.begin(thread, source, *spoken("beside"), {"type": "error", "errorText": "poison"})
    ada.finish(thread, run_id, "failed")
    ada.say(thread, "after")
    looker = look(ada)
    looker.context.add_init_script(
        """const append = Element.prototype.append;
        Element.prototype.append = function (...children) {
          if (children.includes("poison")) throw new Error("poison");
          append.apply(this, children);
        };"""
    )
    page = looker.look_at(thread)
    expect(page.locator("#log .part.text")).to_have_text(["before", "beside", "after"])
    expect(page.locator("#log .part.unknown pre")).to_contain_text('"title": "poison"')
    assert looker.complaints
    assert all("poison" in complaint for complaint in looker.complaints)
    looker.complaints.clear()
