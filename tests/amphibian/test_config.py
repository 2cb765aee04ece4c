"""A connector's configuration: a file, variables, and one sentence about what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from bubble.amphibian.backlog import BacklogPolicy
from bubble.amphibian.config import ConfigError, read_config
from bubble.amphibian.launcher import default_store_path
from bubble.amphibian.options import BacklogOptions, ConnectorConfig, Section, StoreOptions, Token

BUBBLE = '[bubble]\nurl = "http://127.0.0.1:3000"\ntoken = "bubble_agent_x"\nprincipalId = "bot"\n'
NEEDED = {
    "BUBBLE_ECHO_BUBBLE_URL": "http://h",
    "BUBBLE_ECHO_BUBBLE_TOKEN": "t",
    "BUBBLE_ECHO_BUBBLE_PRINCIPAL_ID": "bot",
}


class AgentOptions(Section):
    """A section of a connector's own."""

    card_url: str | None = None
    token: Token | None = None
    phrase: SecretStr | None = None
    trusted_origins: tuple[str, ...] = ()
    most: int = 8
    idle_seconds: float = 120
    strict: bool = False


class EchoConfig(ConnectorConfig):
    """A connector with it."""

    agent: AgentOptions = AgentOptions()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "echo.toml"


def read(file: Path, text: str = BUBBLE, **environ: str) -> EchoConfig:
    file.write_text(text)
    return read_config(EchoConfig, name="echo", file=file, environ=environ)


def problem(file: Path, text: str = BUBBLE, **environ: str) -> str:
    with pytest.raises(ConfigError) as raised:
        read(file, text, **environ)
    assert raised.value.exit_code == 2
    sentence = str(raised.value)
    assert sentence.endswith((".", "?"))
    assert "\n" not in sentence
    return sentence.replace(str(file.parent), "…")


# --- what can be said -----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("AM-23")
def test_a_file_has_sections_and_keys_in_camel_case(file: Path) -> None:
    config = read(
        file,
        BUBBLE
        + '[backlog]\nonFirstJoin = "catch_up"\nonResume = "skip_to_head"\nmaxReplay = 7\n[store]\npath = ":memory:"\n'
        + '[agent]\ncardUrl = "http://a"\ntrustedOrigins = ["http://b"]\nmost = 3\nidleSeconds = 2\nstrict = true\n',
    )
    assert (config.bubble.url, config.bubble.principal_id) == ("http://127.0.0.1:3000", "bot")
    assert config.bubble.token.get_secret_value() == "bubble_agent_x"
    assert config.backlog.policy() == BacklogPolicy(on_first_join="catch_up", on_resume="skip_to_head", max_replay=7)
    assert config.store == StoreOptions(path=":memory:")
    assert config.agent == AgentOptions(
        card_url="http://a", trusted_origins=("http://b",), most=3, idle_seconds=2, strict=True
    )


@pytest.mark.requirement("AM-01", "AM-04", "AM-06", "AM-23")
def test_what_is_not_said_has_its_default(file: Path) -> None:
    config = read(file)
    assert config.backlog == BacklogOptions(on_first_join="since_joined", on_resume="catch_up", max_replay=50)
    assert config.backlog.policy() == BacklogPolicy()
    assert (config.store, config.agent) == (StoreOptions(path=None), AgentOptions())


