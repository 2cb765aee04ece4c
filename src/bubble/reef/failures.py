"""What can go wrong between reef and an agent, as the people on the thread and the operator read it.

    Unavailable
    └── AgentFailure         one sentence, fit for the thread
        ├── CardRefused      the card cannot be used as it is
        ├── Unreachable      nobody took the request
        │   └── Busy         the agent asked to come back later
        ├── Refused          the agent answered with an error
        ├── Misdirected      the agent answered with what is another thread's
        ├── Broken           the stream ended in the middle, or is no A2A stream
        └── Silent           not a byte for as long as the idle limit

Everybody on the thread reads the messages, so they hold no secrets (`discretion`), also where an agent echoes them. What an agent says of
itself is quoted, shortened.
"""

from __future__ import annotations

from typing import Literal

from bubble.protocol.errors import Unavailable
from bubble.reef.discretion import without_secrets

__all__ = ["AgentFailure", "Broken", "Busy", "CardRefused", "Misdirected", "Refused", "Silent", "Unreachable"]


class AgentFailure(Unavailable):
    """The agent could not be made to answer. `begun` tells whether the stream had brought an event before."""

    begun = False

    def __init__(self, message: str) -> None:
        super().__init__(without_secrets(message))


class CardRefused(AgentFailure):
    """The card says what reef cannot work with, or must not follow."""


class Unreachable(AgentFailure):
    """The request was not accepted by anybody; it can be sent again without harm."""


class Busy(Unreachable):
    """429 or 503 before the first event. `retry_after` is in seconds, where the agent said so."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Refused(AgentFailure):
    """The agent's error answer, or that of somebody in front of it.

    `status` is that of HTTP, `rpc_code` that of JSON-RPC where there is one. `about` is what is wrong, where the agent itself says it: the
    `task`, which is unknown or takes no more messages, or the `message`, perhaps because of its task.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        rpc_code: int | None = None,
        about: Literal["task", "message"] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.rpc_code = rpc_code
        self.about = about


class Misdirected(AgentFailure):
    """The agent answered with a task that belongs to another thread."""


class Broken(AgentFailure):
    """The stream is over before the reply is, or cannot be read."""


class Silent(AgentFailure):
    """The agent is connected and says nothing."""
