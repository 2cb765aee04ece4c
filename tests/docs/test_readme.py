"""The README is short, and its two commands do what it says; `make test` is what runs this."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from tests.docs.conftest import Desk
from tests.docs.markdown import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def test_it_is_read_in_a_few_minutes() -> None:
    assert README.count("\n") < 120


def test_what_it_makes_can_be_made() -> None:
    targets = set(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))
    named = set(re.findall(r"^make ([a-z]+)", README, re.MULTILINE))
    assert {"demo", "test"} <= named <= targets


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_demonstration_plays_and_proves_itself(desk: Desk) -> None:
    (recipe,) = re.findall(r"^demo:.*\n\t\$\(BIN\)/(.*)$", MAKEFILE, re.MULTILINE)
    said = desk.terminal.run(recipe)
    assert "Done in" in said


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_client_says_at_once_that_no_server_is_there(desk: Desk) -> None:
    example = (ROOT / "docs" / "examples" / "hello.py").read_text(encoding="utf-8")
    (desk.terminal.directory / "hello.py").write_text(desk.here(example), encoding="utf-8")
    job = desk.terminal.start("BUBBLE_TOKEN=anything python hello.py\n")
    job.wait_for("Cannot reach http://127.0.0.1:…: … Trying again.\n")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_client_without_a_token_says_that_it_was_given_none(desk: Desk) -> None:
    shutil.copy(ROOT / "docs" / "examples" / "hello.py", desk.terminal.directory)
    assert desk.terminal.run("python hello.py || true") == "hello: No token was given: it is empty.\n"


@pytest.mark.skipif(shutil.which("make") is None, reason="missing: make")
def test_make_says_what_it_can_do() -> None:
    said = subprocess.run(["make", "help"], cwd=ROOT, check=True, capture_output=True, text=True, timeout=60).stdout
    assert {"demo", "test"} <= {line.split()[0] for line in said.splitlines()}
