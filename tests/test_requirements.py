"""The manifest of promises and the suite close over each other; see requirements_check.py."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.requirements_check import Finding, check, read_manifest

MANIFEST = """
[AA-1]
section = "One"
text = "It holds."

[AA-2]
section = "One"
text = "It will hold."
later = "another part"
"""


def a_project(root: Path, tests: str, *, manifest: str = MANIFEST) -> Path:
    (root / "tests" / "requirements").mkdir(parents=True)
    (root / "tests" / "requirements" / "one.toml").write_text(manifest, encoding="utf-8")
    (root / "tests" / "test_it.py").write_text("import pytest\n" + dedent(tests), encoding="utf-8")
    return root


def test_every_live_requirement_is_named_by_a_test_and_every_name_is_live() -> None:
    assert "\n".join(finding.what for finding in check()) == ""


# Events, WebSocket, protocol, thread assembler, connectors' runtime, reef, watch, the page.
AREAS = {"EV", "WS", "PR", "TA", "AM", "RF", "WA", "SF"}


def test_every_document_has_promises_in_the_manifest() -> None:
    areas = {key.split("-")[0] for key in read_manifest()}
    assert areas == AREAS


@pytest.mark.parametrize(
    "source",
    [
        '@pytest.mark.requirement("AA-1")\ndef test_it(): ...\n',
        '@pytest.mark.requirement("AA-1")\nasync def test_it(): ...\n',
        '@pytest.mark.requirement("AA-1")\nclass TestIt:\n    def test_it(self): ...\n',
        'pytestmark = [pytest.mark.anyio, pytest.mark.requirement("AA-1")]\n',
        'CASES = [pytest.param(1, marks=pytest.mark.requirement("AA-1"))]\n',
    ],
    ids=["function", "coroutine", "class", "module", "parameter"],
)
def test_a_mark_counts_wherever_pytest_accepts_one(tmp_path: Path, source: str) -> None:
    assert check(a_project(tmp_path, source)) == []


def test_a_requirement_that_no_test_names_is_found(tmp_path: Path) -> None:
    assert check(a_project(tmp_path, "def test_it(): ...\n")) == [Finding("AA-1: no test names it: It holds.")]


@pytest.mark.parametrize(
    ("mark", "finding"),
    [
        ('"AA-1", "AA-9"', "tests/test_it.py:2: AA-9 is not in the manifest"),
        ('"AA-1", "AA-2"', "tests/test_it.py:2: AA-2 is marked later (another part)"),
        ('"AA-1", "AA-" + "2"', "tests/test_it.py:2: a requirement id must be a string literal on a test"),
    ],
    ids=["unknown", "later", "computed"],
)
def test_a_name_without_a_live_requirement_is_found(tmp_path: Path, mark: str, finding: str) -> None:
    project = a_project(tmp_path, f"@pytest.mark.requirement({mark})\ndef test_it(): ...\n")
    assert check(project) == [Finding(finding)]


def test_a_mark_on_a_function_that_is_no_test_does_not_count(tmp_path: Path) -> None:
    project = a_project(tmp_path, '@pytest.mark.requirement("AA-1")\ndef helper(): ...\n')
    assert [finding.what.partition(":")[0] for finding in check(project)] == ["AA-1", "tests/test_it.py"]


def test_a_mark_in_a_file_that_pytest_does_not_collect_does_not_count(tmp_path: Path) -> None:
    project = a_project(tmp_path, "")
    (project / "tests" / "helper.py").write_text('@pytest.mark.requirement("AA-1")\ndef test_it(): ...\n')
    assert check(project) == [Finding("AA-1: no test names it: It holds.")]


@pytest.mark.parametrize(
    "manifest",
    ['[AA-1]\nsection = "One"\n', '[AA-1]\ntext = "It holds."\n', '[AA-1]\nsection="One"\ntext="It."\nwhen="now"\n'],
    ids=["no text", "no section", "unknown field"],
)
def test_a_manifest_entry_that_is_not_well_formed_is_refused(tmp_path: Path, manifest: str) -> None:
    with pytest.raises(ValueError, match="AA-1"):
        check(a_project(tmp_path, "", manifest=manifest))


def test_an_id_that_two_files_claim_is_refused(tmp_path: Path) -> None:
    project = a_project(tmp_path, "")
    (project / "tests" / "requirements" / "two.toml").write_text(MANIFEST, encoding="utf-8")
    with pytest.raises(ValueError, match="AA-1 is taken"):
        check(project)
