"""The options that every connector has. A connector adds sections of its own to a subclass of `ConnectorConfig`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr
from pydantic.alias_generators import to_camel

from bubble.amphibian.backlog import BacklogPolicy, OnFirstJoin, OnResume
from bubble.client.paths import server_url
from bubble.protocol.errors import InvalidRequest
from bubble.protocol.identifiers import is_name

__all__ = ["BacklogOptions", "BubbleOptions", "ConnectorConfig", "Section", "StoreOptions", "Token"]

# What a header can carry.
_IN_TOKENS: Final = frozenset(map(chr, range(0x20, 0x7F)))


def _checked_token(secret: SecretStr) -> SecretStr:
    token = secret.get_secret_value()
    if not token:
        raise ValueError("it is empty")
    if not _IN_TOKENS.issuperset(token) or token != token.strip():
        raise ValueError("a token holds ASCII characters only, no controls, and no space at its ends")
    return secret


Token: TypeAlias = Annotated[SecretStr, AfterValidator(_checked_token)]
"""A secret that is sent as a bearer."""


def _checked_url(url: str) -> str:
    try:
        return server_url(url)
    except InvalidRequest as error:
        raise ValueError(error.message) from None


def _checked_principal(name: str) -> str:
    if not is_name(name):
        raise ValueError("it is no principal's id")
    return name


def _checked_path(path: str) -> str:
    if not path or not path.isprintable():
        raise ValueError("it is no path of a file")
    try:
        Path(path).expanduser()
    except RuntimeError:
        raise ValueError(f"there is no home directory for {Path(path).parts[0]}") from None
    return path


class Section(BaseModel):
    """A table of the file; frozen. Keys are camelCase, attributes snake_case. A `SecretStr`, such as a `Token`, may be given as
    `{file = "…"}`.
    """

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, validate_by_name=True, allow_inf_nan=False
    )


class BubbleOptions(Section):
    """The server, and as whom."""

    url: Annotated[str, AfterValidator(_checked_url)] = Field(
        description="the server's address, for instance http://127.0.0.1:3000"
    )
    token: Token = Field(description="the bot's token")
    principal_id: Annotated[str, AfterValidator(_checked_principal)] = Field(
        description="the bot's principal; a token of another one is refused"
    )


class BacklogOptions(Section):
    """Where reading begins on a thread."""

    on_first_join: OnFirstJoin = Field(
        default="since_joined",
        description="without a checkpoint: since_joined = what came since the bot joined, catch_up = everything, skip_to_head = nothing",
    )
    on_resume: OnResume = Field(
        default="catch_up", description="with a checkpoint: catch_up = what came after it, skip_to_head = nothing"
    )
    max_replay: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        default=50, description="how many of the newest events of that are gone through, plus what keeps runs whole"
    )

    def policy(self) -> BacklogPolicy:
        """The same for the runtime."""
        return BacklogPolicy(on_first_join=self.on_first_join, on_resume=self.on_resume, max_replay=self.max_replay)


class StoreOptions(Section):
    """Where checkpoints and sessions are kept."""

    path: Annotated[str, AfterValidator(_checked_path)] | None = Field(
        default=None, description="a SQLite file, or :memory:; by default ~/.bubble/<connector>/db.sqlite"
    )


class ConnectorConfig(Section):
    """What a connector is started with."""

    bubble: BubbleOptions
    backlog: BacklogOptions = BacklogOptions()
    store: StoreOptions = StoreOptions()
