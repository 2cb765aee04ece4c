"""A2A 1.0 over HTTP+JSON."""

from __future__ import annotations

from bubble.protocol.jsontext import JSONValue
from bubble.reef.dialects import shapes10
from bubble.reef.dialects.rest import Rest
from bubble.reef.messages import OutgoingMessage

__all__ = ["Rest10"]


class Rest10(Rest):
    """Paths at the interface's url itself."""

    generation = "1.0"
    prefix = ""
    headers = shapes10.HEADERS

    def message(self, outgoing: OutgoingMessage) -> JSONValue:
        return shapes10.message(outgoing)
