"""Addresses: of a server, of a resource. An id that cannot be one is refused here, so that it never becomes another path."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

from httpx2 import URL, InvalidURL

from bubble.protocol.errors import InvalidRequest, NotFound, route_not_found
from bubble.protocol.identifiers import check_name

__all__ = ["no_route_at", "principal_path", "server_url", "thread_path"]


def server_url(url: str) -> str:
    """The address of a server, possibly with a prefix, without a slash at its end. `InvalidRequest` for what is none."""
    if "@" in url.partition("//")[2].partition("/")[0]:
        raise InvalidRequest("The address must not hold a password; the token is an option of its own.")
    if not _is_server(url):
        raise InvalidRequest(f'"{url}" is no address of a server: use one like https://bubble.example.com.')
    return url.rstrip("/")


def _is_server(url: str) -> bool:
    if not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        URL(url).raw_host.decode("ascii").encode("idna")
    except (ValueError, InvalidURL):  # what stands in brackets, or for the port, or between two dots, is none
        return False
    return parts.scheme in ("http", "https") and bool(host) and port != 0 and not (parts.query or parts.fragment)


def no_route_at(url: str) -> NotFound:
    """What to raise where the server at this address has none of the routes that every server has: its path may be too long."""
    _, slash, too_much = urlsplit(url).path.rpartition("/")
    if not too_much:
        return route_not_found()
    return NotFound(f'There is no such route at {url}: leave "{slash}{too_much}" away from the address.')


def thread_path(thread_id: str, rest: str = "") -> str:
    """The path of a thread, or of something below it. `InvalidRequest` for what cannot be a threadId."""
    return f"/v1/threads/{quote(check_name(thread_id, path='threadId'), safe='')}{rest}"


def principal_path(principal_id: str, rest: str = "") -> str:
    """The path of a principal, or of something below it. `InvalidRequest` for what cannot be a principalId."""
    return f"/v1/principals/{quote(check_name(principal_id, path='principalId'), safe='')}{rest}"