@pytest.mark.requirement("AM-23")
def test_each_key_is_overridden_by_its_variable(file: Path) -> None:
    config = read(
        file,
        BUBBLE + "[backlog]\nmaxReplay = 7\n",
        **NEEDED,
        BUBBLE_ECHO_BACKLOG_ON_FIRST_JOIN="catch_up",
        BUBBLE_ECHO_BACKLOG_ON_RESUME="skip_to_head",
        BUBBLE_ECHO_BACKLOG_MAX_REPLAY="9",
        BUBBLE_ECHO_STORE_PATH="/var/lib/x",
        BUBBLE_ECHO_AGENT_CARD_URL="http://c",
        BUBBLE_ECHO_AGENT_TOKEN="s",
        BUBBLE_ECHO_AGENT_TRUSTED_ORIGINS="http://d, http://e",
        BUBBLE_ECHO_AGENT_MOST="4",
        BUBBLE_ECHO_AGENT_IDLE_SECONDS="0.5",
        BUBBLE_ECHO_AGENT_STRICT="true",
    )
    assert config == EchoConfig.model_validate(
        {
            "bubble": {"url": "http://h", "token": "t", "principalId": "bot"},
            "backlog": {"onFirstJoin": "catch_up", "onResume": "skip_to_head", "maxReplay": 9},
            "store": {"path": "/var/lib/x"},
            "agent": {
                "cardUrl": "http://c",
                "token": "s",
                "trustedOrigins": ("http://d", "http://e"),
                "most": 4,
                "idleSeconds": 0.5,
                "strict": True,
            },
        }
    )


@pytest.mark.requirement("AM-23")
def test_without_a_file_variables_are_enough() -> None:
    config = read_config(ConnectorConfig, name="echo", file=None, environ={**NEEDED, "HOME": "/", "BUBBLE_PORT": "1"})
    assert config.bubble.url == "http://h"


def test_a_name_with_a_dash_has_variables_without(file: Path) -> None:
    file.write_text(BUBBLE)
    environ = {"BUBBLE_MY_BOT_STORE_PATH": "/x"}
    assert read_config(ConnectorConfig, name="my-bot", file=file, environ=environ).store.path == "/x"


@pytest.mark.requirement("AM-24")
def test_a_secret_may_be_in_a_file_beside_the_configuration(file: Path) -> None:
    (file.parent / "token").write_text("bubble_agent_y\n")
    config = read(file, BUBBLE.replace('"bubble_agent_x"', '{file = "token"}'))
    assert config.bubble.token.get_secret_value() == "bubble_agent_y"


@pytest.mark.requirement("AM-23", "AM-24")
def test_a_mark_at_the_beginning_of_a_file_is_none_of_its_text(file: Path) -> None:
    (file.parent / "token").write_text("bubble_agent_y\n", encoding="utf-8-sig")
    file.write_text(BUBBLE.replace('"bubble_agent_x"', '{file = "token"}'), encoding="utf-8-sig")
    config = read_config(EchoConfig, name="echo", file=file, environ={})
    assert config.bubble.token.get_secret_value() == "bubble_agent_y"


@pytest.mark.requirement("AM-24")
def test_a_secret_that_is_no_token_may_hold_anything(file: Path) -> None:
    (file.parent / "phrase").write_text("drei Wörter\n", encoding="utf-8")
    secret = read(file, BUBBLE + '[agent]\nphrase = {file = "phrase"}\n').agent.phrase
    assert secret is not None
    assert secret.get_secret_value() == "drei Wörter"


@pytest.mark.requirement("AM-24")
def test_a_secret_is_not_shown(file: Path) -> None:
    assert "bubble_agent_x" not in repr(read(file))


@pytest.mark.requirement("AM-26")
def test_a_store_has_a_place_of_its_own_in_the_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_store_path("reef") == tmp_path / ".bubble" / "reef" / "db.sqlite"


