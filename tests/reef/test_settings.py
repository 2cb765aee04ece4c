"""Reef's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from bubble.amphibian.config import ConfigError, read_config
from bubble.amphibian.launcher import store_path
from bubble.reef.settings import ReefConfig
from tests.docs.markdown import ROOT, blocks

GUIDE = ROOT / "docs" / "guides" / "bring-an-a2a-agent.md"
FILE = """
[bubble]
url = "http://127.0.0.1:3000"
token = "bubble_agent_x"
principalId = "scout"
[a2a]
agentCardUrl = "https://agents.example/scout"
"""


def read(folder: Path, more: str = "", environ: Mapping[str, str] | None = None) -> ReefConfig:
    """The configuration with `more` at its end, which is in the section a2a at first."""
    file = folder / "reef.toml"
    file.write_text(FILE + more, encoding="utf-8")
    return read_config(ReefConfig, name="reef", file=file, environ=environ or {})


@pytest.mark.requirement("RF-45", "RF-48")
def test_only_the_server_the_bot_and_the_agent_have_to_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = read(tmp_path)
    assert (config.a2a.token, config.a2a.trusted_origins, config.a2a.idle_seconds) == (None, [], 120.0)
    assert config.reef.max_bot_turns == 8
    backlog = config.backlog
    assert (backlog.on_first_join, backlog.on_resume, backlog.max_replay) == ("since_joined", "catch_up", 50)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert store_path(config, "reef") == str(tmp_path / ".bubble" / "reef" / "db.sqlite")
    assert store_path(read(tmp_path, '[store]\npath = ":memory:"'), "reef") == ":memory:"


def test_everything_can_be_said_by_variables(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("from a file\n", encoding="utf-8")
    environ = {
        "BUBBLE_REEF_A2A_AGENT_CARD_URL": "http://127.0.0.1:1",
        "BUBBLE_REEF_A2A_TRUSTED_ORIGINS": "https://a.example, https://b.example",
        "BUBBLE_REEF_A2A_IDLE_SECONDS": "2.5",
        "BUBBLE_REEF_REEF_MAX_BOT_TURNS": "3",
    }
    config = read(tmp_path, 'token = {file = "secret"}', environ)
    assert config.a2a.agent_card_url == "http://127.0.0.1:1"
    assert config.a2a.trusted_origins == ["https://a.example", "https://b.example"]
    assert (config.a2a.idle_seconds, config.reef.max_bot_turns) == (2.5, 3)
    assert config.a2a.token is not None
    assert config.a2a.token.get_secret_value() == "from a file"
    assert "from a file" not in repr(config)


def test_the_examples_of_the_guide_are_accepted(tmp_path: Path) -> None:
    examples = [block.text for block in blocks(GUIDE) if block.language == "toml"]
    assert len(examples) == 2
    for name in ("scout.token", "agent.token"):
        (tmp_path / name).write_text("x", encoding="utf-8")
    for text in examples:
        (tmp_path / "example.toml").write_text(text, encoding="utf-8")
        read_config(ReefConfig, name="reef", file=tmp_path / "example.toml", environ={})


@pytest.mark.requirement("RF-94")
@pytest.mark.parametrize(
    ("more", "key"),
    [
        ("idleSeconds = 0", "a2a.idleSeconds"),
        ('trustedOrigins = ["example"]', "a2a.trustedOrigins"),
        ('trustedOrigins = "https://a.example"', "a2a.trustedOrigins"),
        ('trustedOrigins = ["a.example"]', "a2a.trustedOrigins"),
        ('trustedOrigins = ["https://a.example", "https://b.example/x"]', "a2a.trustedOrigins"),
        ('trustedOrigins = ["https://a.example?x=1"]', "a2a.trustedOrigins"),
        ('trustedOrigins = ["https://a.example:99999"]', "a2a.trustedOrigins"),
        ('trustedOrigins = ["https://user:pw@a.example"]', "a2a.trustedOrigins"),
        ('trustedOrigins = [""]', "a2a.trustedOrigins"),
        ('token = ""', "a2a.token"),
        ('token = "schlüssel"', "a2a.token"),
        ('token = "two\\nlines"', "a2a.token"),
        ("idleSeconds = nan", "a2a.idleSeconds"),
        ("idleSeconds = inf", "a2a.idleSeconds"),
        ("idleSeconds = true", "a2a.idleSeconds"),
        ("[reef]\nmaxBotTurns = true", "reef.maxBotTurns"),
        ("[reef]\nmaxBotTurns = 9223372036854775808", "reef.maxBotTurns"),
        ("[reef]\nmaxBotTurns = 0", "reef.maxBotTurns"),
        ("[reef]\nmaxTurns = 1", "reef.maxTurns"),
        ("[rief]\nx = 1", "rief"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, more: str, key: str) -> None:
    with pytest.raises(ConfigError, match=f"`{key}`"):
        read(tmp_path, more)


@pytest.mark.requirement("RF-94")
@pytest.mark.parametrize(
    "url", ["", "abc", "http://h:99999", "http://[oops", "http://a b", "http://u:S3CR3T@h:0/?key=S3CR3T"]
)
def test_an_agents_address_that_cannot_be_called_is_one_sentence_without_it(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match=r"`a2a\.agentCardUrl`.*: it.* must .+\.$") as raised:
        read(tmp_path, environ={"BUBBLE_REEF_A2A_AGENT_CARD_URL": url})
    assert "S3CR3T" not in str(raised.value)


@pytest.mark.requirement("RF-94")
def test_the_agent_has_to_be_named_by_a_web_address(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"`a2a.agentCardUrl`.*http or https"):
        read(tmp_path, environ={"BUBBLE_REEF_A2A_AGENT_CARD_URL": "agents.example"})
    with pytest.raises(ConfigError, match=r"`a2a.agentCardUrl` is missing"):
        read_config(
            ReefConfig,
            name="reef",
            file=None,
            environ={
                "BUBBLE_REEF_BUBBLE_URL": "http://127.0.0.1:3000",
                "BUBBLE_REEF_BUBBLE_TOKEN": "x",
                "BUBBLE_REEF_BUBBLE_PRINCIPAL_ID": "scout",
            },
        )
