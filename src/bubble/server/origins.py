"""Where the server's own pages come from: the origins that a browser may send with a cookie (protocol, section 4)."""

from __future__ import annotations

from urllib.parse import urlsplit

from bubble.server.settings import Settings

__all__ = ["origin_of", "own_origins"]

_DEFAULT_PORTS = {"http": 80, "https": 443}
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def origin_of(url: str) -> str:
    """The origin of a URL, as a browser writes it (RFC 6454, section 6.2)."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    is_default = parts.port in (None, _DEFAULT_PORTS.get(parts.scheme))
    return f"{parts.scheme}://{host}" if is_default else f"{parts.scheme}://{host}:{parts.port}"


def own_origins(settings: Settings, *, port: int | None = None) -> frozenset[str]:
    """The public origin; for a server that only this machine reaches, under each name that the machine has for itself."""
    url = settings.url(port=port)
    if settings.public_url is not None or not settings.is_loopback:
        return frozenset({origin_of(url)})
    own = urlsplit(url)
    return frozenset({origin_of(url), *(origin_of(f"{own.scheme}://{name}:{own.port}") for name in _LOOPBACK)})
