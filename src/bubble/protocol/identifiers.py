"""Identifiers: what names a thread, a principal, a run, a tool call."""

from __future__ import annotations

import re
import secrets
from functools import lru_cache

from bubble.protocol.errors import InvalidRequest

__all__ = [
    "MAX_SEQ",
    "SERVER_PRINCIPAL",
    "check_key",
    "check_name",
    "check_run_id",
    "check_seq",
    "check_tool_call_id",
    "is_name",
    "is_run_id",
    "new_id",
]

MAX_SEQ = 2**53 - 1
SERVER_PRINCIPAL = "system:bubble"

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:@\-]{0,127}$"
RUN_ID_PATTERN = r"^[^\u0000-\u001f\u007f-\u009f~]{1,256}$"
TOOL_CALL_ID_PATTERN = r"^[^\u0000-\u001f\u007f-\u009f]{1,256}$"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@\-]{0,127}")
_RUN_ID = re.compile(r"[^\x00-\x1f\x7f-\x9f~]{1,256}")
_TOOL_CALL_ID = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,256}")


def is_name(text: str) -> bool:
    """Whether `text` may name a thread or a principal: 1–128 of `A-Z a-z 0-9 . _ : @ -`, a letter or digit first."""
    return len(text) <= 128 and _names(text)


def is_run_id(text: str) -> bool:
    """Whether `text` may name a run: 1–256 characters, no control characters, no `~`."""
    return len(text) <= 256 and _names_run(text)


# The same few ids come again with every event. What is too long was turned away before, so the caches stay small.
@lru_cache(maxsize=2048)
def _names(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


@lru_cache(maxsize=2048)
def _names_run(text: str) -> bool:
    return _RUN_ID.fullmatch(text) is not None


def check_name(text: str, *, path: str) -> str:
    """`text` as a threadId or principalId, or `InvalidRequest` naming `path`. That `system:` is reserved is for the doors to see."""
    if not is_name(text):
        raise InvalidRequest(
            f"`{path}` must be 1 to 128 of `A-Z a-z 0-9 . _ : @ -`, beginning with a letter or a digit."
        )
    return text


def check_run_id(text: str, *, path: str) -> str:
    """`text` as a runId: 1–256 characters, no control characters, no `~`."""
    if not is_run_id(text):
        raise InvalidRequest(f"`{path}` must be 1 to 256 characters without control characters and without `~`.")
    return text


def check_tool_call_id(text: str, *, path: str) -> str:
    """`text` as a toolCallId: 1–256 characters, no control characters."""
    if not _TOOL_CALL_ID.fullmatch(text):
        raise InvalidRequest(f"`{path}` must be 1 to 256 characters without control characters.")
    return text


def check_key(text: str, *, path: str) -> str:
    """`text` as an idempotency key: 1–128 characters."""
    if not 1 <= len(text) <= 128:
        raise InvalidRequest(f"`{path}` must be 1 to 128 characters.")
    return text


def check_seq(number: int, *, path: str, lowest: int = 1) -> int:
    """`number` as a seq: an integer from `lowest` to 2^53−1."""
    # Of a caller without types it may be anything.
    if not (isinstance(number, int) and lowest <= number <= MAX_SEQ):  # type: ignore[redundant-expr]
        raise InvalidRequest(f"`{path}` must be an integer from {lowest} to 2^53-1.")
    return number


def new_id() -> str:
    """A random 128-bit identifier that is a valid name."""
    return secrets.token_hex(16)
