"""The bearer: a fixed one, or one that a callable gives, again and again."""

from __future__ import annotations

import asyncio
import binascii
import inspect
import logging
import time
from base64 import urlsafe_b64decode
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec

from bubble.protocol.errors import InvalidRequest, Unauthenticated

__all__ = ["TokenProvider", "TokenSource"]

TokenProvider: TypeAlias = "str | Callable[[], str | Awaitable[str]]"

_SOONEST = 5.0
_logger = logging.getLogger("bubble.client")


class TokenSource:
    """Keeps the bearer in use. Of several callers who want another one at once, one asks the callable."""

    def __init__(self, token: TokenProvider, *, clock: Callable[[], float] = time.time) -> None:
        # There is a current one or somebody to ask for it, always.
        self._provider = None if isinstance(token, str) else token
        self._current = _checked(token) if isinstance(token, str) else None
        self._clock = clock
        self._lock = asyncio.Lock()
        self._changed = asyncio.Event()
        self._listeners: list[Callable[[], None]] = []

    @property
    def can_renew(self) -> bool:
        """Whether there is a callable to ask for another one."""
        return self._provider is not None

    @property
    def current(self) -> str | None:
        """The bearer in use; None before the callable was first asked."""
        return self._current

    def on_change(self, listener: Callable[[], None]) -> None:
        """Calls `listener` each time the bearer in use becomes another one."""
        self._listeners.append(listener)

    async def get(self) -> str:
        """The bearer in use. Raises what the callable raises."""
        async with self._lock:
            if self._current is not None:
                return self._current
            return "" if self._provider is None else await self._ask(self._provider)

    async def renew(self, *, refused: str) -> str:
        """Another bearer than the `refused` one. `Unauthenticated` if there is none; raises what the callable raises."""
        async with self._lock:
            if self._current is not None and self._current != refused:
                return self._current
            token = refused if self._provider is None else await self._ask(self._provider)
            if token == refused:
                raise Unauthenticated("The server does not accept the token.")
            return token

    async def keep_fresh(self, *, every: float) -> None:
        """Asks the callable again and again, once it was asked at all: after `every` seconds, or well before a JWT says that it ends."""
        while True:
            self._changed.clear()
            try:
                async with asyncio.timeout(self._seconds_until_refresh(at_most=every)):
                    await self._changed.wait()
            except TimeoutError:
                await self._try_to_refresh()

    async def _try_to_refresh(self) -> None:
        if self._current is None or self._provider is None:
            return
        try:
            async with self._lock:
                await self._ask(self._provider)
        except Exception:
            # The bearer in use may be good for long. When the server refuses it, whoever needs another one hears the error.
            _logger.warning("The token could not be refreshed.", exc_info=True)

    def _seconds_until_refresh(self, *, at_most: float) -> float:
        expiry = None if self._current is None else _jwt_expiry(self._current)
        if expiry is None:
            return at_most
        return min(at_most, max(_SOONEST, (expiry - self._clock()) * 0.8))

    async def _ask(self, provider: Callable[[], str | Awaitable[str]]) -> str:
        answer = provider()
        token = _checked(await answer if inspect.isawaitable(answer) else answer)
        if token != self._current:
            self._current = token
            self._changed.set()
            for listener in self._listeners:
                listener()
        return token


def _checked(token: str) -> str:
    if not token:
        raise InvalidRequest("No token was given: it is empty.")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidRequest("The token must be printable ASCII without spaces.")
    return token


class _Claims(msgspec.Struct):
    exp: float | None = None


def _jwt_expiry(token: str) -> float | None:
    # Only to be on time: the server alone judges the token.
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        return msgspec.json.decode(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)), type=_Claims).exp
    except (msgspec.DecodeError, binascii.Error):
        return None
