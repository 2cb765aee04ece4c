"""The pages and their files, as bytes. Pages are templates, put together once; nothing in them depends on who asks.

The files' addresses hold a digest of all of them: what a browser has under one never changes. Modules find each other beside themselves.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import Final, Literal, TypeAlias

from jinja2 import Environment, PackageLoader, StrictUndefined

__all__ = ["PageName", "asset", "page", "tag_of", "version"]

PageName: TypeAlias = Literal["page", "login", "docs"]

_FILES: Final = files("bubble.starfish").joinpath("static")
_KINDS: Final = {"css": b"text/css; charset=utf-8", "js": b"text/javascript; charset=utf-8", "svg": b"image/svg+xml"}


@cache
def page(name: PageName) -> bytes:
    """A page's HTML."""
    environment = Environment(
        loader=PackageLoader("bubble.starfish"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(f"{name}.html").render(assets=f"assets/{version()}").encode()


@cache
def version() -> str:
    """What all files together are, as it stands in their addresses."""
    digest = hashlib.sha256()
    for file in sorted(_FILES.iterdir(), key=lambda each: each.name):
        content = file.read_bytes()
        digest.update(b"%s\0%d\0%s" % (file.name.encode(), len(content), content))
    return digest.hexdigest()[:16]


def tag_of(content: bytes) -> str:
    """An entity tag: the same for the same content (RFC 9110, section 8.8.3)."""
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


@cache
def asset(name: str) -> tuple[bytes, bytes] | None:
    """A file that pages need, and its media type; None if there is none of this name."""
    media_type = _KINDS.get(name.rpartition(".")[2])
    file = _FILES.joinpath(name)
    return None if media_type is None or not file.is_file() else (file.read_bytes(), media_type)
