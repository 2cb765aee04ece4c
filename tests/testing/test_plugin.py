"""The fixtures, as somebody else's project uses them."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

pytest_plugins = ["pytester"]

USE = """
import pytest

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


async def test_store(memory_store):
    stored = await memory_store.append("t", {"type": "run_started", "principalId": "p", "runId": "r"})
    assert stored.seq == 1


async def test_client(bubble_client):
    thread = await bubble_client.create_thread(title="A test")
    events = [event.type async for event in bubble_client.iter_events(thread.thread_id)]
    assert events == ["participant_joined"]


async def test_server(bubble_server, memory_store):
    alice = await bubble_server.register("alice")
    thread = await bubble_server.admin.create_thread(participants={"alice": "participant"})
    async with bubble_server.connect(alice) as client, client.subscribe_thread(thread.thread_id) as events:
        assert [(await anext(events)).seq for _ in range(2)] == [1, 2]
    assert (await memory_store.get_thread(thread.thread_id)).head_seq == 2
"""


def test_the_fixtures_are_there_once_the_distribution_is_installed(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Settings of the surroundings must not reach a test's server.
    monkeypatch.setenv("BUBBLE_RUN_INTEGRITY", "nonsense")
    (pytester.path / "bubble.toml").write_text("port = 1\nnonsense = true\n", encoding="utf-8")
    pytester.makepyfile(USE)
    pytester.runpytest_inprocess("-p", "no:cacheprovider", "-W", "error").assert_outcomes(passed=3)
    assert [each.value for each in entry_points(group="pytest11", name="bubble")] == ["bubble.testing.plugin"]


def test_a_project_that_uses_none_of_them_does_not_load_the_product() -> None:
    ask = "import sys, bubble.testing.plugin; print([name for name in sys.modules if name.startswith('bubble')])"
    loaded = subprocess.run([sys.executable, "-c", ask], check=True, capture_output=True, text=True, timeout=60).stdout
    parts = {name.split(".")[1] for name in ast.literal_eval(loaded) if "." in name}
    assert parts <= {"protocol", "testing"}
