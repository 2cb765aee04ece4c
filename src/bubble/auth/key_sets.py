"""An issuer's public keys: a JWKS read into keys that each verify certain algorithms and no others (RFC 7517, RFC 7518).

Binding a key to the algorithms of its own kind is what defeats algorithm confusion: an HMAC over the text of a public key finds no key
that would verify an HMAC.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from bubble.protocol.jsontext import JSONValue

__all__ = ["KeySet", "KeySource", "StaticKeys", "read_key_set"]

MIN_RSA_BITS: Final = 2048
MAX_KEYS: Final = 100

_BY_KIND: Final[Mapping[tuple[str, str | None], tuple[str, ...]]] = {
    ("RSA", None): ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA",),
    ("OKP", "Ed448"): ("EdDSA",),
}

_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True)
class _Key:
    kid: str | None
    by_algorithm: Mapping[str, jwt.PyJWK]


class KeySet:
    """Keys as an issuer publishes them."""

    def __init__(self, keys: Sequence[_Key]) -> None:
        self._keys = tuple(keys)

    def __len__(self) -> int:
        return len(self._keys)

    def find(self, kid: str | None, algorithm: str) -> jwt.PyJWK | None:
        """The key called `kid` that verifies `algorithm`; without a `kid`, the only one that does."""
        found = [
            key.by_algorithm[algorithm]
            for key in self._keys
            if algorithm in key.by_algorithm and (kid is None or key.kid == kid)
        ]
        return found[0] if len(found) == 1 else None


class KeySource(Protocol):
    """Where an issuer's keys come from."""

    async def find(self, kid: str | None, algorithm: str) -> jwt.PyJWK | None:
        """The key to verify with, or None if the issuer has no such. Raises `Unavailable` if its keys cannot be had."""

    async def close(self) -> None:
        """Releases what it holds. Idempotent."""


class StaticKeys:
    """Keys given in the configuration."""

    def __init__(self, keys: KeySet) -> None:
        self._keys = keys

    async def find(self, kid: str | None, algorithm: str) -> jwt.PyJWK | None:
        """The key to verify with, or None."""
        return self._keys.find(kid, algorithm)

    async def close(self) -> None:
        """Nothing to release."""


def read_key_set(text: bytes, algorithms: Collection[str]) -> KeySet:
    """The keys of a JWKS that verify one of `algorithms`. What is of another kind, for encryption, secret or too weak is left out.

    Raises `ValueError` if `text` is no JWKS or none of its keys is left.
    """
    keys = [key for jwk in _members(text) if (key := _read_key(jwk, algorithms))]
    if not keys:
        raise ValueError("the key set has no public key for the configured algorithms")
    return KeySet(keys)


def _members(text: bytes) -> Iterator[dict[str, JSONValue]]:
    try:
        listed = msgspec.json.decode(_decode_members.decode(text).get("keys", b"null"), type=list[dict[str, JSONValue]])
    except (msgspec.MsgspecError, RecursionError):
        raise ValueError("the key set is not an object with a list `keys` of objects") from None
    yield from listed[:MAX_KEYS]


def _read_key(jwk: dict[str, JSONValue], algorithms: Collection[str]) -> _Key | None:
    kid = jwk.get("kid")
    if not _is_for_verifying(jwk) or not isinstance(kid, str | None):
        return None
    declared = jwk.get("alg")
    usable = {}
    for algorithm in _possible(jwk):
        if algorithm in algorithms and declared in (None, algorithm):
            key = _read_for(jwk, algorithm)
            if key is not None:
                usable[algorithm] = key
    return _Key(kid, usable) if usable else None


def _is_for_verifying(jwk: Mapping[str, JSONValue]) -> bool:
    """A key that holds its private half as well was published by mistake; whoever saw it could sign."""
    operations = jwk.get("key_ops")
    return (
        "d" not in jwk
        and jwk.get("use", "sig") == "sig"
        and (operations is None or (isinstance(operations, list) and "verify" in operations))
    )


def _possible(jwk: Mapping[str, JSONValue]) -> tuple[str, ...]:
    kind, curve = jwk.get("kty"), jwk.get("crv")
    if kind == "RSA":
        curve = None
    if not isinstance(kind, str) or not isinstance(curve, str | None):
        return ()
    return _BY_KIND.get((kind, curve), ())


def _read_for(jwk: dict[str, JSONValue], algorithm: str) -> jwt.PyJWK | None:
    try:
        key = jwt.PyJWK.from_dict(jwk, algorithm=algorithm)
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
    if isinstance(key.key, RSAPublicKey) and key.key.key_size < MIN_RSA_BITS:
        return None
    return key