# --- what cannot ----------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("AM-25")
@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (
            "[backlog]\nmaxReplays = 7",
            "`backlog.maxReplays` (from …/echo.toml) is no key: did you mean `backlog.maxReplay`?",
        ),
        (
            "[backlog]\nmax_replay = 7",
            "`backlog.max_replay` (from …/echo.toml) is no key: did you mean `backlog.maxReplay`?",
        ),
        ("[bakclog]\nmaxReplay = 7", "`bakclog` (from …/echo.toml) is no key: did you mean `backlog`?"),
        ('[backlog]\nmaxReplay = "7"', "`backlog.maxReplay` (from …/echo.toml): Input should be a valid integer."),
        ("[backlog]\nmaxReplay = 7.5", "`backlog.maxReplay` (from …/echo.toml): Input should be a valid integer."),
        (
            "[backlog]\nmaxReplay = -1",
            "`backlog.maxReplay` (from …/echo.toml): Input should be greater than or equal to 0.",
        ),
        (
            '[backlog]\nonResume = "since_joined"',
            "`backlog.onResume` (from …/echo.toml): Input should be 'catch_up' or 'skip_to_head'.",
        ),
        ("[agent]\ntrustedOrigins = 1", "`agent.trustedOrigins` (from …/echo.toml): Input should be a valid array."),
        (
            "[store]\npath = 2020-01-01T00:00:00Z",
            "`store.path` (from …/echo.toml): Input should be a valid string.",
        ),
        ("[store]\npath = ''", "`store.path` (from …/echo.toml): it is no path of a file."),
        ("[backlog]\nmaxReplay = true", "`backlog.maxReplay` (from …/echo.toml): Input should be a valid integer."),
        (
            "[backlog]\nmaxReplay = 9223372036854775808",
            "`backlog.maxReplay` (from …/echo.toml): Input should be less than or equal to 1000000.",
        ),
        (
            f"[backlog]\nmaxReplay = 1{'0' * 400}",
            "`backlog.maxReplay` (from …/echo.toml): Input should be less than or equal to 1000000.",
        ),
        (f"[backlog]\nmaxReplay = 1{'0' * 5000}", "…/echo.toml has a number of thousands of digits at `maxReplay`."),
        ("[agent]\nidleSeconds = nan", "`agent.idleSeconds` (from …/echo.toml): Input should be a finite number."),
        ("[agent]\nidleSeconds = -inf", "`agent.idleSeconds` (from …/echo.toml): Input should be a finite number."),
        ("[agent]\nidleSeconds = true", "`agent.idleSeconds` (from …/echo.toml): Input should be a valid number."),
        (
            "[store]\npath = '~nosuchuser/db'",
            "`store.path` (from …/echo.toml): there is no home directory for ~nosuchuser.",
        ),
        ('[store]\npath = "a\\u0000b"', "`store.path` (from …/echo.toml): it is no path of a file."),
        (
            "store = 3",
            "`store` (from …/echo.toml): Input should be an object.",
        ),
    ],
)
def test_a_key_that_is_wrong_is_named(file: Path, more: str, sentence: str) -> None:
    text = f"{BUBBLE}{more}\n" if more.startswith("[") else f"{more}\n{BUBBLE}"
    assert problem(file, text) == sentence


@pytest.mark.requirement("AM-25")
@pytest.mark.parametrize("key", ["url", "token", "principalId"])
def test_what_is_missing_is_named_with_the_two_places_where_it_may_be(file: Path, key: str) -> None:
    text = "\n".join(line for line in BUBBLE.splitlines() if not line.startswith(key))
    variable = {"url": "URL", "token": "TOKEN", "principalId": "PRINCIPAL_ID"}[key]
    expected = f"`bubble.{key}` is missing: set it in …/echo.toml, or by the variable BUBBLE_ECHO_BUBBLE_{variable}."
    assert problem(file, text) == expected


@pytest.mark.requirement("AM-25")
@pytest.mark.parametrize(
    ("right", "wrong", "sentence"),
    [
        (
            "principalId",
            "principalID",
            "`bubble.principalID` (from …/echo.toml) is no key: did you mean `bubble.principalId`?",
        ),
        ("url", "uri", "`bubble.uri` (from …/echo.toml) is no key: did you mean `bubble.url`?"),
        ("[bubble]", "[buble]", "`buble` (from …/echo.toml) is no key: did you mean `bubble`?"),
    ],
)
def test_a_key_that_is_missing_because_it_is_misspelt_is_named_as_it_is_written(
    file: Path, right: str, wrong: str, sentence: str
) -> None:
    assert problem(file, BUBBLE.replace(right, wrong)) == sentence


