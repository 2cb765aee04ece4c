"""The pages and their files, as bytes. Pages are templates, put together once; nothing in them depends on who asks."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final, Literal, TypeAlias

from jinja2 import Environment, PackageLoader, StrictUndefined

__all__ = ["PageName", "asset", "page"]

PageName: TypeAlias = Literal["page", "login", "docs"]

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
    return environment.get_template(f"{name}.html").render().encode()


@cache
def asset(name: str) -> tuple[bytes, bytes] | None:
    """A file that pages need, and its media type; None if there is none of this name."""
    media_type = _KINDS.get(name.rpartition(".")[2])
    file = files("bubble.starfish").joinpath("static", name)
    return None if media_type is None or not file.is_file() else (file.read_bytes(), media_type)
