"""A real browser without a window, and a page in it that is logged in. Where there is no Chromium there is no such party."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from playwright.sync_api import Browser, Page, sync_playwright

from bench.servers.process import Server

__all__ = ["CHROMIUM", "a_browser", "a_page"]

CHROMIUM: Final = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_MILLISECONDS: Final = 120_000.0


@contextmanager
def a_browser() -> Iterator[Browser]:
    """It runs until the block ends."""
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu", "--enable-precise-memory-info"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        try:
            yield browser
        finally:
            browser.close()


def a_page(browser: Browser, server: Server, *, script: str = "") -> Page:
    """A page of somebody's own, logged in. `script` runs in every document before the page's own."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(_MILLISECONDS)
    page = context.new_page()
    if script:
        page.add_init_script(script)
    page.goto(f"http://{server.host}:{server.port}/login")
    page.locator("#token").fill(server.token)
    page.keyboard.press("Enter")
    page.locator("#app").wait_for()
    return page
