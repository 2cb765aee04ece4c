"""What `bubble doctor reef` looks at: each check is one question and gives one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bubble.cli.checks import Finding, State

if TYPE_CHECKING:
    from bubble.reef.settings import ReefConfig

__all__ = ["reef_findings"]


async def reef_findings(config: ReefConfig) -> list[Finding]:
    """The agent's card, how it is spoken to, the bot's identity, the store."""
    return [*await _agent(config), await _identity(config), await _store(config)]


async def _agent(config: ReefConfig) -> list[Finding]:
    from bubble.reef.discretion import shown_url
    from bubble.reef.failures import AgentFailure
    from bubble.reef.running import client_of

    client = client_of(config)
    try:
        known = await client.resolve_transport()
    except AgentFailure as failure:
        return [
            _finding("card", "failed", failure.message),
            _finding("dialect", "skipped", "Without a card there is none."),
        ]
    finally:
        await client.close()
    interface = known.interface
    return [
        _finding(
            "card",
            "ok",
            f"{shown_url(known.card_url)} is the card of {known.name or 'an agent without a name'}; it streams.",
        ),
        _finding(
            "dialect",
            "ok",
            f"It is spoken to in A2A {interface.generation} over {interface.binding}, at {shown_url(interface.url)}.",
        ),
    ]


async def _identity(config: ReefConfig) -> Finding:
    from bubble.client import BubbleConnection
    from bubble.protocol.errors import BubbleError

    wanted = config.bubble.principal_id
    token = config.bubble.token.get_secret_value()
    try:
        async with BubbleConnection(config.bubble.url, token=token, retry_for=0.0) as bubble:
            principal = await bubble.who_am_i()
    except BubbleError as error:
        return _finding("identity", "failed", f"{config.bubble.url} does not know the bot: {error.message}")
    if principal.principal_id != wanted:
        return _finding(
            "identity",
            "failed",
            f"The token is that of {principal.principal_id}, not of {wanted}: set bubble.token or bubble.principalId.",
        )
    return _finding("identity", "ok", f"{config.bubble.url} knows the bot as {wanted}.")


async def _store(config: ReefConfig) -> Finding:
    from bubble.amphibian.launcher import store_path
    from bubble.amphibian.store import AmphibianStore
    from bubble.protocol.errors import BubbleError, Conflict
    from bubble.reef.settings import NAME

    path = store_path(config, NAME)
    if path == ":memory:":
        return _finding(
            "store", "warning", "The store is in memory: a restart forgets what was answered and which tasks wait."
        )
    try:
        async with await AmphibianStore.open(path):
            return _finding("store", "ok", f"{path} can be written.")
    except Conflict as error:  # most likely the reef that is being looked at, at work
        return _finding("store", "warning", error.message)
    except BubbleError as error:
        return _finding("store", "failed", error.message)


def _finding(check: str, state: State, sentence: str) -> Finding:
    return Finding(check=check, state=state, sentence=sentence)
