"""`bubble doctor reef`: one sentence about each thing that may be wrong."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from bubble.amphibian.config import read_config
from bubble.amphibian.store import AmphibianStore, ThreadKey
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


async def findings(raw: RawAgent, *, patience: float = 10.0, **changed: str) -> Mapping[str, Finding]:
    """What is found, by check."""
    config = read_config(ReefConfig, name="reef", file=None, environ=variables(raw, **changed))
    return {finding.check: finding for finding in await reef_findings(config, patience=patience)}


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
    path = tmp_path / "deep" / "db"
    missing = (await findings(raw, STORE_PATH=str(path)))["store"]
    assert (missing.state, missing.sentence) == ("ok", f"{path} does not exist yet; `bubble reef` can make it.")
    async with await AmphibianStore.open(str(path)):
        pass
    there = (await findings(raw, STORE_PATH=str(path)))["store"]
    assert (there.state, there.sentence) == ("ok", f"{path} can be written.")
    (tmp_path / "broken").write_text("no database", encoding="utf-8")
    broken = (await findings(raw, STORE_PATH=str(tmp_path / "broken")))["store"]
    assert broken.state == "failed"
    assert "broken" in broken.sentence


async def test_it_tells_where_no_store_can_be(raw: RawAgent, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path, reason in (("file/db", "cannot be made: Not a directory"), (".", "is not a file")):
        found = (await findings(raw, STORE_PATH=str(tmp_path / path)))["store"]
        assert found.state == "failed"
        assert reason in found.sentence
    with closing(sqlite3.connect(tmp_path / "others")) as others:
        others.execute("CREATE TABLE things (id)")
    found = (await findings(raw, STORE_PATH=str(tmp_path / "others")))["store"]
    assert (found.state, "is not a connector's store" in found.sentence) == ("failed", True)


def everything_in(folder: Path) -> Mapping[str, bytes]:
    """All files, with what is in them, and all directories."""
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


async def test_looking_makes_and_changes_nothing(raw: RawAgent, tmp_path: Path) -> None:
    await findings(raw, STORE_PATH=str(tmp_path / "deep" / "db"))
    assert everything_in(tmp_path) == {}
    (tmp_path / "empty").touch()
    with closing(sqlite3.connect(tmp_path / "others")) as others:
        others.execute("CREATE TABLE things (id)")
    async with await AmphibianStore.open(str(tmp_path / "db")):
        pass
    (tmp_path / "db.lock").unlink()
    before = everything_in(tmp_path)
    for name in ("empty", "others", "db"):
        await findings(raw, STORE_PATH=str(tmp_path / name))
    assert everything_in(tmp_path) == before


async def test_a_store_that_was_left_in_the_middle_is_no_damage(raw: RawAgent, tmp_path: Path) -> None:
    async with await AmphibianStore.open(str(tmp_path / "at work")) as store:
        await store.write_session(ThreadKey(server="s", principal_id="p", thread_id="t"), b"{}")
        for suffix in ("", "-wal"):
            shutil.copy(tmp_path / f"at work{suffix}", tmp_path / f"left{suffix}")
    assert (await findings(raw, STORE_PATH=str(tmp_path / "left")))["store"].state == "ok"


async def test_who_does_not_answer_is_not_waited_for(raw: RawAgent) -> None:
    raw.card_answer = Answer(headers={"Content-Type": "application/json"}, ending="open")
    async with raw_agent(lambda _: Answer(ending="open")) as mute:
        found = await findings(raw, patience=0.2, BUBBLE_URL=mute.url)
    assert (found["card"].state, found["dialect"].state) == ("failed", "skipped")
    assert found["card"].sentence == "The agent did not send its card within 0.2 s."
    assert found["identity"].state == "failed"
    assert found["identity"].sentence == f"{mute.url} did not answer within 0.2 s."


async def test_a_store_that_a_reef_at_work_has_is_nothing_that_fails(raw: RawAgent, tmp_path: Path) -> None:
    path = str(tmp_path / "db")
    async with await AmphibianStore.open(path):
        used = (await findings(raw, STORE_PATH=path))["store"]
    assert used.state == "warning"
    assert "is in use by another connector" in used.sentence


async def test_it_tells_whom_the_server_takes_it_for(raw: RawAgent, tmp_path: Path) -> None:
    assert (await findings(raw))["identity"].state == "failed"
    async with ServerProcess.running(tmp_path) as server:
        url, token = server.url, server.admin_token
        known = await findings(raw, BUBBLE_URL=url, BUBBLE_TOKEN=token, BUBBLE_PRINCIPAL_ID="admin")
        assert known["identity"].state == "ok"
        other = (await findings(raw, BUBBLE_URL=url, BUBBLE_TOKEN=token))["identity"]
        assert other.state == "failed"
        assert "that of admin, not of scout" in other.sentence


async def test_the_command_says_each_on_a_line_and_fails_where_one_fails(raw: RawAgent, tmp_path: Path) -> None:
    shell = Shell(directory=tmp_path, variables=variables(raw))
    with shell.process("doctor", "reef", "--json") as process:
        out, _ = await asyncio.to_thread(process.communicate)
        assert process.returncode == 1
    assert [each["check"] for each in json.loads(out)] == ["card", "dialect", "identity", "store"]
