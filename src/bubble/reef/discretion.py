"""What reef shows of addresses and of foreign words, to the people on a thread, in the log, and in `bubble doctor`.

Of an address neither its credentials nor its query, where keys are; of a header no bearer; of foreign words no more than is useful, and
nothing that a terminal would obey.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["quoted", "shortened", "shown_url", "without_secrets"]

_QUOTED: Final = 500
# Of long words, so much is looked at: enough for 500 characters, whatever is left out of them.
_LOOKED_AT: Final = 8_000
_SECRETS: Final = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]+"), r"\1 …"),
    (re.compile(r"//[^\s/?#]*@"), "//…@"),
    (re.compile(r"(//[^\s?#]+[?#])\S*[^\s.,;:!?]"), r"\1…"),
)
# In an address that stands alone, also one that holds spaces where none may be.
_CREDENTIALS = re.compile(r"//[^/?#]*@")
# Controls, what turns the direction of writing, and halves of characters, which cannot be written at all.
_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def without_secrets(text: str) -> str:
    """A sentence as everybody may read it: bearers, and the credentials, query and fragment of addresses, are left out."""
    for secret, mask in _SECRETS:
        text = secret.sub(mask, text)
    return text


def shown_url(url: str) -> str:
    """An address as everybody may read it."""
    return quoted(_CREDENTIALS.sub("//…@", url[:_LOOKED_AT]))


def quoted(text: str) -> str:
    """Foreign words for use in a sentence: on one line, without secrets, and not longer than is useful."""
    plain = without_secrets(" ".join(text[:_LOOKED_AT].split()))
    return shortened(_UNFIT.sub("\N{REPLACEMENT CHARACTER}", plain), _QUOTED)


def shortened(text: str, most: int) -> str:
    """The text, cut after `most` characters where it is longer."""
    return text if len(text) <= most else text[:most] + "…"
