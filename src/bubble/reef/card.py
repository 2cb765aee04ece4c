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
from bubble.reef.addresses import interface_url
from bubble.reef.failures import CardRefused, quoted

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
        return f"{self.binding} of A2A {self.generation} at {self.url}"


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
    entries = _objects(card.get("supportedInterfaces"))
    chosen = _of_interfaces(entries, card) if entries else _of_older_card(card)
    return Interface(
        binding=chosen.binding,
        generation=chosen.generation,
        url=interface_url(chosen.url, card_url=card_url),
        tenant=chosen.tenant,
    )


def agent_name(card: JSONValue) -> str:
    """What the agent calls itself; empty where it does not."""
    name = card.get("name") if isinstance(card, dict) else None
    return quoted(name) if isinstance(name, str) else ""


def _of_interfaces(entries: list[dict[str, JSONValue]], card: dict[str, JSONValue]) -> Interface:
    spoken = [
        (binding, entry) for entry in entries if (binding := _binding(entry.get("protocolBinding"))) and _url(entry)
    ]
    for wanted in ("HTTP+JSON", "JSONRPC"):
        for binding, entry in spoken:
            if binding == wanted:
                version = entry.get("protocolVersion") or card.get("protocolVersion")
                return Interface(
                    binding=binding,
                    generation=_generation(version, otherwise="1.0"),
                    url=_url(entry),
                    tenant=_text(entry.get("tenant")),
                )
    raise _nothing_spoken(entry.get("protocolBinding") for entry in entries)


def _of_older_card(card: dict[str, JSONValue]) -> Interface:
    generation = _generation(card.get("protocolVersion"), otherwise="0.3")
    offers = list(_older_offers(card))
    for transport, url in offers:
        if (binding := _binding(transport)) and url:
            return Interface(binding=binding, generation=generation, url=url)
    if not offers:
        raise CardRefused("The agent card names no url and no interfaces.")
    raise _nothing_spoken(transport for transport, _ in offers)


def _older_offers(card: dict[str, JSONValue]) -> Iterator[tuple[JSONValue, str]]:
    additional = _objects(card.get("additionalInterfaces"))
    if url := _text(card.get("url")):
        yield card.get("preferredTransport") or "JSONRPC", url
    for entry in additional:
        yield entry.get("transport"), _url(entry)


def _nothing_spoken(bindings: Iterator[JSONValue]) -> CardRefused:
    named = ", ".join(sorted({quoted(binding) for binding in bindings if isinstance(binding, str)})) or "nothing"
    return CardRefused(f"The agent card offers {named}; reef speaks HTTP+JSON and JSONRPC.")


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


def _objects(value: JSONValue) -> list[dict[str, JSONValue]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _url(entry: dict[str, JSONValue]) -> str:
    return _text(entry.get("url"))


def _text(value: JSONValue) -> str:
    return value.strip() if isinstance(value, str) else ""
