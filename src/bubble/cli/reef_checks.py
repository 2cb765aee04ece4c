"""What `bubble doctor reef` looks at: each check is one question and gives one sentence."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from bubble.cli.checks import Finding, State

if TYPE_CHECKING:
    from bubble.reef.settings import ReefConfig

__all__ = ["reef_findings"]

_PATIENCE: Final = 10.0


async def reef_findings(config: ReefConfig, *, patience: float = _PATIENCE) -> list[Finding]:
    """The agent's card, how it is spoken to, the bot's identity, the store. Each is looked at for `patience` seconds at most.

    Nothing is changed by it, and nothing made.
    """
    agent, identity, store = await asyncio.gather(
        _within(patience, _agent(config), mute=_no_card(f"The agent did not send its card within {patience:g} s.")),
        _within(patience, _identity(config), mute=[_mute("identity", f"{config.bubble.url} did not answer", patience)]),
        _within(patience, _store(config), mute=[_mute("store", "The disk did not answer", patience)]),
    )
    return [*agent, *identity, *store]


async def _within(seconds: float, looking: Awaitable[list[Finding]], *, mute: list[Finding]) -> list[Finding]:
    try:
        async with asyncio.timeout(seconds):
            return await looking
    except TimeoutError:
        return mute


async def _agent(config: ReefConfig) -> list[Finding]:
    from bubble.reef.discretion import shown_url
    from bubble.reef.failures import AgentFailure
    from bubble.reef.running import client_of

    client = client_of(config)
    try:
        known = await client.resolve_transport()
    except AgentFailure as failure:
        return _no_card(failure.message)
    finally:
        await client.close()
    interface, name = known.interface, known.name or "an agent without a name"
    spoken = f"It is spoken to in A2A {interface.generation} over {interface.binding}, at {shown_url(interface.url)}."
    return [
        _finding("card", "ok", f"{shown_url(known.card_url)} is the card of {name}; it streams."),
        _finding("dialect", "ok", spoken),
    ]


def _no_card(sentence: str) -> list[Finding]:
    return [_finding("card", "failed", sentence), _finding("dialect", "skipped", "Without a card there is none.")]


async def _identity(config: ReefConfig) -> list[Finding]:
    from bubble.client import BubbleConnection
    from bubble.protocol.errors import BubbleError

    url, wanted = config.bubble.url, config.bubble.principal_id
    try:
        async with BubbleConnection(url, token=config.bubble.token.get_secret_value(), retry_for=0.0) as bubble:
            found = (await bubble.who_am_i()).principal_id
    except BubbleError as error:
        return [_finding("identity", "failed", f"{url} does not know the bot: {error.message}")]
    if found != wanted:
        what = f"The token is that of {found}, not of {wanted}: set bubble.token or bubble.principalId."
        return [_finding("identity", "failed", what)]
    return [_finding("identity", "ok", f"{url} knows the bot as {wanted}.")]


async def _store(config: ReefConfig) -> list[Finding]:
    return [await asyncio.to_thread(_look_at_the_store, config)]


def _look_at_the_store(config: ReefConfig) -> Finding:
    from bubble.amphibian.config import ConfigError
    from bubble.amphibian.database import MEMORY, look_at
    from bubble.amphibian.launcher import store_path
    from bubble.protocol.errors import BubbleError, Conflict
    from bubble.reef.settings import NAME

    try:
        path = store_path(config, NAME)
        if path == MEMORY:
            forgets = "The store is in memory: a restart forgets what was answered and which tasks wait."
            return _finding("store", "warning", forgets)
        is_there = look_at(path)
    except Conflict as error:  # most likely the reef that is being looked at, at work
        return _finding("store", "warning", error.message)
    except (BubbleError, ConfigError) as error:
        return _finding("store", "failed", str(error))
    said = "can be written" if is_there else "does not exist yet; `bubble reef` can make it"
    return _finding("store", "ok", f"{path} {said}.")


def _mute(check: str, who: str, seconds: float) -> Finding:
    return _finding(check, "failed", f"{who} within {seconds:g} s.")


def _finding(check: str, state: State, sentence: str) -> Finding:
    return Finding(check=check, state=state, sentence=sentence)
