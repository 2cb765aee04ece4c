"""Ports for programs that cannot be told to take any free one."""

from __future__ import annotations

import secrets
import socket

__all__ = ["free_ports"]

# Below the range that systems give out by themselves, so that no connection takes one in the meantime.
_RANGE = range(20_000, 32_000)


def free_ports(count: int) -> list[int]:
    """Different ports on the loopback address that nobody listened on a moment ago."""
    found: list[int] = []
    while len(found) < count:
        port = secrets.choice(_RANGE)
        if port not in found and _is_free(port):
            found.append(port)
    return found


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
