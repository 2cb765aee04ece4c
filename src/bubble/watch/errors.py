"""What can end a watch before its time, and whether another try may help.

    WatchError(code)                                                                                                  may it pass?
    ├── invalid_cursor      the cursor to resume from is malformed, or of another bot or session; nothing was opened    no
    ├── protocol_error      the source sent what is no frame, or no stream of them                                      no
    ├── stream_truncated    the stream stopped without saying that it was over                                          yes
    ├── stalled             no frame came for too long                                                                  yes
    └── the upstream's own  one of the sixteen codes of Connect and gRPC
        ├── unavailable, deadline_exceeded, aborted    not now, or not in time                                          yes
        ├── resource_exhausted                         a limit of the upstream's that others use as well                yes
        └── all others                                 the same request will be refused the same way                    no

What was found out here and not there does not pass, whatever its code: a frame larger than the program wants to hold (`resource_exhausted`)
is as large the next time, and a request that cannot even be sent (`invalid_argument`) is the same one.

The codes are a closed set: a code that an upstream made up is `unknown`. The message is for the program's own log and may quote the
upstream; what goes to a page is the code alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

from bubble.protocol.errors import BubbleError, BubbleErrorCode

__all__ = ["WATCH_ERROR_CODES", "WatchError", "WatchErrorCode", "code_of", "upstream_code"]

WatchErrorCode = Literal[
    "invalid_cursor",
    "protocol_error",
    "stream_truncated",
    "stalled",
    "canceled",
    "unknown",
    "invalid_argument",
    "deadline_exceeded",
    "not_found",
    "already_exists",
    "permission_denied",
    "resource_exhausted",
    "failed_precondition",
    "aborted",
    "out_of_range",
    "unimplemented",
    "internal",
    "unavailable",
    "data_loss",
    "unauthenticated",
]

WATCH_ERROR_CODES: Final[tuple[WatchErrorCode, ...]] = get_args(WatchErrorCode)
_OWN: Final = frozenset({"invalid_cursor", "protocol_error", "stream_truncated", "stalled"})
_PASSING: Final[frozenset[WatchErrorCode]] = frozenset(
    {"stream_truncated", "stalled", "unavailable", "resource_exhausted", "deadline_exceeded", "aborted"}
)
_OF_BUBBLE: Final[Mapping[BubbleErrorCode, WatchErrorCode]] = {
    "invalid_request": "invalid_argument",
    "unauthenticated": "unauthenticated",
    "forbidden": "permission_denied",
    "not_found": "not_found",
    "conflict": "failed_precondition",
    "payload_too_large": "resource_exhausted",
    "rate_limited": "resource_exhausted",
    "internal": "internal",
    "unavailable": "unavailable",
}


class WatchError(Exception):
    """The watch cannot begin or go on; `code` says why. `may_pass`: the same request may succeed later; by the code, if not given."""

    def __init__(self, code: WatchErrorCode, message: str, *, may_pass: bool | None = None) -> None:
        super().__init__(message)
        self.code: WatchErrorCode = code
        self.message = message
        self.may_pass = code in _PASSING if may_pass is None else may_pass


def upstream_code(code: object) -> WatchErrorCode:
    """An upstream's code as one of the closed set. What only a watch itself may say is `unknown`, like what nobody says."""
    return next((known for known in WATCH_ERROR_CODES if known == code and known not in _OWN), "unknown")


def code_of(error: Exception) -> WatchErrorCode:
    """The code of whatever an iterator of events raised."""
    if isinstance(error, WatchError):
        return error.code
    return _OF_BUBBLE[error.code] if isinstance(error, BubbleError) else "internal"
