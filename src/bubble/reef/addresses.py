"""URLs as agent cards write them, put right; and which hosts a card may send reef to."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from typing import Final
from urllib.parse import urljoin, urlsplit, urlunsplit

from bubble.reef.failures import CardRefused

__all__ = ["card_urls", "interface_url", "is_private_address", "is_private_name", "origin"]

_WELL_KNOWN: Final = "/.well-known/agent-card.json"
_CARD: Final = "agent-card.json"
_OLDER_CARD: Final = "agent.json"
# What some cards end their interface's url with, though it is the url of something else.
_SURPLUS: Final = (_WELL_KNOWN, "/.well-known/agent.json", "/v1/message:stream", "/message:stream")
_ANYWHERE: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - what cards name, not what is bound
_PORTS: Final = {"http": 80, "https": 443}


def card_urls(url: str) -> Sequence[str]:
    """Where the card may be, in the order of trying: the second is the older name, for a 404 on the first.

    `ValueError` where `url` is no http(s) URL.
    """
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError("it must be an http or https URL")
    path = parts.path
    if not path.endswith((f"/{_CARD}", f"/{_OLDER_CARD}")):
        path = path.rstrip("/") + _WELL_KNOWN
    paths = [path]
    if path.endswith(_CARD):
        paths.append(path.removesuffix(_CARD) + _OLDER_CARD)
    return [urlunsplit(parts._replace(path=path, fragment="")) for path in paths]


def interface_url(url: str, *, card_url: str) -> str:
    """The url of an interface, absolute: relative ones and those on `0.0.0.0` are understood as on the card's host.

    Raises `CardRefused` for what is no http(s) URL.
    """
    full = urlsplit(urljoin(card_url, url))
    if full.scheme not in _PORTS or not full.hostname:
        raise CardRefused(f"The agent card names the url {url!r}, which is no http or https URL.")
    if full.hostname in _ANYWHERE:
        full = full._replace(netloc=_with_host_of(card_url, port=_port(full.netloc)))
    path = full.path
    for surplus in _SURPLUS:
        path = path.removesuffix(surplus)
    return urlunsplit(full._replace(path=path, fragment=""))


def _port(netloc: str) -> int | None:
    try:
        return urlsplit(f"//{netloc}").port
    except ValueError:
        raise CardRefused(f"The agent card names the address {netloc!r}, whose port is no port.") from None


def _with_host_of(card_url: str, *, port: int | None) -> str:
    host = urlsplit(card_url).hostname or ""
    bracketed = f"[{host}]" if ":" in host else host
    return bracketed if port is None else f"{bracketed}:{port}"


def origin(url: str) -> str:
    """`scheme://host:port`, lower case and with the port written out; two URLs of one origin give the same."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}:{parts.port or _PORTS.get(parts.scheme, 0)}"


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
    """Whether a literal address is loopback, link-local, private, or otherwise none of the public network; a name is not."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return not (mapped or parsed).is_global
