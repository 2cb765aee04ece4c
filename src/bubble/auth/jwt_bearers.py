"""JWTs of the configured issuer, and the principals that they stand for (protocol, section 4; RFC 7519, RFC 8725).

What is not asked of the token: which key, which algorithm, which address. The key comes from the issuer's set, the algorithm must be one
that this key verifies and the configuration lists; `jwk`, `jku` and `x5u` in the header are not read, and `crit` is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import jwt
import msgspec

from bubble.auth.drivers import is_disabled
from bubble.auth.external_subjects import is_subject
from bubble.auth.identity import Identity
from bubble.auth.jwt_settings import JwtSettings
from bubble.auth.key_sets import KeySource
from bubble.auth.provisioning import Provisioning
from bubble.protocol.jsontext import JSONValue
from bubble.protocol.timestamps import Clock

__all__ = ["JwtBearers"]

#: 9999-12-31T23:59:59Z, about the last time that the wire can carry.
_LAST_SECOND: Final = 253_402_300_799
_NAME_CLAIMS: Final = ("name", "preferred_username", "email")


@dataclass(frozen=True, slots=True)
class _Claims:
    """What a verified JWT says."""

    subject: str
    expires_ms: int
    values: Mapping[str, JSONValue]


class JwtBearers:
    """The driver for JWTs."""

    def __init__(self, settings: JwtSettings, keys: KeySource, provisioning: Provisioning, *, clock: Clock) -> None:
        self._settings = settings
        self._keys = keys
        self._provisioning = provisioning
        self._clock = clock

    async def resolve(self, bearer: str) -> Identity | None:
        """The identity that the JWT proves. Raises `Unavailable` if the issuer's keys cannot be had."""
        claims = await self._verified(bearer)
        if claims is None:
            return None
        principal = await self._provisioning.principal_of(claims.subject, display_name=_display_name(claims))
        if principal is None or is_disabled(principal):
            return None
        is_claimed = principal.deployment_role != "admin" and self._makes_admin(claims)
        if is_claimed:
            principal = msgspec.structs.replace(principal, deployment_role="admin")
        return Identity(principal=principal, source="jwt", expires_ms=claims.expires_ms, role_claimed=is_claimed)

    async def _verified(self, bearer: str) -> _Claims | None:
        head = self._head(bearer)
        key = await self._keys.find(*head) if head else None
        if head is None or key is None:
            return None
        try:
            values: dict[str, JSONValue] = jwt.decode(
                bearer,
                key=key,
                algorithms=[head[1]],
                audience=self._settings.audience,
                issuer=self._settings.issuer,
                options={
                    "require": ["iss", "aud", "sub", "exp"],
                    # Times are checked below, by the clock that everything else here goes by.
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
        except (jwt.PyJWTError, ValueError, RecursionError):
            return None
        return self._judged(values)

    def _head(self, bearer: str) -> tuple[str | None, str] | None:
        """`kid` and `alg`, if such a token can be accepted at all."""
        try:
            header: dict[str, JSONValue] = jwt.get_unverified_header(bearer)
        except (jwt.PyJWTError, ValueError, RecursionError):
            return None
        kid, algorithm = header.get("kid"), header.get("alg")
        if not isinstance(kid, str | None) or not isinstance(algorithm, str) or "crit" in header:
            return None
        return (kid, algorithm) if algorithm in self._settings.algorithms else None

    def _judged(self, values: dict[str, JSONValue]) -> _Claims | None:
        subject, ends = values["sub"], _milliseconds(values["exp"])
        if not is_subject(subject) or not isinstance(subject, str) or ends is None:
            return None
        expires_ms = min(ends + self._settings.leeway_ms, _LAST_SECOND * 1000)
        now = self._clock()
        if now >= expires_ms or not all(self._has_come(values.get(name, 0), now) for name in ("nbf", "iat")):
            return None
        return _Claims(subject, expires_ms, values)

    def _has_come(self, moment: JSONValue, now: int) -> bool:
        begins = _milliseconds(moment)
        return begins is not None and begins <= now + self._settings.leeway_ms

    def _makes_admin(self, claims: _Claims) -> bool:
        if self._settings.admin_claim is None:
            return False
        found: JSONValue = dict(claims.values)
        for step in self._settings.admin_claim.split("."):
            found = found.get(step) if isinstance(found, dict) else None
        values = found if isinstance(found, list) else [found]
        return any(value in self._settings.admin_values for value in values if isinstance(value, str))


def _milliseconds(seconds: JSONValue) -> int | None:
    """A NumericDate in milliseconds, if it is one that the wire could carry (which also leaves out infinities and NaN)."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    return int(seconds * 1000) if 0 <= seconds <= _LAST_SECOND else None


def _display_name(claims: _Claims) -> str:
    """A name for people to read, from what the issuer says; the sub, where it says none."""
    for name in _NAME_CLAIMS:
        value = claims.values.get(name)
        shown = "".join(filter(str.isprintable, value)).strip() if isinstance(value, str) else ""
        if shown:
            return shown[:128]
    return claims.subject[:128]
