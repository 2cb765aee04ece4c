"""What the server demands of its page in a browser: cookie, origin, CSRF header. Pure (protocol, section 4; RFC 6265bis).

The cookie is the browser's bearer, and browsers send it along with requests that other sites cause. Three things keep those out: SameSite,
an `Origin` that must be the server's own, and a header that only a script of the page can set and whose value only it can know.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from bubble.protocol.errors import Forbidden

__all__ = ["CSRF_HEADER", "SESSION_COOKIES", "BrowserRules", "csrf_token", "normal_origin"]

CSRF_HEADER: Final = "X-Bubble-CSRF"

#: The names that the session cookie can have: under TLS, and without.
SESSION_COOKIES: Final = ("__Host-bubble_session", "bubble_session")

_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def csrf_token(cookie: str) -> str:
    """The `X-Bubble-CSRF` of a session: worked out from its cookie, so nothing is kept, and telling nothing of it."""
    return hmac.digest(cookie.encode(), b"bubble csrf", hashlib.sha256).hex()


def normal_origin(url: str) -> str:
    """The origin of a URL as browsers write it: `https://example.org`, without the scheme's own port. `ValueError` if it has none."""
    parts = urlsplit(url)
    host, port = parts.hostname, parts.port
    if parts.scheme not in _DEFAULT_PORTS or not host or parts.username is not None:
        raise ValueError("an origin looks like https://example.org or http://127.0.0.1:3000")
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + ("" if port in (None, _DEFAULT_PORTS[parts.scheme]) else f":{port}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserRules:
    """The rules for the page at `origins`: the public origin, and other names of the same server where it has some.

    They are made normal; `ValueError` if one of them is no origin, or there is none.
    """

    origins: frozenset[str]

    def __post_init__(self) -> None:
        if not self.origins:
            raise ValueError("a page comes from some origin")
        object.__setattr__(self, "origins", frozenset(map(normal_origin, self.origins)))

    @property
    def is_secure(self) -> bool:
        """Whether browsers come over TLS."""
        return all(origin.startswith("https:") for origin in self.origins)

    @property
    def cookie_name(self) -> str:
        """Under TLS a `__Host-` name: no other host, not even a subdomain, can set such a cookie."""
        return SESSION_COOKIES[0 if self.is_secure else 1]

    def set_cookie(self, cookie: str, *, max_age_seconds: int) -> str:
        """The `Set-Cookie` value that gives a browser its session."""
        secure = "; Secure" if self.is_secure else ""
        return f"{self.cookie_name}={cookie}; Path=/; Max-Age={max_age_seconds}; HttpOnly; SameSite=Strict{secure}"

    def clear_cookie(self) -> str:
        """The `Set-Cookie` value that takes it away."""
        return self.set_cookie("", max_age_seconds=0)

    def read_cookie(self, header: str | None) -> str | None:
        """The session of a `Cookie` header. None where there is none, or several that differ: one of them was planted."""
        found = set()
        for pair in (header or "").split(";"):
            name, _, value = pair.strip(" \t").partition("=")
            if name == self.cookie_name and value:
                found.add(value)
        return found.pop() if len(found) == 1 else None

    def require_origin(self, origin: str | None) -> None:
        """Raises `Forbidden` unless the `Origin` header is the page's. Upgrades by cookie need it too."""
        if origin not in self.origins:
            raise Forbidden("A request by cookie must come from the page of this server (Origin).")

    def require_own_page(self, method: str, *, cookie: str, origin: str | None, csrf: str | None) -> None:
        """Raises `Forbidden` for a request by cookie with an unsafe method, unless `Origin` and `X-Bubble-CSRF` are right.

        A safe one needs neither. With `X-Bubble-CSRF` it says whose page it comes from, and is refused where that is another session's.
        """
        if method in _SAFE_METHODS:
            if csrf is not None and not _is_of(csrf, cookie):
                raise Forbidden(
                    f"The `{CSRF_HEADER}` of this request is not its session's: another one began in this browser."
                )
            return
        self.require_origin(origin)
        if csrf is None or not _is_of(csrf, cookie):
            raise Forbidden(f"A request by cookie with method {method} must carry the session's `{CSRF_HEADER}`.")


def _is_of(csrf: str, cookie: str) -> bool:
    return hmac.compare_digest(csrf.encode("utf-8", "replace"), csrf_token(cookie).encode())
