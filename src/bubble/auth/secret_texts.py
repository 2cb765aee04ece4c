"""The texts that are secrets: how they are made, how they are recognised, and that only their SHA-256 is kept.

Looking a secret up by its hash is what makes guessing hopeless and timing useless: what a comparison might tell by its duration concerns
the hash of the guess, which says nothing of the secret (protocol, section 4).
"""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import Final

from bubble.protocol.resources import PrincipalKind

__all__ = [
    "MAX_BEARER",
    "MIN_ADMIN_TOKEN",
    "TOKEN_PREFIXES",
    "check_admin_token",
    "hash_of",
    "limit_of",
    "new_secret",
    "new_token",
]

#: Characters of the longest bearer that is looked at.
MAX_BEARER: Final = 16 * 1024
#: Characters of the shortest admin token that an operator may choose.
MIN_ADMIN_TOKEN: Final = 32
TOKEN_PREFIXES: Final[dict[PrincipalKind, str]] = {
    "user": "bubble_user_",
    "bot": "bubble_agent_",
    "system": "bubble_system_",
}

_SECRET_BYTES: Final = 32
_LIMIT: Final = re.compile(r"\.(\d{1,15})\Z")


def hash_of(secret: str) -> bytes:
    """The SHA-256 of a secret: all that is kept of it."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def new_token(kind: PrincipalKind) -> str:
    """A new local token for a principal of that kind, with 256 random bits."""
    return TOKEN_PREFIXES[kind] + secrets.token_hex(_SECRET_BYTES)


def new_secret(purpose: str, *, limit_ms: int | None = None) -> str:
    """A new secret `bubble_<purpose>_…` of 256 random bits that can stand in a URL.

    `limit_ms` is written behind it: when what is made from the secret ends at the latest. It is part of what is hashed, so nobody can
    change it.
    """
    limit = "" if limit_ms is None else f".{limit_ms}"
    return f"bubble_{purpose}_{secrets.token_hex(_SECRET_BYTES)}{limit}"


def limit_of(secret: str) -> int | None:
    """The `limit_ms` that a secret was made with. Only of a secret whose hash is known to the store."""
    found = _LIMIT.search(secret)
    return int(found[1]) if found else None


def check_admin_token(text: str) -> str:
    """`text` as an admin token of the operator's choice. Raises `ValueError` if it is too short, too long or cannot be sent in a header."""
    if not MIN_ADMIN_TOKEN <= len(text) <= MAX_BEARER:
        raise ValueError(f"The admin token must have at least {MIN_ADMIN_TOKEN} characters.")
    if not all("!" <= character <= "~" for character in text):
        raise ValueError("The admin token must consist of visible ASCII characters without spaces.")
    return text
