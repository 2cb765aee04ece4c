"""Files, from the thread to the agent and back. Nothing is fetched, in neither direction."""

from __future__ import annotations

import base64
import mimetypes
import re
from typing import Final
from urllib.parse import unquote_to_bytes

from bubble.protocol.jsontext import JSONValue
from bubble.reef.events import FilePart
from bubble.reef.sayings import Event, FileShown

__all__ = ["file_part", "shown"]

_WEB: Final = frozenset({"http", "https"})
# What a data: URL can say before its comma.
_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(?:;\s*[\w.+-]+=[\w.+\-\"]+)*", re.ASCII)
_UNKNOWN: Final = "application/octet-stream"


def file_part(*, url: str, media_type: str | None, filename: str | None) -> FilePart | None:
    """A file of the thread for the agent: `data:` becomes its bytes, http(s) stays a URL; None for any other scheme.

    Nothing is fetched here. `ValueError` for a `data:` URL that is none.
    """
    scheme = _scheme(url)
    if scheme in _WEB:
        return FilePart(url=url, media_type=media_type, filename=filename)
    if scheme != "data":
        return None
    about, comma, content = url[len("data:") :].partition(",")
    if not comma:
        raise ValueError("a data: URL needs a comma")
    is_base64 = about.endswith(";base64")
    raw = unquote_to_bytes(content)
    encoded = base64.b64encode(_decoded(raw.decode("ascii")) if is_base64 else raw).decode("ascii")
    return FilePart(base64=encoded, media_type=media_type or about.partition(";")[0] or "text/plain", filename=filename)


def shown(part: FilePart) -> FileShown | Event:
    """A file of the agent's for the thread. What has neither content nor a URL that a reader can use is passed on as data."""
    media_type = _media_type(part)
    if part.base64 is not None:
        try:
            content = base64.b64encode(_decoded(part.base64)).decode("ascii")
        except ValueError:
            return _as_data(part)
        return FileShown(url=f"data:{media_type};base64,{content}", media_type=media_type, filename=part.filename)
    url = part.url or ""
    if _scheme(url) in {*_WEB, "data"}:
        return FileShown(url=url, media_type=media_type, filename=part.filename)
    return _as_data(part)


def _media_type(part: FilePart) -> str:
    if part.media_type and _MEDIA_TYPE.fullmatch(part.media_type):
        return part.media_type
    return mimetypes.guess_type(part.filename or "")[0] or _UNKNOWN


def _scheme(url: str) -> str:
    return url.partition(":")[0].lower()


def _as_data(part: FilePart) -> Event:
    members: dict[str, JSONValue] = {
        "url": part.url,
        "raw": part.base64,
        "mediaType": part.media_type,
        "filename": part.filename,
    }
    return Event(name="data", data={name: value for name, value in members.items() if value is not None})


def _decoded(text: str) -> bytes:
    # The JSON of protobuf allows the alphabet for URLs too, and no padding.
    plain = "".join(text.split()).replace("-", "+").replace("_", "/").rstrip("=")
    return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
