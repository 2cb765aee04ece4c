"""The link at the end of `bubble demo`: found on the terminal, opened in a browser, tried out, gone with Ctrl-C."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from bubble.demo.agent import agent_is_there
from tests.cli.conftest import COMMAND, clean_environment
from tests.cli.pseudo_terminal import terminal_of
from tests.starfish.conftest import Look
from tests.starfish.stage import Account

pytestmark = pytest.mark.slow


@pytest.mark.requirement("SF-38")
@pytest.mark.timeout(180)
def test_the_demonstration_ends_with_one_link_to_an_agent_that_answers_until_ctrl_c(tmp_path: Path, look: Look) -> None:
    if not agent_is_there():
        pytest.skip("missing: the extra a2a")
    (tmp_path / "tmp").mkdir()
    environment = clean_environment(TMPDIR=str(tmp_path / "tmp"))
    with terminal_of([*COMMAND, "demo"], directory=tmp_path, environment=environment, columns=400) as terminal:
        lines = terminal.wait_for(lambda lines: any("Ctrl-C" in line for line in lines))
        assert [line for line in lines if "://" in line] == [lines[-3]]  # on a line of its own, at the very end
        link = lines[-3]
        looker = look(Account(url=link.partition("/login")[0], principal_id="admin", token=""))
        page = looker.context.new_page()
        page.goto(link)
        expect(page.locator("#title")).to_have_text("Talk to the mock agent")
        expect(page.locator("#me")).to_have_text("Administrator")
        expect(page.get_by_label("Message", exact=True)).to_be_visible()
        expect(page.locator(".message .author")).to_have_text(["Administrator", "Mock agent"])
        page.get_by_label("Message", exact=True).fill("Think about it.")
        page.keyboard.press("Enter")
        expect(page.locator(".message .rich").last).to_have_text("I have thought about it.")
        assert terminal.process.poll() is None
        assert terminal.interrupt() == lines
        assert terminal.process.returncode == 0
        expect(page.locator("#connection")).to_contain_text("The connection was lost")
    assert list((tmp_path / "tmp").iterdir()) == []
