"""What a request needs, in one frozen value."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bubble.protocol.limits import Limits
from bubble.protocol.timestamps import Clock

if TYPE_CHECKING:
    from bubble.auth.authenticator import Authenticator
    from bubble.auth.browser import BrowserRules
    from bubble.auth.policy import Policy
    from bubble.hub import Hub
    from bubble.server.messages.following import Followings
    from bubble.server.metrics import Metrics
    from bubble.server.rates import RequestRates
    from bubble.server.settings import Settings
    from bubble.server.tracing import Tracing
    from bubble.server.watching.following import BotFollowings
    from bubble.store.base import BubbleStore

__all__ = ["Services"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The parts of a running server; `url` is where it is reached, `draining` is set once it takes no more work."""

    settings: Settings
    store: BubbleStore
    hub: Hub
    followings: Followings
    watches: BotFollowings
    authenticator: Authenticator
    policy: Policy
    limits: Limits
    clock: Clock
    metrics: Metrics
    rates: RequestRates
    tracing: Tracing
    browser: BrowserRules
    url: str
    draining: asyncio.Event

    @property
    def origins(self) -> frozenset[str]:
        """The origins that the server's own pages come from."""
        return self.browser.origins
