"""An issuer's keys over HTTP: kept for a while, fetched again when they get old or a token names an unknown one.

Anybody can send a token that names an unknown key, so fetches are bounded in number: the issuer is never asked more often than every few
seconds, whatever comes in. When it does not answer, the keys that are held go on serving for an hour.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Final

import httpx2
import jwt
import msgspec

from bubble.auth.jwt_settings import JwtSettings, check_issuer_url
from bubble.auth.key_sets import KeySet, KeySource, StaticKeys, read_key_set
from bubble.protocol.errors import Unavailable
from bubble.protocol.timestamps import Clock

__all__ = ["FetchedKeys", "keys_of"]

#: Milliseconds after which keys are fetched again, and after which they no longer count where that fails.
FRESH_MS: Final = 5 * 60_000
STALE_MS: Final = 60 * 60_000
#: Milliseconds between two fetches at least: while there are keys, and while there are none.
PAUSE_MS: Final = 10_000
PAUSE_WITHOUT_KEYS_MS: Final = 1_000
FETCH_SECONDS: Final = 5.0
MAX_ANSWER_BYTES: Final = 1024 * 1024

_NOT_HAD: Final = "The keys of the token issuer cannot be had at the moment."


class _Discovery(msgspec.Struct, frozen=True):
    issuer: str
    jwks_uri: str


def keys_of(settings: JwtSettings, *, clock: Clock) -> KeySource:
    """Where the settings say that the keys come from. Raises `ValueError` for a `jwks` without a usable key."""
    if settings.jwks is not None:
        return StaticKeys(read_key_set(settings.jwks.encode(), settings.algorithms))
    return FetchedKeys(settings.issuer, settings.jwks_url, settings.algorithms, clock=clock)


class FetchedKeys:
    """The keys at `jwks_url`, or, where that is None, at the place that the issuer's OpenID configuration names."""

    def __init__(self, issuer: str, jwks_url: str | None, algorithms: Collection[str], *, clock: Clock) -> None:
        self._issuer = issuer
        self._jwks_url = jwks_url
        self._algorithms = frozenset(algorithms)
        self._clock = clock
        self._http: httpx2.AsyncClient | None = None
        self._fetching = asyncio.Lock()
        self._keys: KeySet | None = None
        self._fetched_ms = 0
        self._tried_ms: int | None = None

    async def find(self, kid: str | None, algorithm: str) -> jwt.PyJWK | None:
        """The key to verify with, or None if the issuer has no such. Raises `Unavailable` if no keys can be had."""
        key = self._keys.find(kid, algorithm) if self._keys else None
        if key is None or not self._is_within(FRESH_MS, self._fetched_ms):
            await self._refresh(can_wait=key is None)
            key = self._held().find(kid, algorithm)
        return key

    async def close(self) -> None:
        """Closes the connections to the issuer. Idempotent."""
        if self._http is not None:
            http, self._http = self._http, None
            await http.aclose()

    def _is_within(self, span_ms: int, since_ms: int) -> bool:
        """Whether less than `span_ms` went by. Should the clock have been set back, they did."""
        return 0 <= self._clock() - since_ms < span_ms

    def _held(self) -> KeySet:
        if self._keys is None or not self._is_within(STALE_MS, self._fetched_ms):
            raise Unavailable(_NOT_HAD)
        return self._keys

    def _may_try(self) -> bool:
        pause = PAUSE_WITHOUT_KEYS_MS if self._keys is None else PAUSE_MS
        return self._tried_ms is None or not self._is_within(pause, self._tried_ms)

    async def _refresh(self, *, can_wait: bool) -> None:
        """Fetches, unless somebody else does or just did; `can_wait` tells whether it is worth waiting for them."""
        if not self._may_try() and not self._fetching.locked():
            return
        if self._fetching.locked() and not can_wait:
            return
        async with self._fetching:
            if not self._may_try():
                return
            try:
                await self._fetch()
            finally:
                self._tried_ms = self._clock()

    async def _fetch(self) -> None:
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                url = self._jwks_url or await self._discover()
                self._keys = read_key_set(await self._get(url), self._algorithms)
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, ValueError):
            return  # what is held goes on serving; `_held` says when it no longer does
        self._fetched_ms = self._clock()

    async def _discover(self) -> str:
        text = await self._get(f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
        try:
            found = msgspec.json.decode(text, type=_Discovery)
        except msgspec.MsgspecError:
            raise ValueError("the issuer's configuration names no keys") from None
        if found.issuer != self._issuer:
            raise ValueError("the configuration is another issuer's")
        return check_issuer_url(found.jwks_uri, name="jwks_uri")

    async def _get(self, url: str) -> bytes:
        if self._http is None:
            self._http = httpx2.AsyncClient(timeout=FETCH_SECONDS, headers={"Accept": "application/json"})
        async with self._http.stream("GET", url) as response:
            if response.status_code != httpx2.codes.OK:
                raise ValueError(f"the issuer answered {response.status_code}")
            text = bytearray()
            async for piece in response.aiter_bytes():
                text += piece
                if len(text) > MAX_ANSWER_BYTES:
                    raise ValueError("the issuer's answer is too long")
        return bytes(text)
