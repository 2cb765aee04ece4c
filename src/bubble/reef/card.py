"""An agent card, read for the one thing that matters here: where to send messages, and in which dialect.

A card of either generation may be incomplete or carry both generations' fields. The order of choice is fixed (see `choose`), and a
problem is one sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from bubble.protocol.jsontext import JSONValue
from bubble.reef.addresses import interface_url, path_segment
from bubble.reef.discretion import quoted, shown_url
from bubble.reef.failures import CardRefused

__all__ = ["Binding", "Generation", "Interface", "agent_name", "choose"]

Binding: TypeAlias = Literal["HTTP+JSON", "JSONRPC"]
Generation: TypeAlias = Literal["0.3", "1.0"]

_BINDINGS: Final[Mapping[str, Binding]] = {"HTTP+JSON": "HTTP+JSON", "JSONRPC": "JSONRPC", "JSON-RPC": "JSONRPC"}
_VERSION = re.compile(r"v?(\d+)(?:\.\d+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """Where the agent takes messages. `tenant` is empty where the card names none."""

    binding: Binding
    generation: Generation
    url: str
    tenant: str = ""

    def __str__(self) -> str:
        return f"{self.binding} of A2A {self.generation} at {shown_url(self.url)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Offer:
    """What a card says of an interface, as it says it. `member` is where; `binding` may be anything."""

    member: str
    binding: JSONValue
    url: str
    version: JSONValue
    tenant: str = ""


def choose(card: JSONValue, *, card_url: str) -> Interface:
    """The interface to use (spec 5, "Resolving the A2A agent").

    The first `supportedInterfaces` entry that is HTTP+JSON, else the first that is JSON-RPC; without any entries, of `url` with
    `preferredTransport` and then `additionalInterfaces` the first that is either; without any statement, JSON-RPC at `url`.

    Raises `CardRefused`, with the reason, for a card that does not stream or offers nothing that reef speaks.
    """
    if not isinstance(card, dict):
        raise CardRefused("The agent card is no JSON object.")
    if _member(card, "capabilities").get("streaming") is not True:
        raise CardRefused(
            "The agent card does not say that the agent streams (capabilities.streaming), which reef needs."
        )
    offers = list(_interfaces(card))
    chosen, binding = _first_of(offers, "HTTP+JSON", "JSONRPC") if offers else _first_of(list(_older_offers(card)))
    interface = Interface(
        binding=binding,
        generation=_generation(chosen.version, otherwise="1.0" if offers else "0.3"),
        url=interface_url(chosen.url, card_url=card_url, member=chosen.member),
        tenant=chosen.tenant,
    )
    _check_tenant(interface, chosen)
    return interface


def agent_name(card: JSONValue) -> str:
    """What the agent calls itself; empty where it does not."""
    name = card.get("name") if isinstance(card, dict) else None
    return quoted(name) if isinstance(name, str) else ""


def _interfaces(card: dict[str, JSONValue]) -> Iterator[_Offer]:
    for at, entry in _objects(card.get("supportedInterfaces")):
        yield _Offer(
            member=f"supportedInterfaces[{at}].url",
            binding=entry.get("protocolBinding"),
            url=_text(entry.get("url")),
            version=entry.get("protocolVersion") or card.get("protocolVersion"),
            tenant=_text(entry.get("tenant")),
        )


def _older_offers(card: dict[str, JSONValue]) -> Iterator[_Offer]:
    version = card.get("protocolVersion")
    if url := _text(card.get("url")):
        yield _Offer(member="url", binding=card.get("preferredTransport") or "JSONRPC", url=url, version=version)
    for at, entry in _objects(card.get("additionalInterfaces")):
        yield _Offer(
            member=f"additionalInterfaces[{at}].url",
            binding=entry.get("transport"),
            url=_text(entry.get("url")),
            version=version,
        )


def _first_of(offers: list[_Offer], *order: Binding) -> tuple[_Offer, Binding]:
    """The first offer that can be used: of the first binding of `order` that there is one of, or simply the first."""
    if not offers:
        raise CardRefused("The agent card names no url and no interfaces.")
    spoken = [(offer, binding) for offer in offers if (binding := _binding(offer.binding)) is not None]
    if not spoken:
        bindings = sorted({quoted(offer.binding) for offer in offers if isinstance(offer.binding, str)})
        raise CardRefused(
            f"The agent card offers {', '.join(bindings) or 'nothing'}; reef speaks HTTP+JSON and JSONRPC."
        )
    with_url = [(offer, binding) for offer, binding in spoken if offer.url]
    if not with_url:
        raise CardRefused(f"The agent card's {spoken[0][0].member} is missing or empty.")
    ordered = (each for wanted in order for each in with_url if each[1] == wanted)
    return next(ordered, with_url[0])


def _check_tenant(interface: Interface, offer: _Offer) -> None:
    # Over JSON-RPC it is a value among others.
    if interface.binding == "HTTP+JSON" and interface.tenant:
        try:
            path_segment(interface.tenant)
        except ValueError as error:
            member = offer.member.replace(".url", ".tenant")
            raise CardRefused(f"The agent card's {member} is {quoted(interface.tenant)}: {error}.") from None


def _binding(name: JSONValue) -> Binding | None:
    return _BINDINGS.get(name.strip().upper()) if isinstance(name, str) else None


def _generation(version: JSONValue, *, otherwise: Generation) -> Generation:
    match = _VERSION.fullmatch(version.strip()) if isinstance(version, str) else None
    if match is None:
        return otherwise
    return "0.3" if int(match[1][:9]) == 0 else "1.0"


def _member(card: dict[str, JSONValue], name: str) -> dict[str, JSONValue]:
    value = card.get(name)
    return value if isinstance(value, dict) else {}


def _objects(value: JSONValue) -> Iterator[tuple[int, dict[str, JSONValue]]]:
    """The objects of a list, with their places."""
    for at, entry in enumerate(value if isinstance(value, list) else []):
        if isinstance(entry, dict):
            yield at, entry


def _text(value: JSONValue) -> str:
    return value.strip() if isinstance(value, str) else ""
