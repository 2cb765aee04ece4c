"""`Settings`: every option of the server, from four layers: defaults < `bubble.toml` < `BUBBLE_*` variables < arguments.

A nested option is a table in the file (`[limits]`, `event_bytes = ...`) and has two underscores in its variable
(`BUBBLE_LIMITS__EVENT_BYTES`). An option that does not exist is an error that names it, in every layer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, PrivateAttr, SecretStr, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)
from pydantic_settings import (
    SettingsError as SourceError,
)

from bubble.auth.policy import Policy
from bubble.auth.secret_texts import check_admin_token
from bubble.server.durations import Duration
from bubble.server.layers import (
    SettingsError,
    explain,
    find_config,
    flatten,
    leaves,
    refuse_unknown_variables,
)
from bubble.server.options import (
    JwtOptions,
    LimitOptions,
    LogOptions,
    RateOptions,
    RunOptions,
    SessionOptions,
    StreamOptions,
)
from bubble.store.admission import RunIntegrity

__all__ = ["Setting", "Settings", "SettingsError"]

_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - named here to be told apart
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_config: ContextVar[Path | None] = ContextVar("bubble_config", default=None)
_given: ContextVar[Mapping[str, str]] = ContextVar("bubble_given")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One option in force: `source` is `default`, `argument`, the name of a file or of a variable. Secrets are masked."""

    name: str
    value: str
    source: str
    description: str


class Settings(BaseSettings):
    """The options of one server; frozen. Raises `SettingsError`, a `ValueError` whose message names what is wrong and where.

    `config` names the file to read; otherwise it is `$BUBBLE_CONFIG`, or `bubble.toml` here if there is one. An argument that is
    None counts as not given.
    """

    model_config = SettingsConfigDict(
        env_prefix="BUBBLE_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        nested_model_default_partial_update=True,
        validate_default=True,
    )

    data: Path = Field(default=Path(".bubble"), description="the directory of the embedded store")
    store: str | None = Field(default=None, description="the store's URL; by default sqlite:///<data>/bubble.db")
    host: Annotated[str, Field(min_length=1)] = Field(default="127.0.0.1", description="the address to listen on")
    port: Annotated[int, Field(ge=0, le=65_535)] = Field(
        default=3000, description="the port to listen on; 0 = any free one"
    )
    public_url: str | None = Field(
        default=None,
        description="where browsers reach this server, if not at host and port; https here means TLS in front",
    )
    tls_certificate: Path | None = Field(default=None, description="serve TLS with this certificate chain (PEM)")
    tls_key: Path | None = Field(default=None, description="the certificate's private key (PEM)")
    insecure: bool = Field(default=False, description="allow a public address without TLS")
    admin_token: SecretStr | None = Field(
        default=None, description="the admin's token, 32 characters or more; printed nowhere"
    )
    run_integrity: RunIntegrity = Field(default="strict", description="whether the life of runs is enforced")
    shutdown_after: Duration = Field(
        default=8.0, gt=0, le=60, description="how long a stopping server waits for requests in flight"
    )
    body_timeout: Duration = Field(
        default=30.0, gt=0, le=3600, description="how long a request's body may take to arrive, per 8 MiB of its limit"
    )
    limits: LimitOptions = LimitOptions()
    runs: RunOptions = RunOptions()
    rates: RateOptions = RateOptions()
    streams: StreamOptions = StreamOptions()
    sessions: SessionOptions = SessionOptions()
    log: LogOptions = LogOptions()
    jwt: JwtOptions | None = Field(default=None, description="an issuer whose JWTs are accepted")
    roles: dict[str, list[str]] = Field(default={}, description="custom roles: name and capabilities")

    _sources: Mapping[str, str] = PrivateAttr(default_factory=dict)

    def __init__(self, *, config: Path | str | None = None, **values: object) -> None:
        token = _config.set(find_config(config))
        try:
            refuse_unknown_variables(type(self), os.environ)
            # Values of any type are what the model is there to look at.
            super().__init__(**{name: value for name, value in values.items() if value is not None})  # type: ignore[arg-type]
            self._sources = _given.get({})
        except ValidationError as error:
            raise SettingsError(explain(error, type(self), _given.get({}))) from None
        except SourceError as error:
            raise SettingsError(f"A variable is not the JSON it should be: {error}.") from None
        finally:
            _config.reset(token)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is the library's
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - likewise
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The layers, strongest first; notes where each given option came from."""
        file = _config.get()
        layers: list[PydanticBaseSettingsSource] = [init_settings, env_settings]
        names = ["argument", "BUBBLE_*"]
        if file is not None:
            layers.append(_toml(settings_cls, file))
            names.append(str(file))
        given: dict[str, str] = {}
        for layer, name in reversed(list(zip(layers, names, strict=True))):
            given.update({option: _source(name, option) for option in flatten(layer())})
        _given.set(given)
        return tuple(layers)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.admin_token is not None:
            check_admin_token(self.admin_token.get_secret_value())
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key go together")
        if self.public_url is not None and not _is_public_url(self.public_url):
            raise ValueError("public_url must look like https://bubble.example.com")
        Policy.with_custom_roles(self.roles)
        return self

    @property
    def store_url(self) -> str:
        """The URL of the store."""
        return self.store if self.store is not None else f"sqlite:///{self.data / 'bubble.db'}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach `host`."""
        return self.host in _LOOPBACK or self.host.startswith("127.")

    @property
    def scheme(self) -> Literal["http", "https"]:
        """What the server itself speaks."""
        return "http" if self.tls_certificate is None else "https"

    @property
    def has_local_names(self) -> bool:
        """Whether this machine's browsers may reach the server under any name that the machine has for itself."""
        return self.public_url is None and (self.is_loopback or self.host in _WILDCARDS)

    def url(self, *, port: int | None = None) -> str:
        """Where browsers reach the server, without a trailing slash; `port` is the one that was bound."""
        if self.public_url is not None:
            return self.public_url.rstrip("/")
        named = _WILDCARDS.get(self.host, self.host)
        host = f"[{named}]" if ":" in named else named
        return f"{self.scheme}://{host}:{self.port if port is None else port}"

    def describe(self) -> Sequence[Setting]:
        """Every option with its value and where that came from, for `bubble config`."""
        return [
            Setting(name=name, value=value, source=self._sources.get(name, "default"), description=description)
            for name, value, description in leaves(self)
        ]


def _toml(settings_cls: type[BaseSettings], file: Path) -> TomlConfigSettingsSource:
    try:
        return TomlConfigSettingsSource(settings_cls, toml_file=file)
    except (OSError, ValueError) as error:
        raise SettingsError(f"{file} cannot be read: {error}.") from None


def _source(layer: str, option: str) -> str:
    return f"BUBBLE_{option.replace('.', '__').upper()}" if layer == "BUBBLE_*" else layer


def _is_public_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.port != 0
            and not (parts.query or parts.fragment or parts.username)
        )
    except ValueError:
        return False
