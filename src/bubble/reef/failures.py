"""What can go wrong between reef and an agent, as the people on the thread and the operator read it.

    Unavailable
    └── AgentFailure         one sentence, fit for the thread
        ├── CardRefused      the card cannot be used as it is
        ├── Unreachable      nobody took the request
        │   └── Busy         the agent asked to come back later
        ├── Refused          the agent answered with an error
        ├── Broken           the stream ended in the middle, or is no A2A stream
        └── Silent           not a byte for as long as the idle limit

Everybody on the thread reads the messages, so they hold no secrets (`discretion`), also where an agent echoes them. What an agent says of
itself is quoted, shortened.
"""

from __future__ import annotations

from bubble.protocol.errors import Unavailable
from bubble.reef.discretion import without_secrets

__all__ = ["AgentFailure", "Broken", "Busy", "CardRefused", "Refused", "Silent", "Unreachable"]


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
    """The agent's error answer.

    `status` is that of HTTP, `rpc_code` that of JSON-RPC where there is one.
    """

    def __init__(self, message: str, *, status: int | None = None, rpc_code: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.rpc_code = rpc_code

    @property
    def is_about_the_message(self) -> bool:
        """Whether it refuses what was said, where 401, 403, 429 and 5xx refuse whoever says it or whenever it is said."""
        return not self.begun and self.status not in {401, 403, 408, 429} and (self.status or 400) < 500


class Broken(AgentFailure):
    """The stream is over before the reply is, or cannot be read."""


class Silent(AgentFailure):
    """The agent is connected and says nothing."""