@pytest.mark.requirement("AM-25")
def test_with_nothing_at_all_the_first_key_is_missing() -> None:
    with pytest.raises(
        ConfigError, match=r"^`bubble.url` is missing: set it by the variable BUBBLE_ECHO_BUBBLE_URL\.$"
    ):
        read_config(ConnectorConfig, name="echo", file=None, environ={})


@pytest.mark.requirement("AM-25")
@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        (
            {"BUBBLE_ECHO_BACKLOG_MAX_REPLAY": "many"},
            "`backlog.maxReplay` (from BUBBLE_ECHO_BACKLOG_MAX_REPLAY): Input should be a valid integer.",
        ),
        (
            {"BUBBLE_ECHO_AGENT_STRICT": "maybe"},
            "`agent.strict` (from BUBBLE_ECHO_AGENT_STRICT): Input should be a valid boolean.",
        ),
        ({"BUBBLE_ECHO_BUBBLE_TOKEN": ""}, "`bubble.token` (from BUBBLE_ECHO_BUBBLE_TOKEN): it is empty."),
        ({"BUBBLE_ECHO_AGENT_TOKEN": ""}, "`agent.token` (from BUBBLE_ECHO_AGENT_TOKEN): it is empty."),
        (
            {"BUBBLE_ECHO_BUBBLE_TOKEN": "\udcff"},
            "`bubble.token` (from BUBBLE_ECHO_BUBBLE_TOKEN) is no UTF-8 text.",
        ),
        (
            {"BUBBLE_ECHO_AGENT_IDLE_SECONDS": "1e999"},
            "`agent.idleSeconds` (from BUBBLE_ECHO_AGENT_IDLE_SECONDS): Input should be a finite number.",
        ),
        (
            {"BUBBLE_ECHO_BACKLOG_MAX_REPLAY": "9" * 5000},
            "`backlog.maxReplay` (from BUBBLE_ECHO_BACKLOG_MAX_REPLAY): Input should be a valid integer.",
        ),
        (
            {"BUBBLE_ECHO_BUBLE_URL": "http://h"},
            "The variable BUBBLE_ECHO_BUBLE_URL names no key: did you mean `BUBBLE_ECHO_BUBBLE_URL`?",
        ),
    ],
)
def test_a_variable_that_is_wrong_is_named(file: Path, variables: dict[str, str], sentence: str) -> None:
    assert problem(file, **variables) == sentence


@pytest.mark.requirement("AM-25")
@pytest.mark.parametrize(
    "url",
    ["ftp://h", "", "abc", "http://", "http://h:99999", "http://h:0", "http://[oops", "http://a b", "http://a..b", "http://１27.0.0.1"],
)  # fmt: skip
def test_an_address_that_is_none_is_named(file: Path, url: str) -> None:
    assert problem(file, BUBBLE.replace("http://127.0.0.1:3000", url)).startswith("`bubble.url` (from …/echo.toml): ")


@pytest.mark.requirement("AM-25")
def test_a_password_in_the_address_is_refused_and_not_repeated(file: Path) -> None:
    for url in ("http://user:S3CR3T@h", "http://user:S3CR3T@h:99999/?x=1"):
        sentence = problem(file, BUBBLE.replace("http://127.0.0.1:3000", url))
        assert sentence.startswith("`bubble.url` (from …/echo.toml): The address must not hold a password")
        assert "S3CR3T" not in sentence


@pytest.mark.requirement("AM-25")
def test_what_is_no_id_of_a_principal_is_named(file: Path) -> None:
    for name in ("", "two words", "ü", "x" * 129):
        assert problem(file, BUBBLE.replace('"bot"', f'"{name}"')).startswith(
            "`bubble.principalId` (from …/echo.toml): "
        )


