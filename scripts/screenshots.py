"""Pictures of the page, to be looked at: light, dark and narrow, full, empty and in trouble.

`python -m scripts.screenshots DIRECTORY` plays a little with a server of its own and puts them there. The directory must not be in the
repository.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

from playwright.sync_api import Browser, Page

from tests.starfish.stage import Account, Looker, Server, a_browser, a_server, spoken

ROOT: Final = Path(__file__).resolve().parents[1]
WIDE: Final = (1280, 800)
NARROW: Final = (390, 844)

ANSWER: Final = """I looked it up. Order **1815** has two items:

| item | price |
|---|--:|
| lamp, brass | 30.00 € |
| cable, 2 m | 5.00 € |

1. Both were delivered on the 3rd.
2. The customer wrote twice, on the 4th and on the 6th.

```python
refund(order=1815, amount=35.00)
```

> The terms allow it within 30 days: https://example.com/terms
"""


class Stage:
    """Who is there, and what they have said."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.ada = server.account("Ada Lovelace")
        self.grace = server.account("Grace Hopper")
        self.bot = server.account("Helper", kind="bot", owner=self.ada.principal_id)
        self.quiet = server.account("Zoë Quiet")
        for title in ("Weekly numbers", "Migration to the new cluster, and everything that belongs to it", "Ideas"):
            self.grace.say(self.grace.thread(title, self.ada), "Have a look?")
        self.thread = self.ada.thread("Refund for order 1815", self.grace, self.bot)
        self._talk()

    def _talk(self) -> None:
        ada, bot, thread = self.ada, self.bot, self.thread
        ada.say(thread, "Can you send back order 1815? The customer wrote twice.")
        self.grace.say(thread, "She is right, I saw both letters.")
        look = {"toolCallId": "look", "toolName": "find_order"}
        run = bot.begin(
            thread,
            {"type": "reasoning-start", "id": "r"},
            {"type": "reasoning-delta", "id": "r", "delta": "First the order, then the terms."},
            {"type": "reasoning-end", "id": "r"},
            {"type": "tool-input-available", **look, "input": {"order": 1815}},
            {"type": "tool-output-available", "toolCallId": "look", "output": {"items": 2, "total": 35}},
            *spoken(ANSWER),
        )
        bot.finish(thread, run)
        failed = bot.begin(
            thread, *spoken("I will tell the bank."), {"type": "error", "errorText": "The bank does not answer."}
        )
        bot.finish(thread, failed, "failed")
        self.run = bot.begin(
            thread,
            *spoken("Then I need your consent."),
            {
                "type": "tool-input-available",
                "toolCallId": "pay",
                "toolName": "refund",
                "input": {"order": 1815, "amount": 35},
            },
            {"type": "tool-approval-request", "approvalId": "a", "toolCallId": "pay"},
        )


@contextmanager
def looking(
    browser: Browser, account: Account, size: tuple[int, int], scheme: Literal["light", "dark"] = "light"
) -> Iterator[Page]:
    """A page in a window of that size."""
    width, height = size
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, device_scale_factor=1
    )
    try:
        yield Looker(context, account).log_in()
    finally:
        context.close()


def take(page: Page, directory: Path, name: str) -> None:
    """Once nothing moves any more."""
    page.wait_for_timeout(700)
    page.screenshot(path=directory / f"{name}.png")


def wide(stage: Stage, browser: Browser, directory: Path, scheme: Literal["light", "dark"]) -> None:
    """The views at full width."""
    with looking(browser, stage.ada, WIDE, scheme) as page:
        page.goto(f"{stage.server.url}/?thread={stage.thread}")
        take(page, directory, f"conversation-{scheme}")
        page.get_by_role("button", name="Reject refund").click()
        take(page, directory, f"rejecting-{scheme}")
        page.mouse.move(700, 300)
        page.mouse.wheel(0, -900)
        take(page, directory, f"scrolled-{scheme}")
        page.locator("#as-events").click()
        page.locator("#event-list summary").nth(3).click()
        take(page, directory, f"events-{scheme}")
        page.get_by_role("button", name="Bots").click()
        page.locator("#bot-list summary").first.click()
        page.get_by_role("button", name="Mint a token").first.click()
        take(page, directory, f"bots-{scheme}")
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Delete").click()
        take(page, directory, f"deleting-{scheme}")


def narrow(stage: Stage, browser: Browser, directory: Path) -> None:
    """The views on a phone."""
    with looking(browser, stage.ada, NARROW) as page:
        take(page, directory, "narrow-threads")
        page.goto(f"{stage.server.url}/?thread={stage.thread}")
        take(page, directory, "narrow-conversation")
        page.locator("#to-people").click()
        take(page, directory, "narrow-people")
        page.locator("#close-people").click()
        page.locator("#as-events").click()
        take(page, directory, "narrow-events")
        page.locator("#as-messages").click()
        page.route("**/stream?**", lambda route: route.abort())
        page.reload()
        page.locator("#thread .to-threads").click()
        page.locator("#connection").wait_for()
        take(page, directory, "narrow-lost")


def elsewhere(stage: Stage, browser: Browser, directory: Path) -> None:
    """When another tab is somebody else, and without a thread, and with a link that was used."""
    with looking(browser, stage.ada, WIDE) as page:
        page.goto(f"{stage.server.url}/?thread={stage.thread}")
        page.get_by_label("Message", exact=True).fill("I was about to say\nthat two lines\nare better than one.")
        Looker(page.context, stage.grace).log_in().close()
        page.locator("#replaced").wait_for()
        take(page, directory, "replaced")
        page.locator("#reload").click()
        page.goto(f"{stage.server.url}/?thread=nothing")
        take(page, directory, "no-such-thread")
        page.context.clear_cookies()
        page.goto(f"{stage.server.url}/login?code=used")
        take(page, directory, "login-refused")


def empty(stage: Stage, browser: Browser, directory: Path) -> None:
    """Where there is nothing yet."""
    with looking(browser, stage.quiet, WIDE) as page:
        take(page, directory, "empty")
        page.locator("#new-thread").click()
        take(page, directory, "creating")
        page.locator("#ask").get_by_role("button", name="Create").click()
        take(page, directory, "empty-thread")
        page.get_by_role("button", name="Log out").click()
        page.locator("#token").wait_for()
        take(page, directory, "login")


def in_trouble(stage: Stage, browser: Browser, directory: Path) -> None:
    """Without a server."""
    with looking(browser, stage.ada, WIDE) as page:
        page.goto(f"{stage.server.url}/?thread={stage.thread}")
        page.get_by_role("button", name="Approve refund").wait_for()
        stage.server.stop()
        page.get_by_label("Message", exact=True).fill("Is anybody there?\nI am waiting.")
        page.get_by_role("button", name="Send", exact=True).click()
        page.locator("#connection").wait_for()
        take(page, directory, "lost")


def main() -> int:
    """Takes all of them; the exit code."""
    directory = Path(sys.argv[1] if len(sys.argv) == 2 else ROOT).resolve()
    if directory.is_relative_to(ROOT):
        print("usage: python -m scripts.screenshots DIRECTORY, outside the repository", file=sys.stderr)
        return 2
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data, a_server(Path(data), store="memory:") as server, a_browser() as browser:
        stage = Stage(server)
        wide(stage, browser, directory, "light")
        wide(stage, browser, directory, "dark")
        narrow(stage, browser, directory)
        empty(stage, browser, directory)
        elsewhere(stage, browser, directory)
        in_trouble(stage, browser, directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
