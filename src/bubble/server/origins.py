"""Where the server's own pages come from: the origins that a browser may send with a cookie (protocol, section 4)."""

from __future__ import annotations

from urllib.parse import urlsplit

from bubble.auth.browser import BrowserRules
from bubble.server.settings import Settings

__all__ = ["browser_rules"]

_OWN_NAMES = ("127.0.0.1", "localhost", "[::1]")


def browser_rules(settings: Settings, *, port: int | None = None) -> BrowserRules:
    """The rules for the public origin; for a server that only this machine reaches, for each name that the machine has for itself."""
    url = settings.url(port=port)
    origins = {url}
    if settings.has_local_names:
        own = urlsplit(url)
        origins.update(f"{own.scheme}://{name}:{own.port}" for name in _OWN_NAMES)
    return BrowserRules(origins=frozenset(origins))
