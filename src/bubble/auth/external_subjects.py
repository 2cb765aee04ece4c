"""The principalId of an identity that an issuer vouches for: `<alias>:<sub>`, other characters as `.hex` (protocol, section 4).

No two subs share an id. Letters, digits, `_`, `:`, `@` and `-` stand for themselves; every other byte of the UTF-8 text, the dot
included, is a dot and two hex digits, so the text can be read back. A sub that would be too long that way is `.h-` and its SHA-256: as
`h` is no hex digit, that is never the writing of another sub.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

__all__ = ["ALIAS_PATTERN", "MAX_SUBJECT", "is_subject", "principal_id_of"]

ALIAS_PATTERN: Final = r"[A-Za-z0-9][A-Za-z0-9_@\-]{0,31}"
#: Characters of the longest sub (OpenID Connect Core, section 2).
MAX_SUBJECT: Final = 255

_MAX_PRINCIPAL_ID: Final = 128
_OTHER: Final = re.compile(rb"[^A-Za-z0-9_:@\-]")
_CONTROL_OR_SURROGATE: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def is_subject(value: object) -> bool:
    """Whether a `sub` claim can name somebody: 1 to 255 characters, no control characters, no lone surrogates."""
    return isinstance(value, str) and 1 <= len(value) <= MAX_SUBJECT and not _CONTROL_OR_SURROGATE.search(value)


def principal_id_of(alias: str, subject: str) -> str:
    """The principalId of `subject`, as `is_subject` accepts it, at the issuer called `alias`."""
    text = subject.encode()
    escaped = _OTHER.sub(lambda match: b".%02x" % match[0][0], text).decode("ascii")
    principal_id = f"{alias}:{escaped}"
    if len(principal_id) <= _MAX_PRINCIPAL_ID:
        return principal_id
    return f"{alias}:.h-{hashlib.sha256(text).hexdigest()}"
