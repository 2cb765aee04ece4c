"""The bundled pages: starfish, the login, the reference. No script or style from elsewhere, none inline."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from bubble.protocol.errors import NotFound
from bubble.server.answers import Answer, Header
from bubble.server.calls import Call
from bubble.server.operations import Operations
from bubble.server.routes.shapes import Query
from bubble.starfish.site import PageName, asset, page, tag_of
from bubble.starfish.site import version as current_version

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
]
_LOOK_EACH_TIME: Header = (b"cache-control", b"no-cache")
_KEEP: Header = (b"cache-control", b"public, max-age=31536000, immutable")
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


def _page(name: PageName, call: Call) -> Answer[bytes]:
    content = page(name)
    tag = tag_of(content)
    headers = [*PAGE_HEADERS, _LOOK_EACH_TIME, (b"etag", tag.encode("ascii"))]
    known = {each.strip().removeprefix("W/") for line in call.headers.all(b"if-none-match") for each in line.split(",")}
    if known & {tag, "*"}:
        return Answer(status=304, content=b"", headers=headers)
    return Answer(content=content, headers=headers)


@OPERATIONS.add(
    "GET", "/", summary="Take part in threads", tag="Pages", access="none", statuses=(304,), media_type=_HTML
)
async def front_page(call: Call, query: Place) -> Answer[bytes]:  # noqa: ARG001 - the page's script reads it
    """The page for people. It asks the routes above with the browser's session, and goes to the login if there is none."""
    return _page("page", call)


@OPERATIONS.add("GET", "/login", summary="Log in", tag="Pages", access="none", statuses=(304,), media_type=_HTML)
async def login_page(call: Call, query: Login) -> Answer[bytes]:  # noqa: ARG001 - the script reads the code
    """Logs a browser in with the code of a login link, or with a token."""
    return _page("login", call)


@OPERATIONS.add(
    "GET", "/docs", summary="Browse the reference", tag="Pages", access="none", statuses=(304,), media_type=_HTML
)
async def docs_page(call: Call) -> Answer[bytes]:
    """`/openapi.json` to read."""
    return _page("docs", call)


@OPERATIONS.add(
    "GET",
    "/assets/{version}/{file}",
    summary="What the pages need",
    tag="Pages",
    access="none",
    errors=("not_found",),
    media_type="*/*",
)
async def get_asset(call: Call, version: str, file: str) -> Answer[bytes]:  # noqa: ARG001 - the same for everybody
    """Scripts and styles of the bundled pages, which name the version that they belong to. Browsers keep them."""
    found = asset(file) if version == current_version() else None
    if found is None:
        raise NotFound("There is no such file.")
    content, media_type = found
    return Answer(content=content, headers=[*PAGE_HEADERS, _KEEP], media_type=media_type)
