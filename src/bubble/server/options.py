"""The groups of options that `Settings` is made of, each with its range and what it is for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from bubble.auth.jwt_settings import JwtSettings
from bubble.auth.lifetimes import Lifetimes
from bubble.protocol.limits import Limits
from bubble.server.durations import Duration

__all__ = [
    "JwtOptions",
    "LimitOptions",
    "LogOptions",
    "RateOptions",
    "RunOptions",
    "SessionOptions",
    "StreamOptions",
]


def _several(value: object) -> object:
    return (value,) if isinstance(value, str) else value


Bytes: TypeAlias = Annotated[int, Field(ge=256, le=2**31)]
Count: TypeAlias = Annotated[int, Field(ge=1, le=2**31)]

_defaults = Limits()


class _Options(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


class LimitOptions(_Options):
    """Sizes and counts that guard memory before work (protocol, section 2)."""

    event_bytes: Bytes = Field(default=_defaults.event_bytes, description="one event as JSON")
    frame_bytes: Bytes = Field(default=_defaults.frame_bytes, description="one WebSocket frame from a client")
    frame_hard_bytes: Bytes = Field(
        default=_defaults.frame_hard_bytes,
        description="a frame up to this is read and discarded, a larger one closes the socket",
    )
    batch_events: Count = Field(default=_defaults.batch_events, description="events in one batch append")
    batch_bytes: Bytes = Field(default=_defaults.batch_bytes, description="one batch append as JSON")
    body_bytes: Bytes = Field(default=_defaults.body_bytes, description="any other request body")
    import_bytes: Bytes = Field(default=_defaults.import_bytes, description="one imported thread as JSON")
    page_default: Count = Field(
        default=_defaults.page_default, description="entries of a page where the caller names no limit"
    )
    page_events: Count = Field(
        default=_defaults.page_events, description="entries of a page at most; a larger limit is clamped"
    )
    page_bytes: Bytes = Field(
        default=_defaults.page_bytes, description="where a page of events stops, after one event at least"
    )
    subscriptions: Count = Field(default=_defaults.subscriptions, description="subscriptions on one connection")
    wait_ms: Annotated[int, Field(ge=0, le=300_000)] = Field(
        default=_defaults.wait_ms, description="how long waitMs may hold a page, in milliseconds"
    )
    idempotency_hours: Count = Field(
        default=_defaults.idempotency_hours, description="how long an idempotency key is kept"
    )

    @model_validator(mode="after")
    def _nested(self) -> Self:
        if not self.event_bytes <= self.frame_bytes <= self.frame_hard_bytes:
            raise ValueError("event_bytes <= frame_bytes <= frame_hard_bytes must hold")
        if self.page_default > self.page_events:
            raise ValueError("page_default must not exceed page_events")
        return self

    def limits(self) -> Limits:
        """The same numbers as the protocol's value."""
        return Limits(**self.model_dump())


class RunOptions(_Options):
    """What becomes of runs that a crash left open (protocol, section 1)."""

    lost_after: Duration = Field(
        default=3600.0,
        description="a run without an event for so long, whose principal is not connected, is finished as lost; 0 = never",
    )


class RateOptions(_Options):
    """Token buckets (protocol, section 8). A rate of 0 lifts the limit."""

    requests_per_second: Annotated[float, Field(ge=0)] = Field(
        default=600.0, description="HTTP requests of one principal"
    )
    requests_burst: Count = Field(default=2_000, description="HTTP requests of one principal at once")
    frames_per_second: Annotated[float, Field(ge=0)] = Field(
        default=20_000.0, description="append frames on one socket"
    )
    frames_burst: Count = Field(default=40_000, description="append frames on one socket at once")


class StreamOptions(_Options):
    """Open sockets and event streams (protocol, section 7)."""

    ping_interval: Duration = Field(default=20.0, gt=0, description="a WebSocket ping so often")
    peer_timeout: Duration = Field(
        default=60.0, gt=0, description="a peer that gave no sign of life for so long is closed (4408)"
    )
    keep_alive: Duration = Field(
        default=15.0, gt=0, description="a comment on an idle stream of server-sent events so often"
    )
    connections_per_principal: Count = Field(default=1_000, description="sockets of one principal, else 4429")
    high_water_bytes: Bytes = Field(
        default=256 * 1024, description="a connection is written to while less than this is waiting"
    )

    @model_validator(mode="after")
    def _patient(self) -> Self:
        if self.peer_timeout <= self.ping_interval:
            raise ValueError("peer_timeout must exceed ping_interval")
        return self


class SessionOptions(_Options):
    """Browser sessions, login links and tickets (protocol, section 4)."""

    lifetime: Duration = Field(default=30 * 86_400.0, ge=1, description="a browser session, from its login")
    login_lifetime: Duration = Field(default=900.0, ge=1, description="a login link")
    ticket_lifetime: Duration = Field(default=30.0, ge=1, description="a WebSocket ticket")

    def lifetimes(self) -> Lifetimes:
        """The same in milliseconds."""
        return Lifetimes(
            session_ms=round(self.lifetime * 1000),
            login_ms=round(self.login_lifetime * 1000),
            ticket_ms=round(self.ticket_lifetime * 1000),
        )


class JwtOptions(_Options):
    """An issuer whose JWTs are accepted (protocol, section 4)."""

    issuer: str = Field(description="the `iss` claim, exactly")
    audience: Annotated[tuple[str, ...], BeforeValidator(_several)] = Field(description="what `aud` may name")
    alias: str = Field(description="what provisioned principal ids begin with: <alias>:<sub>")
    jwks_url: str | None = Field(
        default=None, description="where the issuer's keys are; without it and jwks_file, the issuer is asked"
    )
    jwks_file: Path | None = Field(default=None, description="the issuer's keys in a file")
    algorithms: tuple[str, ...] = Field(
        default=("RS256", "PS256", "ES256", "ES384", "EdDSA"), description="signatures that are accepted"
    )
    leeway: Annotated[int, Field(ge=0, le=300)] = Field(default=30, description="for exp, nbf and iat, in seconds")
    admin_claim: str | None = Field(default=None, description="the claim that can make an admin; none by default")
    admin_values: Annotated[tuple[str, ...], BeforeValidator(_several)] = Field(
        default=(), description="what admin_claim must be, or hold"
    )

    @model_validator(mode="after")
    def _accepted(self) -> Self:
        self.jwt_settings()
        return self

    def jwt_settings(self) -> JwtSettings:
        """The same as the drivers take it. `ValueError` if it cannot be, or the file cannot be read."""
        values = self.model_dump(exclude={"jwks_file", "leeway"})
        return JwtSettings(**values, jwks=_text_of(self.jwks_file), leeway_seconds=self.leeway)


def _text_of(file: Path | None) -> str | None:
    try:
        return None if file is None else file.read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror}") from None


class LogOptions(_Options):
    """What the server says of itself, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="the least important line written"
    )
    format: Literal["auto", "json", "console"] = Field(
        default="auto", description="auto: console on a terminal, JSON elsewhere"
    )
    requests: bool = Field(
        default=True, description="a line per request; appends that succeed are counted in /metrics only"
    )
