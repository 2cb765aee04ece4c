"""Where connections really end: at which address, of this machine's networks or of the public one.

A name may stand for one address when the card is read and for another when a message is sent (DNS rebinding). So it is not the name that
decides but the address that a connection has reached, and it does so before anything is said there, TLS included. Where a proxy is between,
the proxy asks for names, and only what is written in the URL is known here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from httpx2 import URL, ConnectError

from bubble.reef.addresses import is_private_address, is_private_name, origin
from bubble.reef.failures import CardRefused

__all__ = ["Peers", "Tracer"]

Tracer: TypeAlias = Callable[[str, Mapping[str, Any]], Awaitable[None]]
"""What httpx2 calls with each step of a request (its extension `trace`)."""


class Peers:
    """What is known of the far ends. While `only_public`, private addresses are hung up on, but for those of `allowed` origins."""

    def __init__(self, *, allowed: Collection[str]) -> None:
        self.only_public = False
        self._allowed = frozenset(allowed)
        self._private: dict[str, bool] = {}

    def is_private(self, url: str) -> bool:
        """Whether the host of `url`, when it was reached last, was this machine or on a private network."""
        known = self._private.get(origin(url))
        return is_private_name(urlsplit(url).hostname or "") if known is None else known

    def tracer(self, url: str) -> Tracer:
        """Watches the connecting of one request to `url`. Raises `CardRefused` within it where it is not to be connected."""
        host = ""

        async def trace(step: str, about: Mapping[str, Any]) -> None:
            nonlocal host
            if step == "connection.connect_tcp.started":
                host = str(about["host"])
            elif step == "connection.connect_tcp.complete" and _is_host_of(url, host):
                stream = about["return_value"]
                try:
                    address = str(stream.get_extra_info("server_addr")[0])
                except OSError:  # it has hung up already
                    await stream.aclose()
                    raise ConnectError("The connection was lost at once.") from None
                if not self._admits(url, address):
                    await stream.aclose()
                    raise CardRefused(
                        f"{origin(url)} is at {address}, which is an address of this machine or of a private network, and the agent card is"
                        " not. If that is meant, add its origin to a2a.trustedOrigins."
                    )

        return trace

    def _admits(self, url: str, address: str) -> bool:
        is_private = self._private[origin(url)] = is_private_address(address)
        return not (is_private and self.only_public and origin(url) not in self._allowed)


def _is_host_of(url: str, host: str) -> bool:
    # Otherwise it is a proxy's. In the spelling that it is connected by.
    return URL(url).raw_host.decode("ascii") == host
