"""`bubble doctor reef`: one sentence about each thing that may be wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from bubble.amphibian.config import read_config
from bubble.amphibian.store import AmphibianStore
from bubble.cli.checks import Finding
from bubble.cli.reef_checks import reef_findings
from bubble.reef.settings import ReefConfig
from tests.cli.conftest import Shell
from tests.docs.ports import free_ports
from tests.faults.processes import ServerProcess
from tests.reef.raw_agent import Answer, RawAgent, raw_agent

pytestmark = pytest.mark.anyio


@pytest.fixture
async def raw() -> AsyncIterator[RawAgent]:
    """An agent with a card."""
    async with raw_agent(lambda _: Answer()) as raw:
        yield raw


def variables(raw: RawAgent, **changed: str) -> Mapping[str, str]:
    """A configuration, by variables."""
    (port,) = free_ports(1)
    given = {
        "BUBBLE_URL": f"http://127.0.0.1:{port}",
        "BUBBLE_TOKEN": "x",
        "BUBBLE_PRINCIPAL_ID": "scout",
        "A2A_AGENT_CARD_URL": raw.url,
        "STORE_PATH": ":memory:",
        **changed,
    }
    return {f"BUBBLE_REEF_{name}": value for name, value in given.items()}


async def findings(raw: RawAgent, **changed: str) -> Mapping[str, Finding]:
    """What is found, by check."""
    config = read_config(ReefConfig, name="reef", file=None, environ=variables(raw, **changed))
    return {finding.check: finding for finding in await reef_findings(config)}


async def test_it_tells_the_card_the_binding_and_the_dialect(raw: RawAgent) -> None:
    found = await findings(raw)
    assert (found["card"].state, found["dialect"].state) == ("ok", "ok")
    assert "Raw" in found["card"].sentence
    assert found["dialect"].sentence == f"It is spoken to in A2A 1.0 over HTTP+JSON, at {raw.url}."


async def test_it_tells_no_secrets_of_the_cards_address(raw: RawAgent) -> None:
    raw.card = {**raw.card, "supportedInterfaces": [{"protocolBinding": "HTTP+JSON", "url": "/a?key=S3CR3T"}]}
    host = raw.url.removeprefix("http://")
    found = await findings(raw, A2A_AGENT_CARD_URL=f"http://user:S3CR3T@{host}/?key=S3CR3T")
    assert found["card"].sentence.startswith(f"http://…@{host}/.well-known/agent-card.json?… is the card of Raw")
    assert found["dialect"].sentence.endswith(f"at http://…@{host}/a?….")
    raw.card_path = "/nowhere"
    assert (
        "S3CR3T"
        not in (await findings(raw, A2A_AGENT_CARD_URL=f"http://user:S3CR3T@{host}/?key=S3CR3T"))["card"].sentence
    )


async def test_it_tells_what_is_wrong_with_the_card(raw: RawAgent) -> None:
    raw.card = {**raw.card, "capabilities": {}}
    assert "does not say that the agent streams" in (await findings(raw))["card"].sentence
    raw.card_path = "/nowhere"
    found = await findings(raw)
    assert (found["card"].state, found["dialect"].state) == ("failed", "skipped")
    assert "There is no agent card at" in found["card"].sentence


async def test_it_tells_whether_the_store_can_be_used(raw: RawAgent, tmp_path: Path) -> None:
    assert (await findings(raw))["store"].state == "warning"
    assert (await findings(raw, STORE_PATH=str(tmp_path / "deep" / "db")))["store"].state == "ok"
    (tmp_path / "broken").write_text("no database", encoding="utf-8")
    broken = (await findings(raw, STORE_PATH=str(tmp_path / "broken")))["store"]
    assert broken.state == "failed"
    assert "broken" in broken.sentence


async def test_a_store_that_a_reef_at_work_has_is_nothing_that_fails(raw: RawAgent, tmp_path: Path) -> None:
    path = str(tmp_path / "db")
    async with await AmphibianStore.open(path):
        used = (await findings(raw, STORE_PATH=path))["store"]
    assert used.state == "warning"
    assert "is in use by another connector" in used.sentence


async def test_it_tells_whom_the_server_takes_it_for(raw: RawAgent, tmp_path: Path) -> None:
    assert (await findings(raw))["identity"].state == "failed"
    async with ServerProcess.running(tmp_path) as server:
        known = {"BUBBLE_URL": server.url, "BUBBLE_TOKEN": server.admin_token}
        assert (await findings(raw, **known, BUBBLE_PRINCIPAL_ID="admin"))["identity"].state == "ok"
        other = (await findings(raw, **known))["identity"]
        assert other.state == "failed"
        assert "that of admin, not of scout" in other.sentence


async def test_the_command_says_each_on_a_line_and_fails_where_one_fails(raw: RawAgent, tmp_path: Path) -> None:
    shell = Shell(directory=tmp_path, variables=variables(raw))
    with shell.process("doctor", "reef", "--json") as process:
        out, _ = await asyncio.to_thread(process.communicate)
        assert process.returncode == 1
    assert [each["check"] for each in json.loads(out)] == ["card", "dialect", "identity", "store"]
