"""URLs as agent cards write them, put right; and which hosts a card may send reef to."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import SplitResult, quote, urljoin, urlsplit, urlunsplit

from httpx2 import URL, InvalidURL

from bubble.reef.discretion import shown_url
from bubble.reef.failures import CardRefused

__all__ = [
    "absolute",
    "below",
    "card_urls",
    "interface_url",
    "is_private_address",
    "is_private_name",
    "origin",
    "path_segment",
]

_WELL_KNOWN: Final = "/.well-known/agent-card.json"
_CARD: Final = "agent-card.json"
_OLDER_CARD: Final = "agent.json"
# What some cards end their interface's url with, though it is the url of something else.
_SURPLUS: Final = (_WELL_KNOWN, "/.well-known/agent.json", "/v1/message:stream", "/message:stream")
_ANYWHERE: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - what cards name, not what is bound
_PORTS: Final = {"http": 80, "https": 443}
_LONGEST_SEGMENT: Final = 2_000
# RFC 4291: of IPv6 only this is handed out to the public; neither IPv4 behind `::` nor site-local addresses are in it.
_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
# RFC 6052: a gateway to IPv4, whose address stands at the end.
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
# Tunnels to nowhere that can be known (Teredo), and documentation, which older versions of Python take for public.
_NOT_PUBLIC: Final = (ipaddress.IPv6Network("2001::/32"), ipaddress.IPv6Network("3fff::/20"))


def _split(url: str) -> SplitResult:
    """The parts of a URL that can be called. `ValueError`, which says what it must be, for any other."""
    if any(character.isspace() or not character.isprintable() for character in url):
        raise ValueError("it must not hold spaces or control characters")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("its host and port must be such as can be called") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError("it must be an http or https URL")
    try:
        URL(url).raw_host.decode("ascii").encode("idna")
    except (InvalidURL, UnicodeError):  # labels too long, brackets in the wrong place, …
        raise ValueError("its host must be such as can be called") from None
    if port == 0:
        raise ValueError("its port must be from 1 to 65535")
    return parts


def absolute(url: str, *, base: str) -> str:
    """The URL that `url` is where `base` is. `ValueError`, which says what it must be, where it cannot be called."""
    try:
        joined = urljoin(base, url)
    except ValueError:
        joined = url
    _split(joined)
    return joined


def card_urls(url: str) -> Sequence[str]:
    """Where the card may be, in the order of trying: the second is the older name, for a 404 on the first.

    `ValueError` where `url` is no http(s) URL.
    """
    parts = _split(url)
    path = parts.path
    if not path.endswith((f"/{_CARD}", f"/{_OLDER_CARD}")):
        path = path.rstrip("/") + _WELL_KNOWN
    paths = [path]
    if path.endswith(_CARD):
        paths.append(path.removesuffix(_CARD) + _OLDER_CARD)
    return [urlunsplit(parts._replace(path=path, fragment="")) for path in paths]


def interface_url(url: str, *, card_url: str, member: str = "url") -> str:
    """The url of an interface, absolute: relative ones and those on `0.0.0.0` are understood as on the card's host. A query is kept.

    `member` is where the card has it. Raises `CardRefused`, naming that, for what is no http(s) URL.
    """
    try:
        full = urlsplit(absolute(url, base=card_url))
    except ValueError as error:
        raise CardRefused(f"The agent card's {member} is {shown_url(url)}, which cannot be called: {error}.") from None
    if full.hostname in _ANYWHERE:
        full = full._replace(netloc=_with_host_of(card_url, port=full.port))
    path = full.path
    for surplus in _SURPLUS:
        path = path.removesuffix(surplus)
    return urlunsplit(full._replace(path=path, fragment=""))


def _with_host_of(card_url: str, *, port: int | None) -> str:
    host = _bracketed(urlsplit(card_url).hostname or "")
    return host if port is None else f"{host}:{port}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def below(url: str, path: str) -> str:
    """The URL of what is at `path` below `url`; the query of `url` stays behind it."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") + path))


def path_segment(text: str) -> str:
    """`text` as one segment of a path. `ValueError` for what cannot be one: nothing, `.` and `..`, half a character, what is very long."""
    if text in {"", ".", ".."} or len(text) > _LONGEST_SEGMENT:
        raise ValueError("it can be no part of an address")
    try:
        return quote(text, safe="")
    except UnicodeEncodeError:
        raise ValueError("it can be no part of an address") from None


def origin(url: str) -> str:
    """`scheme://host:port`, lower case and with the port written out; two URLs of one origin give the same."""
    parts = urlsplit(url)
    host = _bracketed(parts.hostname or "")
    return f"{parts.scheme}://{host}:{parts.port or _PORTS.get(parts.scheme, 0)}"


def is_private_name(host: str) -> bool:
    """Whether the name or literal address `host` stands for this machine or a private network, without asking anybody."""
    name = host.rstrip(".").lower()
    if name in {"localhost", "ip6-localhost", "ip6-loopback"} or name.endswith(".localhost"):
        return True
    return is_private_address(_literal(name))


def _literal(name: str) -> str:
    # `127.1`, `0x7f.0.0.1` and `2130706433` are addresses too, to whoever resolves them.
    try:
        return socket.inet_ntoa(socket.inet_aton(name))
    except OSError:
        return name


def is_private_address(address: str) -> bool:
    """Whether a literal address is loopback, link-local, private, or otherwise none of the public network; a name is not.

    Of an address that leads to one of IPv4, as gateways and tunnels have them, that one decides.
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv4Address):
        return not parsed.is_global or parsed.is_multicast
    if any(parsed in network for network in _NOT_PUBLIC):
        return True
    within = next(_within(parsed), None)
    if within is not None:
        return is_private_address(str(within))
    return parsed not in _UNICAST or not parsed.is_global


def _within(address: ipaddress.IPv6Address) -> Iterator[ipaddress.IPv4Address]:
    """The IPv4 address that an IPv6 address leads to."""
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if address in _NAT64:
        yield ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
