"""What `bubble login` remembers, and which server a command goes to."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from bubble.cli.failures import CommandError, UsageProblem
from bubble.cli.profiles import (
    Profile,
    Profiles,
    check_url,
    config_directory,
    load_profiles,
    profile_name_for,
    resolve_target,
    save_profiles,
)

HOME = Profile(url="http://127.0.0.1:3000", token="home-token", principal_id="ada")
WORK = Profile(url="https://bubble.example.com", token="work-token", principal_id="ada.l")


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration directory of the test's own, and no variables."""
    for name in ("BUBBLE_URL", "BUBBLE_TOKEN", "BUBBLE_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "bubble"


@pytest.fixture
def both() -> Profiles:
    """Two profiles are remembered, the second one in use."""
    known = Profiles().having("home", HOME).having("work", WORK)
    save_profiles(known)
    return known


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_profiles_are_kept_where_only_their_owner_reads_them(config: Path, both: Profiles) -> None:
    assert load_profiles() == both
    assert (mode(config), mode(config / "profiles.json")) == (0o700, 0o600)
    assert [entry.name for entry in config.iterdir()] == ["profiles.json"]


def test_a_file_that_others_could_read_is_closed_to_them(config: Path, both: Profiles) -> None:
    (config / "profiles.json").chmod(0o644)
    assert load_profiles() == both
    assert mode(config / "profiles.json") == 0o600


def test_a_damaged_file_is_named(config: Path) -> None:
    config.mkdir()
    (config / "profiles.json").write_text('{"current": 7}')
    with pytest.raises(CommandError, match=r"profiles\.json is damaged"):
        load_profiles()


def test_without_a_home_of_its_own_the_configuration_is_in_dot_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert config_directory() == tmp_path / ".config" / "bubble"


def test_forgetting_the_profile_in_use_falls_back_to_another(both: Profiles) -> None:
    assert both.without("work").current == "home"
    assert both.without("work").without("home") == Profiles()


@pytest.mark.usefixtures("both")
class TestTarget:
    """Which server and token a command uses."""

    def test_the_last_login_is_used(self) -> None:
        assert resolve_target(None).token == "work-token"

    def test_a_named_profile_is_used(self) -> None:
        assert resolve_target("home").url == HOME.url

    def test_a_variable_names_a_profile(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("BUBBLE_PROFILE", "home")
        assert resolve_target(None).token == "home-token"

    def test_url_and_token_in_the_environment_need_no_profile(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("BUBBLE_URL", "http://127.0.0.1:9/")
        monkeypatch.setenv("BUBBLE_TOKEN", "from-environment")
        target = resolve_target(None)
        assert (target.url, target.token) == ("http://127.0.0.1:9", "from-environment")

    def test_a_profile_named_with_the_command_beats_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("BUBBLE_URL", "http://127.0.0.1:9")
        monkeypatch.setenv("BUBBLE_TOKEN", "from-environment")
        assert resolve_target("home").token == "home-token"

    def test_a_token_alone_replaces_that_of_the_profile_in_use(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("BUBBLE_TOKEN", "from-environment")
        target = resolve_target(None)
        assert (target.url, target.token) == (WORK.url, "from-environment")

    def test_a_url_alone_finds_the_token_of_its_profile(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("BUBBLE_URL", HOME.url)
        assert resolve_target(None).token == "home-token"

    def test_a_token_never_goes_to_a_server_that_it_is_not_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("BUBBLE_URL", "http://127.0.0.1:9")
        with pytest.raises(UsageProblem, match="BUBBLE_TOKEN"):
            resolve_target(None)

    def test_an_unknown_profile_is_refused_with_those_that_are_known(self) -> None:
        with pytest.raises(UsageProblem, match=r'"nobody" \(known: home, work\)'):
            resolve_target("nobody")


def test_without_any_login_the_remedy_is_said() -> None:
    with pytest.raises(UsageProblem, match="bubble login URL"):
        resolve_target(None)


@pytest.mark.parametrize(
    "url",
    [
        "localhost:3000", "ftp://x", "http://", "http://u:p@h", "http://h/?ticket=1", "http://h/#a", "http://[oops", "http://h:99999",
        "http://h:0", "http://h:port", "http://a b", "http://h/\x1b", "http://u:S3CR3T@h:99999",
    ],
)  # fmt: skip
def test_what_is_no_address_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(UsageProblem) as raised:
        check_url(url)
    assert "S3CR3T" not in str(raised.value)


def test_a_profile_is_called_after_its_server() -> None:
    assert profile_name_for("https://bubble.example.com/prefix") == "bubble.example.com"
    assert profile_name_for("http://[::1]:3000") == "::1:3000"
