"""The bundled pages: starfish, the login, the reference. No script or style from elsewhere, none inline."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from bubble.protocol.errors import NotFound
from bubble.server.answers import Answer, Header
from bubble.server.calls import Call
from bubble.server.operations import Operations
from bubble.server.routes.shapes import Query
from bubble.starfish.site import PageName, asset, page

__all__ = ["OPERATIONS", "PAGE_HEADERS"]

OPERATIONS = Operations()

# Only one function of the page may make HTML, and it takes only what the server has sanitised.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types bubble"
)
PAGE_HEADERS: list[Header] = [
    (b"content-security-policy", _POLICY.encode("ascii")),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-cache"),
]
_HTML = "text/html; charset=utf-8"

Name = Annotated[str, Meta(max_length=256)]


class Place(Query, frozen=True, kw_only=True):
    """What to show. The server takes no notice of it: the page's script does."""

    thread: Name | None = None
    view: Name | None = None


class Login(Query, frozen=True, kw_only=True):
    """The code of a login link, which the page's script posts, and the thread to go to then."""

    code: Annotated[str, Meta(max_length=16 * 1024)] | None = None
    thread: Name | None = None


def _page(name: PageName) -> Answer[bytes]:
    return Answer(content=page(name), headers=PAGE_HEADERS)


@OPERATIONS.add("GET", "/", summary="Take part in threads", tag="Pages", access="none", media_type=_HTML)
async def front_page(call: Call, query: Place) -> Answer[bytes]:  # noqa: ARG001 - the same for everybody
    """The page for people. It asks the routes above with the browser's session, and goes to the login if there is none."""
    return _page("page")


@OPERATIONS.add("GET", "/login", summary="Log in", tag="Pages", access="none", media_type=_HTML)
async def login_page(call: Call, query: Login) -> Answer[bytes]:  # noqa: ARG001 - the script reads the code
    """Logs a browser in with the code of a login link, or with a token."""
    return _page("login")


@OPERATIONS.add("GET", "/docs", summary="Browse the reference", tag="Pages", access="none", media_type=_HTML)
async def docs_page(call: Call) -> Answer[bytes]:  # noqa: ARG001 - the same for everybody
    """`/openapi.json` to read."""
    return _page("docs")


@OPERATIONS.add(
    "GET",
    "/assets/{file}",
    summary="What the pages need",
    tag="Pages",
    access="none",
    errors=("not_found",),
    media_type="*/*",
)
async def get_asset(call: Call, file: str) -> Answer[bytes]:  # noqa: ARG001 - the same for everybody
    """Scripts and styles of the bundled pages."""
    found = asset(file)
    if found is None:
        raise NotFound("There is no such file.")
    content, media_type = found
    return Answer(content=content, headers=PAGE_HEADERS, media_type=media_type)