@pytest.mark.requirement("AM-24", "AM-25")
@pytest.mark.parametrize(
    ("token", "sentence"),
    [
        ('{file = "nowhere"}', "`bubble.token`: nowhere cannot be read: No such file or directory."),
        ('{path = "x"}', '`bubble.token` must be a text or {file = "..."}.'),
        ("{file = 7}", '`bubble.token` must be a text or {file = "..."}.'),
        ("7", "`bubble.token` (from …/echo.toml): Input should be a valid string."),
        ('{file = ""}', '`bubble.token` must be a text or {file = "..."}.'),
        ('{file = "a\\u0000b"}', "`bubble.token` names a file whose path cannot be one."),
        (
            '{file = "~nosuchuser/x"}',
            "`bubble.token`: ~nosuchuser/x cannot be read: Could not determine home directory.",
        ),
        ('{file = "blank"}', "`bubble.token` (from …/echo.toml): it is empty."),
        ('{file = "image"}', "`bubble.token`: image holds something that is no text."),
        ('{file = "."}', "`bubble.token`: . cannot be read: Is a directory."),
        ('""', "`bubble.token` (from …/echo.toml): it is empty."),
        (
            '" word"',
            "`bubble.token` (from …/echo.toml): a token holds ASCII characters only, no controls, and no space at its ends.",
        ),
        (
            '"schlüssel"',
            "`bubble.token` (from …/echo.toml): a token holds ASCII characters only, no controls, and no space at its ends.",
        ),
        (
            '"line\\n"',
            "`bubble.token` (from …/echo.toml): a token holds ASCII characters only, no controls, and no space at its ends.",
        ),
        (
            '"nul\\u0000"',
            "`bubble.token` (from …/echo.toml): a token holds ASCII characters only, no controls, and no space at its ends.",
        ),
    ],
)
def test_a_secret_that_cannot_be_had_is_named(file: Path, token: str, sentence: str) -> None:
    (file.parent / "blank").write_text(" \n")
    (file.parent / "image").write_bytes(b"\x89PNG\xff")
    assert problem(file, BUBBLE.replace('"bubble_agent_x"', token)) == sentence


@pytest.mark.requirement("AM-25")
def test_only_a_secret_may_be_in_a_file(file: Path) -> None:
    assert problem(file, BUBBLE.replace('"bot"', '{file = "x"}')).startswith(
        "`bubble.principalId` (from …/echo.toml): "
    )


@pytest.mark.requirement("AM-25")
def test_a_file_that_is_not_there_or_no_toml_is_named(file: Path) -> None:
    with pytest.raises(ConfigError, match=r"There is no file .*echo\.toml\.$"):
        read_config(ConnectorConfig, name="echo", file=file, environ={})
    assert problem(file, "[bubble\n").startswith("…/echo.toml is not TOML: ")


@pytest.mark.requirement("AM-25")
@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ('token = "S3CR3T"', "is not TOML at `token`: Cannot overwrite a value (at line 5, column 17)."),
        ("[bubble]", "is not TOML at `bubble`: Cannot declare ('bubble',) twice (at line 5, column 8)."),
        ("[agent]\ntoken = S3CR3T", "is not TOML at `token`: Invalid value (at line 6, column 9)."),
        (f"x = {'[' * 300}{']' * 300}", "nests too deeply to be a configuration."),
        (f"x = {'[' * 3000}{']' * 3000}", "nests too deeply to be a configuration."),
        (f"{'.'.join(['x'] * 3000)} = 1", "nests too deeply to be a configuration."),
    ],
)
def test_a_key_that_spoils_the_file_is_named_without_its_value(file: Path, more: str, sentence: str) -> None:
    assert problem(file, f"{BUBBLE}{more}\n") == f"…/echo.toml {sentence}"


@pytest.mark.requirement("AM-25", "AM-26")
def test_who_has_no_home_has_to_name_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(ConfigError, match=r"^`store\.path` is missing: there is no home directory"):
        default_store_path("echo")
