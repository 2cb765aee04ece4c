"""From a configuration to a reef that attends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import anyio

from bubble.amphibian.launcher import launch
from bubble.reef.agent import ReefAgent
from bubble.reef.client import A2AClient
from bubble.reef.failures import AgentFailure, CardRefused
from bubble.reef.settings import NAME, ReefConfig

__all__ = ["attend", "client_of"]

_logger = logging.getLogger("bubble.reef")


def client_of(config: ReefConfig) -> A2AClient:
    """A client of the agent that is configured."""
    token = config.a2a.token
    return A2AClient(
        config.a2a.agent_card_url,
        bearer=lambda: None if token is None else token.get_secret_value(),
        trusted_origins=config.a2a.trusted_origins,
        idle_seconds=config.a2a.idle_seconds,
    )


async def attend(config: ReefConfig, *, stop: asyncio.Event, on_ready: Callable[[], None] = lambda: None) -> None:
    """Bridges the agent to the bot's threads until `stop` is set. The card is looked at beside that.

    Raises `CardRefused` where the card says that it cannot work; a card that cannot be read now may be there later. Beside it what
    `bubble.amphibian.launcher.launch` raises.
    """
    client = client_of(config)
    agent = ReefAgent(client)
    turns = config.reef.max_bot_turns
    looking = asyncio.create_task(_look_at_the_card(client))
    attending = asyncio.create_task(launch(config, agent, name=NAME, stop=stop, max_bot_turns=turns, on_ready=on_ready))
    try:
        await asyncio.wait({looking, attending}, return_when=asyncio.FIRST_COMPLETED)
        if looking.done():
            looking.result()
        await attending
    finally:
        looking.cancel()
        attending.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait({looking, attending})
            await agent.close()


async def _look_at_the_card(client: A2AClient) -> None:
    try:
        known = await client.resolve_transport()
    except CardRefused:
        raise
    except AgentFailure as failure:
        _logger.warning("The agent card cannot be read yet: %s", failure.message)
    else:
        _logger.info("%s is spoken to over %s.", known.name or "The agent", known.interface)
