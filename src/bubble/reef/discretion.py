"""What reef shows of addresses and of foreign words, to the people on a thread, in the log, and in `bubble doctor`.

Of an address neither its credentials nor its query, where keys are; of a header no bearer; of foreign words no more than is useful, and
nothing that a terminal would obey.

*Theory of operation.* What opens the agent is known: reef was given it, or read it in the card. Each such value is noted when reef begins
to use it (`keep_secret`, `keep_secrets_of`), for the whole process, since whatever the agent says anywhere may repeat it; wherever it
stands, and however it is spelt, it is masked. What is not known, as secrets of others, is told by what stands around it.
"""

from __future__ import annotations

import base64
import re
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

__all__ = ["keep_secret", "keep_secrets_of", "quoted", "shortened", "shown_url", "without_secrets"]

_QUOTED: Final = 500
# Of long words, so much is looked at: enough for 500 characters, whatever is left out of them.
_LOOKED_AT: Final = 8_000
# What is shorter may be any word. Of bearers that change, the latest are known.
_SHORTEST_SECRET: Final = 6
_MOST_SECRETS: Final = 100
_MASK: Final = "…"

# One pass each over a text of any length: a search begins at a word or a mark, and goes only so far.
_VALUE: Final = r"[^\s\"'<>,;&…]+"
_SECRETS: Final = (
    (re.compile(rf"(?i)\b((?:bearer|basic)(?:[\s:=\"'\u200b\\]|%20|%3a){{1,20}}){_VALUE}"), r"\1…"),
    (
        re.compile(
            r"(?i)\b((?:authorization|(?:x-)?api[-_]?key|(?:access|auth|id|refresh)[-_]token|client[-_]secret|passw(?:or)?d)"
            rf"[\"']?\s{{0,5}}[:=]\s{{0,5}}[\"']?)(?!(?:bearer|basic)\b)(?:(?:token|apikey)\s)?{_VALUE}"
        ),
        r"\1…",
    ),
    (re.compile(r"//[^\s/?#]*@"), "//…@"),
    (re.compile(r"(?<![^\s/\"'<>()])[^\s/@:\"'<>()]{1,100}:[^\s/@\"'<>]{1,500}@"), "…@"),
    (re.compile(r"(//[^\s?#/][^\s?#]{0,500}[?#])\S*[^\s.,;:!?]"), r"\1…"),
    (re.compile(r"(\?)[\w.%~-]{1,100}=\S*[^\s.,;:!?]"), r"\1…"),
)
# In an address that stands alone, also one that holds spaces where none may be.
_CREDENTIALS = re.compile(r"//[^/?#]*@")
_QUERY = re.compile(r"([?#]).+", re.DOTALL)
# Controls, what turns the direction of writing, and halves of characters, which cannot be written at all.
_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

_known: dict[str, re.Pattern[str]] = {}


def keep_secret(value: str) -> None:
    """From now on, `value` is left out of everything that is shown, also in capitals, percent-encoded or with backslashes.

    What has fewer than six characters could be any word, and is not.
    """
    if value in _known or len(value) < _SHORTEST_SECRET:
        return
    _known[value] = re.compile("".join(map(_spelt, value)), re.IGNORECASE)
    if len(_known) > _MOST_SECRETS:
        del _known[next(iter(_known))]


def keep_secrets_of(url: str) -> None:
    """The same for what an address holds: its password, or the name where there is none, both as they are sent, and what its query says."""
    parts = urlsplit(url)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    keep_secret(password or user)
    if user:
        keep_secret(base64.b64encode(f"{user}:{password}".encode()).decode().rstrip("="))
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        keep_secret(value or name)


def _spelt(character: str) -> str:
    encoded = "".join(f"%{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))
    plus = r"|\+" if character == " " else "|%20|\\s" if character == "+" else ""
    return rf"\\?(?:{re.escape(character)}|{encoded}{plus})"


def without_secrets(text: str) -> str:
    """A sentence as everybody may read it: known secrets, bearers, and the credentials, query and fragment of addresses are left out."""
    for pattern in tuple(_known.values()):
        text = pattern.sub(_MASK, text)
    for secret, mask in _SECRETS:
        text = secret.sub(mask, text)
    return text


def shown_url(url: str) -> str:
    """An address as everybody may read it."""
    return quoted(_QUERY.sub(r"\1…", _CREDENTIALS.sub("//…@", url[:_LOOKED_AT])))


def quoted(text: str) -> str:
    """Foreign words for use in a sentence: on one line, without secrets, and not longer than is useful."""
    plain = without_secrets(" ".join(text[:_LOOKED_AT].split()))
    return shortened(_UNFIT.sub("\N{REPLACEMENT CHARACTER}", plain), _QUOTED)


def shortened(text: str, most: int) -> str:
    """The text, cut after `most` characters where it is longer."""
    return text if len(text) <= most else text[:most] + "…"
