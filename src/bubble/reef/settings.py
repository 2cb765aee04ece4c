"""Reef's own sections of the configuration; the others are those of every connector (`bubble.amphibian.options`)."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from bubble.amphibian.options import ConnectorConfig, Section, Token
from bubble.reef.addresses import card_urls
from bubble.reef.http import IDLE_SECONDS

__all__ = ["NAME", "A2AOptions", "ReefConfig", "ReefOptions"]

#: By what its variables begin and its directory is called.
NAME = "reef"


_NO_ORIGIN = "each must be an origin like https://agents.example, without a path"


def _checked_card_url(url: str) -> str:
    card_urls(url)
    return url


def _checked_origin(url: str) -> str:
    try:
        card_urls(url)
    except ValueError:
        raise ValueError(_NO_ORIGIN) from None
    parts = urlsplit(url)
    if parts.path not in {"", "/"} or parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError(_NO_ORIGIN)
    return url


class A2AOptions(Section):
    """The agent."""

    agent_card_url: Annotated[str, AfterValidator(_checked_card_url)] = Field(
        description="the agent's address, or that of its card; /.well-known/agent-card.json is added where it is missing"
    )
    token: Token | None = Field(default=None, description="a bearer for the agent, if it wants one")
    trusted_origins: list[Annotated[str, AfterValidator(_checked_origin)]] = Field(
        default=[],
        description="origins, beside the card's, that the bearer may go to and that a card on a public host may name",
    )
    idle_seconds: Annotated[float, Field(gt=0, le=86_400)] = Field(
        default=IDLE_SECONDS, description="how long the agent may be silent, in seconds; keep-alives count as a sound"
    )


class ReefOptions(Section):
    """The bot's manners."""

    max_bot_turns: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=8, description="how many questions of bots in a row are answered before a person has to say something"
    )


class ReefConfig(ConnectorConfig):
    """What `bubble reef` is started with."""

    a2a: A2AOptions = Field(alias="a2a")
    reef: ReefOptions = ReefOptions()
