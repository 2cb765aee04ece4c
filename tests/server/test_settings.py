"""Settings come in four layers, are all described, and say in one sentence what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bubble.protocol.limits import Limits
from bubble.server.options import LimitOptions
from bubble.server.settings import Settings, SettingsError


def source_of(settings: Settings, name: str) -> str:
    return next(setting.source for setting in settings.describe() if setting.name == name)


def value_of(settings: Settings, name: str) -> str:
    return next(setting.value for setting in settings.describe() if setting.name == name)


def test_each_layer_overrides_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings().port == 3000
    Path("bubble.toml").write_text("port = 1", encoding="utf-8")
    assert Settings().port == 1
    monkeypatch.setenv("BUBBLE_PORT", "2")
    assert Settings().port == 2
    assert Settings(port=3).port == 3
    assert Settings(port=None).port == 2


def test_layers_of_one_group_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("bubble.toml").write_text("[limits]\npage_default = 7\nsubscriptions = 8", encoding="utf-8")
    monkeypatch.setenv("BUBBLE_LIMITS__SUBSCRIPTIONS", "9")
    settings = Settings(limits={"batch_events": 10})
    assert (settings.limits.page_default, settings.limits.subscriptions, settings.limits.batch_events) == (7, 9, 10)
    assert settings.limits.event_bytes == Limits().event_bytes


def test_every_option_tells_where_its_value_came_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "other.toml"
    file.write_text("host = '::1'\n[runs]\nlost_after = '5m'", encoding="utf-8")
    monkeypatch.setenv("BUBBLE_RATES__REQUESTS_BURST", "5")
    settings = Settings(config=file, port=0)
    assert source_of(settings, "host") == str(file)
    assert source_of(settings, "runs.lost_after") == str(file)
    assert source_of(settings, "rates.requests_burst") == "BUBBLE_RATES__REQUESTS_BURST"
    assert source_of(settings, "port") == "argument"
    assert source_of(settings, "data") == "default"


def test_every_option_is_described() -> None:
    assert [setting.name for setting in Settings().describe() if not setting.description] == []


def test_a_secret_is_shown_nowhere() -> None:
    settings = Settings(admin_token="s" * 40)
    assert "sss" not in repr(settings)
    assert value_of(settings, "admin_token") == "********"


@pytest.mark.requirement("PR-2-15")
def test_every_limit_of_the_protocol_is_an_option_with_the_same_default() -> None:
    assert set(LimitOptions.model_fields) == {field.name for field in msgspec.structs.fields(Limits)}
    assert Settings().limits.limits() == Limits()
    assert Settings(limits={"wait_ms": 5}).limits.limits() == Limits(wait_ms=5)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("1.5", 1.5), ("500ms", 0.5), ("90s", 90), ("15m", 900), ("1h", 3600), ("2d", 172_800)],
)
def test_a_duration_is_seconds_or_has_a_unit(text: str, seconds: float) -> None:
    assert Settings(runs={"lost_after": text}).runs.lost_after == seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.5, "500ms"),
        (8, "8s"),
        (90, "90s"),
        (90.5, "90.5s"),
        (900, "15m"),
        (3_600, "1h"),
        (30 * 86_400, "30d"),
        (1_234_567.5, "1234567.5s"),
    ],
)
def test_a_duration_is_shown_with_the_unit_that_makes_it_short_and_can_be_given_like_that(
    seconds: float, text: str
) -> None:
    shown = value_of(Settings(runs={"lost_after": seconds}), "runs.lost_after")
    assert shown == text
    assert Settings(runs={"lost_after": shown}).runs.lost_after == seconds


def test_only_durations_are_shown_with_a_unit() -> None:
    settings = Settings()
    assert value_of(settings, "shutdown_after") == "8s"
    assert value_of(settings, "rates.requests_per_second") == "600"


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"prt": 1}, "`prt` (from argument) is no option. Did you mean `port`?"),
        (
            {"limits": {"event_byte": 1}},
            "`limits.event_byte` (from argument) is no option. Did you mean `limits.event_bytes`?",
        ),
        ({"port": 65_536}, "`port` (from argument): "),
        ({"runs": {"lost_after": "soon"}}, "`90s`, `15m`, `1h`"),
        ({"runs": {"lost_after": "-1s"}}, "`runs.lost_after` (from argument): "),
        ({"admin_token": "x" * 31}, "The admin token must have at least 32 characters"),
        ({"public_url": "example.com"}, "public_url must look like"),
        ({"public_url": "ftp://example.com"}, "public_url must look like"),
        ({"public_url": "https://example.com/?q"}, "public_url must look like"),
        ({"tls_key": "key.pem"}, "tls_certificate and tls_key go together"),
        ({"roles": {"owner": []}}, "role `owner` is built in"),
        (
            {"roles": {"clerk": ["threads.create"]}},
            "role `clerk` names unknown capability `threads.create`; it may have cursor.write, ",
        ),
        (
            {"limits": {"event_bytes": 2**24, "frame_bytes": 2**23}},
            "`limits` (from argument): event_bytes <= frame_bytes",
        ),
        ({"limits": {"page_default": 1001}}, "page_default must not exceed"),
        ({"streams": {"ping_interval": 60, "peer_timeout": 60}}, "peer_timeout must exceed"),
        ({"config": "nowhere.toml"}, "There is no file nowhere.toml."),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(values: dict[str, object], complaint: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        Settings(**values)  # type: ignore[arg-type]
    assert complaint in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_misspelt_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUBBLE_PROT", "1")
    with pytest.raises(SettingsError, match=r"BUBBLE_PROT is no option. Did you mean `BUBBLE_PORT`\?"):
        Settings()


@pytest.mark.parametrize(
    "name",
    [
        *("BUBBLE_URL", "BUBBLE_TOKEN", "BUBBLE_SERVICE_HOST", "BUBBLE_PORT_3000_TCP_ADDR"),
        *("BUBBLE_REEF_A2A_TOKEN", "BUBBLE_ECHO_BUBBLE_URL", "BUBBLE_MY_BOT_STORE_PATH"),
    ],
)
def test_variables_of_others_are_left_alone(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "x")
    assert Settings().port == 3000


@pytest.mark.parametrize(("name", "value"), [("BUBBLE_PORT", "tcp://10.0.0.1:3000"), ("BUBBLE_ROLES", "{")])
def test_a_variable_with_a_wrong_value_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=f"(?i){name.removeprefix('BUBBLE_')}"):
        Settings()


@pytest.mark.parametrize("content", ["port = = 1", "prot = 1", "[limits]\nevent_bytes = 'many'"])
def test_a_mistake_in_the_file_names_the_file(content: str) -> None:
    Path("bubble.toml").write_text(content, encoding="utf-8")
    with pytest.raises(SettingsError, match=r"bubble\.toml"):
        Settings()


def test_settings_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().port = 1


@pytest.mark.parametrize(
    ("values", "url"),
    [
        ({}, "http://127.0.0.1:3000"),
        ({"host": "::1"}, "http://[::1]:3000"),
        ({"host": "0.0.0.0"}, "http://127.0.0.1:3000"),  # noqa: S104
        ({"public_url": "https://bubble.example.com/"}, "https://bubble.example.com"),
        ({"tls_certificate": "c.pem", "tls_key": "k.pem"}, "https://127.0.0.1:3000"),
    ],
)
def test_the_server_knows_where_it_is_reached(values: dict[str, object], url: str) -> None:
    assert Settings(**values).url() == url  # type: ignore[arg-type]


def test_the_port_that_was_bound_stands_in_the_url() -> None:
    assert Settings(port=0).url(port=4711) == "http://127.0.0.1:4711"


def test_the_store_is_a_file_in_the_data_directory_unless_said_otherwise() -> None:
    assert Settings(data="d").store_url == "sqlite:///d/bubble.db"
    assert Settings(store="memory:").store_url == "memory:"
