"""Files as chunks of the AI SDK: by their URL, or whole, as a `data:` URL."""

from __future__ import annotations

import asyncio
import base64
import mimetypes
import re
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from bubble.client.sizes import Sizes
from bubble.protocol.errors import InvalidRequest
from bubble.protocol.jsontext import JSONValue

__all__ = ["FileSource", "file_chunk"]

FileSource: TypeAlias = "str | bytes | PathLike[str]"
"""An absolute URL, the bytes themselves, or a path to read. A string is never a path: what a stranger typed opens no file here."""

_UNKNOWN = "application/octet-stream"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:")  # two letters at least: C: is a drive
_DATA_URL = re.compile(r"data:([^;,]*)[^,]*,", re.IGNORECASE)


async def file_chunk(
    source: FileSource, *, media_type: str | None = None, filename: str | None = None, sizes: Sizes
) -> dict[str, JSONValue]:
    """The `file` chunk. What is not given is told from the path, the name or the URL.

    Raises `PayloadTooLarge`, `OSError` from reading, and `InvalidRequest` for what is no URL or where no media type can be told.
    """
    if isinstance(source, str):
        return _chunk(_url(source), media_type or _told_by_url(source) or _told_by_name(filename), filename)
    if isinstance(source, bytes):
        await sizes.check_file(len(source), name=filename or "The file")
        return _chunk_of_data(source, media_type, filename)
    if not isinstance(source, PathLike):
        raise InvalidRequest("`source` must be a URL as a string, bytes, or a path.")
    path = Path(source)
    name = filename or path.name
    await sizes.check_file((await asyncio.to_thread(path.stat)).st_size, name=name)
    data = await asyncio.to_thread(path.read_bytes)
    await sizes.check_file(len(data), name=name)
    return _chunk_of_data(data, media_type, name)


def _chunk_of_data(data: bytes, media_type: str | None, filename: str | None) -> dict[str, JSONValue]:
    known = media_type or _told_by_name(filename) or (None if filename is None else _UNKNOWN)
    url = f"data:{known};base64,{base64.b64encode(data).decode('ascii')}"
    return _chunk(url, known, filename)


def _chunk(url: str, media_type: str | None, filename: str | None) -> dict[str, JSONValue]:
    if not media_type:
        raise InvalidRequest("`media_type` must be given: it cannot be told from a name.")
    chunk: dict[str, JSONValue] = {"type": "file", "url": url, "mediaType": media_type}
    return chunk if filename is None else {**chunk, "filename": filename}


def _url(text: str) -> str:
    if not _URL.match(text):
        raise InvalidRequest(f'"{text[:80]}" is no URL. A file of this machine is given as a `pathlib.Path`.')
    return text


def _told_by_url(url: str) -> str | None:
    if (data := _DATA_URL.match(url)) is not None:
        return data[1] or "text/plain"
    return _told_by_name(PurePosixPath(unquote(urlsplit(url).path)).name)


def _told_by_name(name: str | None) -> str | None:
    return None if name is None else mimetypes.guess_type(name)[0]
