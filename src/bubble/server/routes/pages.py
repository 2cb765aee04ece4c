"""The bundled pages: a front door, the login, the reference. No script or style from elsewhere, none inline."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Annotated

from msgspec import Meta

from bubble.protocol.errors import NotFound
from bubble.server.answers import Answer, Header
from bubble.server.calls import Call
from bubble.server.operations import Operations
from bubble.server.routes.shapes import Query

__all__ = ["OPERATIONS", "PAGE_HEADERS"]

OPERATIONS = Operations()

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
PAGE_HEADERS: list[Header] = [
    (b"content-security-policy", _POLICY.encode("ascii")),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-cache"),
]
_HTML = "text/html; charset=utf-8"
_TYPES = {"css": b"text/css; charset=utf-8", "js": b"text/javascript; charset=utf-8", "svg": b"image/svg+xml"}


class Login(Query, frozen=True, kw_only=True):
    """The code of a login link. Opening the page does not use it up: the page posts it."""

    code: Annotated[str, Meta(max_length=16 * 1024)] | None = None


@cache
def _bundled(name: str) -> bytes | None:
    file = files("bubble.server").joinpath("static", name)
    return file.read_bytes() if file.is_file() else None


def _page(name: str) -> Answer[bytes]:
    return Answer(content=_bundled(name) or b"", headers=PAGE_HEADERS)


@OPERATIONS.add("GET", "/", summary="Front door", tag="Pages", access="none", media_type=_HTML)
async def front_page(call: Call) -> Answer[bytes]:  # noqa: ARG001 - the same for everybody
    """Where to go from here."""
    return _page("index.html")


@OPERATIONS.add("GET", "/login", summary="Log in", tag="Pages", access="none", media_type=_HTML)
async def login_page(call: Call, query: Login) -> Answer[bytes]:  # noqa: ARG001 - the script reads the code
    """Logs a browser in with the code of a login link, or with a token."""
    return _page("login.html")


@OPERATIONS.add("GET", "/docs", summary="Browse the reference", tag="Pages", access="none", media_type=_HTML)
async def docs_page(call: Call) -> Answer[bytes]:  # noqa: ARG001 - the same for everybody
    """`/openapi.json` to read."""
    return _page("docs.html")


@OPERATIONS.add(
    "GET",
    "/assets/{file}",
    summary="What the pages need",
    tag="Pages",
    access="none",
    errors=("not_found",),
    media_type="*/*",
)
async def asset(call: Call, file: str) -> Answer[bytes]:  # noqa: ARG001 - the same for everybody
    """Scripts and styles of the bundled pages."""
    media_type = _TYPES.get(file.rpartition(".")[2])
    content = _bundled(file) if media_type is not None else None
    if media_type is None or content is None:
        raise NotFound("There is no such file.")
    return Answer(content=content, headers=PAGE_HEADERS, media_type=media_type)
