"""A server in a process of its own, people who call it over HTTP, and browsers in which they look at the page."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import httpx2
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

from bubble.protocol.jsontext import dump_json

__all__ = ["CHROMIUM", "Account", "Looker", "Server", "a_browser", "a_server", "parts", "said", "spoken"]

CHROMIUM: Final = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
CHILD: Final = Path(__file__).parents[1] / "server" / "child.py"
Json = dict[str, Any]

#: What the browser says for answers that a test wants, and for connections that it cuts.
_EXPECTED: Final = ("Failed to load resource", "net::ERR_")


# One for all: to make one costs more than what most of these requests cost. A restarted server cuts the connections it kept.
_HTTP: Final = httpx2.Client(trust_env=False, timeout=30, limits=httpx2.Limits(max_keepalive_connections=0))


class Server:
    """A server that can be stopped and started again on the same port and data."""

    def __init__(self, directory: Path, **options: object) -> None:
        self.options = {
            "port": 0,
            "log": {"level": "error"},
            "data": str(directory),
            "admin_token": "t" * 40,
            **options,
        }
        self.url = ""
        self._numbers = itertools.count(1)
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Returns once it listens."""
        command = [sys.executable, str(CHILD), json.dumps(self.options)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        told = json.loads(self._process.stdout.readline())
        self.url = told["url"]
        self.options["port"] = told["port"]

    def stop(self) -> None:
        """Returns once it is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    @property
    def admin(self) -> Account:
        """Who may do everything."""
        return Account(url=self.url, principal_id="admin", token="t" * 40)

    def account(self, name: str, *, kind: Literal["user", "bot"] = "user", owner: str | None = None) -> Account:
        """Somebody new, whose name is shown as it is given."""
        principal_id = self.principal(name, kind=kind, owner=owner)
        token = str(self.admin.post(f"/v1/principals/{principal_id}/tokens", {})["token"])
        return Account(url=self.url, principal_id=principal_id, token=token)

    def principal(self, name: str, *, kind: Literal["user", "bot"] = "user", owner: str | None = None) -> str:
        """Somebody new who has no token; their id."""
        principal_id = f"{kind}-{next(self._numbers)}"
        owned = {} if owner is None else {"ownerPrincipalId": owner}
        self.admin.post("/v1/principals", {"kind": kind, "displayName": name, "principalId": principal_id, **owned})
        return principal_id


@dataclass(frozen=True, kw_only=True)
class Account:
    """Somebody who calls the server."""

    url: str
    principal_id: str
    token: str
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def call(self, method: str, path: str, body: object = None) -> Json:
        """The answer's content. AssertionError if it was refused."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        content = None if body is None else dump_json(body)
        answer = httpx2.request(
            method, f"{self.url}{path}", headers=headers, content=content, timeout=30, trust_env=False
        )
        assert answer.status_code < 300, f"{method} {path}: {answer.status_code} {answer.text}"
        found: Json = answer.json() if answer.content else {}
        return found

    def get(self, path: str) -> Json:
        return self.call("GET", path)

    def post(self, path: str, body: object) -> Json:
        return self.call("POST", path, body)

    def thread(self, title: str | None = None, *others: Account | str) -> str:
        """A new thread with these others, or ids of theirs, in it; its id."""
        named = {} if title is None else {"title": title}
        invited = [{"principalId": other if isinstance(other, str) else other.principal_id} for other in others]
        return str(self.post("/v1/threads", {**named, "participants": invited})["threadId"])

    def append(self, thread_id: str, *events: Mapping[str, object]) -> None:
        """All at once, as oneself."""
        whole = [{"principalId": self.principal_id, **event} for event in events]
        for start in range(0, len(whole), 1_000):
            self.post(f"/v1/threads/{thread_id}/events:batch", {"events": whole[start : start + 1_000]})

    def begin(self, thread_id: str, *chunks: Mapping[str, object], kind: str = "agent_work") -> str:
        """A run that stays open; its id."""
        run_id = f"{self.principal_id}-run-{next(self.numbers)}"
        self.append(thread_id, {"type": "run_started", "runId": run_id, "kind": kind}, *parts(run_id, chunks))
        return run_id

    def go_on(self, thread_id: str, run_id: str, *chunks: Mapping[str, object]) -> None:
        """More of it."""
        self.append(thread_id, *parts(run_id, chunks))

    def finish(self, thread_id: str, run_id: str, outcome: str = "success") -> None:
        """Its end."""
        self.append(thread_id, {"type": "run_finished", "runId": run_id, "outcome": outcome})

    def say(self, thread_id: str, text: str, *, kind: str = "user_input") -> str:
        """A run that says one text; its id."""
        run_id = f"{self.principal_id}-run-{next(self.numbers)}"
        self.append(thread_id, *said(run_id, text, kind=kind))
        return run_id


def parts(run_id: str, chunks: Sequence[Mapping[str, object]]) -> list[Json]:
    """Chunks as events, but for their author."""
    return [{"type": "message_part", "runId": run_id, "version": "ai-sdk-v6", "part": chunk} for chunk in chunks]


def spoken(text: str, id: str = "1") -> list[Json]:
    """A text as chunks."""
    return [
        {"type": "text-start", "id": id},
        {"type": "text-delta", "id": id, "delta": text},
        {"type": "text-end", "id": id},
    ]


def said(run_id: str, text: str, *, kind: str = "user_input") -> list[Json]:
    """A run that says one text, as events, but for their author."""
    begin = {"type": "run_started", "runId": run_id, "kind": kind}
    return [begin, *parts(run_id, spoken(text)), {"type": "run_finished", "runId": run_id, "outcome": "success"}]


class Looker:
    """Somebody's browser. `complaints` gathers what scripts raised and what the Content-Security-Policy stopped."""

    def __init__(self, context: BrowserContext, account: Account) -> None:
        self.context = context
        self.account = account
        self.complaints: list[str] = []
        context.set_default_timeout(15_000)
        context.on("console", self._heard)
        context.on("weberror", lambda error: self.complaints.append(str(error.error)))

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not any(known in message.text for known in _EXPECTED):
            self.complaints.append(message.text)

    def log_in(self) -> Page:
        """A tab in which somebody is logged in, by their token."""
        page = self.context.new_page()
        page.goto(f"{self.account.url}/login")
        page.get_by_label("Your token").fill(self.account.token)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(f"{self.account.url}/**")
        page.locator("#app").wait_for()
        return page

    def look_at(self, thread_id: str, page: Page | None = None) -> Page:
        """A tab with the thread."""
        page = page or self.log_in()
        page.goto(f"{self.account.url}/?thread={thread_id}")
        page.locator("#thread").wait_for()
        return page


@contextmanager
def a_server(directory: Path, **options: object) -> Iterator[Server]:
    """It runs."""
    server = Server(directory, **options)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def a_browser() -> Iterator[Browser]:
    """Chromium without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()
