"""Rules of the whole suite. Fixtures of one area belong into that area's own conftest."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import TypeVar

import pytest
from hypothesis import settings

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

# A noisy machine must not fail a property for being slow; a failure must say how to have it again.
settings.register_profile("suite", deadline=None, print_blob=True)
settings.load_profile("suite")

# The reasons with which a test says that a part it needs is not installed here.
_MISSING = ("missing:", "could not import")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The event loop under asynchronous tests."""
    return "asyncio"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail, in CI, a test that skips itself because a part is missing."""
    report = yield
    return _refuse_missing_parts(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a whole module."""
    report = yield
    return _refuse_missing_parts(report)


def _refuse_missing_parts(report: Report) -> Report:
    if os.environ.get("CI") == "true" and report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if reason.startswith(_MISSING):
            report.outcome = "failed"
            report.longrepr = f"CI must have every part. {reason}"
    return report
