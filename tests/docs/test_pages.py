"""Every example of the documentation does what the page says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.docs.chromium import chromium
from tests.docs.conftest import Desk
from tests.docs.markdown import ROOT, Block, blocks, pages
from tests.docs.terminal import is_shown

EXAMPLES = ROOT / "docs" / "examples"
BROWSER_GUIDE = ROOT / "docs" / "guides" / "consume-from-a-browser-and-curl.md"
# Languages that are tried elsewhere: the reference pages and their shapes in test_reference, nginx in tests/interop/test_nginx.py.
ELSEWHERE = frozenset({"nginx", "json", "toml", "ini"})

NEEDS_SERVER = "<!-- needs: server -->"
WELCOME = "  token for everything else:            bubble_user_…\n"

_TOKEN = re.compile(r"bubble_user_[\w-]+")


every_page = pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())


class Reader:
    """Somebody who follows a page, block by block."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._terminal = desk.terminal
        self._said = ""
        self._stays = False
        self._ways: Mapping[str, Callable[[Block, str], None]] = {
            "sh": self._type,
            "python": self._run_python,
            "text": self._compare,
            "html": self._only_saved,
            "js": self._only_saved,
        }

    def sit_down(self, page: Path) -> None:
        """What the page takes for granted."""
        if NEEDS_SERVER in page.read_text(encoding="utf-8"):
            self._terminal.start("bubble serve\n")
            self._terminal.wait_for(WELCOME)
            login = self._desk.here("bubble login http://127.0.0.1:3000")
            self._terminal.run(login, typed=self._token())

    def follow(self, block: Block) -> None:
        """Does what the block says. AssertionError where the page is wrong."""
        if "not run" in block.how:
            assert block.how["not run"], f"{block} is not run, and does not say why"
            return
        text = self._desk.here(block.text)
        name = block.how.get("copy of") or block.how.get("file")
        if "copy of" in block.how:
            assert (EXAMPLES / block.how["copy of"]).read_text(encoding="utf-8") == block.text, f"{block} differs"
        if name is not None:
            (self._terminal.directory / name).write_text(text, encoding="utf-8")
        elif block.language not in ELSEWHERE:
            self._ways[block.language](block, text)

    def _type(self, block: Block, script: str) -> None:
        self._stays = "stays" in block.how or "again" in block.how
        if "again" in block.how:
            self._terminal.stop(script)
        if self._stays:
            self._terminal.start(script)
        else:
            self._said = self._terminal.run(block.how.get("tried as", script), typed=self._typed(block))

    def _typed(self, block: Block) -> str:
        if "types" not in block.how:
            return ""
        assert block.how["types"] == "token", f"{block} types something unknown"
        return self._token()

    def _token(self) -> str:
        found = [token for job in self._terminal.jobs for token in _TOKEN.findall(job.output)]
        return f"{found[-1]}\n"

    def _run_python(self, block: Block, script: str) -> None:  # noqa: ARG002 - one of the ways
        self._stays = False
        (self._terminal.directory / "example.py").write_text(script, encoding="utf-8")
        self._said = self._terminal.run("python example.py")

    def _compare(self, block: Block, expected: str) -> None:
        if self._stays or "meanwhile" in block.how:
            self._terminal.wait_for(expected)
        else:
            assert is_shown(expected, self._said), f"{block}: the page says\n{expected}\nbut it said\n{self._said}"

    def _only_saved(self, block: Block, text: str) -> None:
        raise AssertionError(f"{block} is never tried: save it in a file, or say why not. {text[:40]}")


def followed_here() -> list[Path]:
    """Every page, but the one that test_browser follows where there is a browser."""
    return [page for page in pages() if page != BROWSER_GUIDE or chromium() is None]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", followed_here(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_a_page_shows_happens(desk: Desk, page: Path) -> None:
    if any("curl" in block.text for block in blocks(page)) and shutil.which("curl") is None:
        pytest.skip("missing: curl")
    reader = Reader(desk)
    reader.sit_down(page)
    for block in blocks(page):
        try:
            reader.follow(block)
        except AssertionError as error:
            error.add_note(f"{block}")
            raise


@every_page
def test_every_block_names_a_language_that_is_tried(page: Path) -> None:
    known = {"sh", "python", "text", "html", "js", *ELSEWHERE}
    assert [str(block) for block in blocks(page) if block.language not in known] == []
    assert page.read_text(encoding="utf-8").count("```") == 2 * len(blocks(page)), "a block that was not understood"


def test_no_page_registers_somebody_whom_another_has_registered() -> None:
    # Whoever follows one page after the other does so with one server, which takes an id once.
    typed = "".join(block.text for page in pages() for block in blocks(page) if block.language == "sh")
    registered = re.findall(r"bubble principals create (\S+)", typed)
    assert sorted(registered) == sorted(set(registered))
    assert "alice" in registered


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*")), ids=lambda file: file.name)
def test_every_example_file_is_on_a_page(file: Path) -> None:
    shown = [block.how.get("copy of") for page in pages() for block in blocks(page)]
    assert file.name in shown


@pytest.mark.parametrize("name", ["show.py", "live.py", "talk.py", "minutes_bot.py"])
def test_an_example_that_is_not_told_all_that_it_needs_says_so_in_one_sentence(name: str) -> None:
    variables = {key: value for key, value in os.environ.items() if key.partition("_")[0] != "BUBBLE"}
    ran = subprocess.run(
        [sys.executable, EXAMPLES / name],
        check=False,
        env={**variables, "BUBBLE_URL": "http://127.0.0.1:9"},
        capture_output=True,
        text=True,
    )
    [said] = ran.stderr.splitlines()
    assert said.startswith(f"{name.removesuffix('.py')}: set ")
    assert "THREAD" in said
    assert "BUBBLE_URL" not in said


def test_the_embedded_store_of_the_guide_may_be_run_again(tmp_path: Path) -> None:
    block = next(each for each in blocks(ROOT / "docs" / "guides" / "embed.md") if each.language == "python")
    (tmp_path / "example.py").write_text(block.text, encoding="utf-8")
    command = [sys.executable, "example.py"]
    said = [subprocess.run(command, cwd=tmp_path, check=True, capture_output=True).stdout for _ in range(2)]
    assert said[0] == said[1] != b""


@every_page
def test_every_block_of_json_is_json(page: Path) -> None:
    for block in blocks(page):
        if block.language == "json":
            json.loads(block.text)
