"""What an operator says of the issuer whose JWTs are accepted."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from bubble.auth.external_subjects import ALIAS_PATTERN

__all__ = ["ALGORITHMS", "JwtSettings", "check_issuer_url"]

#: The algorithms that can be accepted: all of them verify with a public key.
ALGORITHMS: Final = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
)
MAX_LEEWAY_SECONDS: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class JwtSettings:
    """One issuer of JWTs, for instance an OpenID Connect provider (protocol, section 4).

    `issuer` is the exact `iss`; of `audience` one must be in `aud`. `alias` leads the principalIds: `<alias>:<sub>`. The keys come from the
    text `jwks`, or from `jwks_url`, or, with neither, from where `<issuer>/.well-known/openid-configuration` says. `leeway_seconds`
    (0 to 300) is granted to `exp`, `nbf` and `iat`.

    `admin_claim` and `admin_values` let claims make admins: whoever has one of the values in that claim (a string or a list of strings;
    dots go into objects: `realm_access.roles`) is an admin for as long as that JWT is good. By default no claim does.

    Raises `ValueError` that names what cannot be.
    """

    issuer: str
    audience: tuple[str, ...]
    alias: str
    jwks: str | None = None
    jwks_url: str | None = None
    algorithms: tuple[str, ...] = ("RS256", "PS256", "ES256", "ES384", "EdDSA")
    leeway_seconds: int = 30
    admin_claim: str | None = None
    admin_values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._check_names()
        self._check_keys()
        if not 0 <= self.leeway_seconds <= MAX_LEEWAY_SECONDS:
            raise ValueError(f"`leeway_seconds` must be from 0 to {MAX_LEEWAY_SECONDS}")
        if (self.admin_claim is None) != (not self.admin_values):
            raise ValueError("`admin_claim` and `admin_values` go together")

    @property
    def leeway_ms(self) -> int:
        """The leeway in milliseconds."""
        return self.leeway_seconds * 1000

    def _check_names(self) -> None:
        if not self.issuer:
            raise ValueError("`issuer` must not be empty")
        if not self.audience or not all(self.audience):
            raise ValueError(
                "`audience` must name at least one audience: a JWT for somebody else is not for this server"
            )
        if not re.fullmatch(ALIAS_PATTERN, self.alias) or self.alias.lower() == "system":
            raise ValueError(
                "`alias` must be 1 to 32 of `A-Z a-z 0-9 _ @ -`, a letter or digit first, and not `system`"
            )

    def _check_keys(self) -> None:
        unknown = [name for name in self.algorithms if name not in ALGORITHMS]
        if unknown or not self.algorithms:
            named = f", not `{unknown[0]}`" if unknown else ""
            raise ValueError(f"`algorithms` must be some of {', '.join(ALGORITHMS)}{named}")
        if self.jwks is not None and self.jwks_url is not None:
            raise ValueError("only one of `jwks` and `jwks_url` may be given")
        if self.jwks_url is not None:
            check_issuer_url(self.jwks_url, name="jwks_url")
        elif self.jwks is None:
            check_issuer_url(self.issuer, name="issuer")


def check_issuer_url(url: str, *, name: str) -> str:
    """`url`, if keys can be trusted that come from there: over TLS, or from this machine. Raises `ValueError` naming `name`."""
    parts = urlsplit(url)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(parts.hostname))
    if not is_safe or not parts.hostname or parts.username is not None or parts.fragment:
        raise ValueError(f"`{name}` must be an https URL (or http on this machine's loopback address)")
    return url


def _is_loopback(host: str | None) -> bool:
    if host == "localhost":
        return True
    try:
        return host is not None and ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
