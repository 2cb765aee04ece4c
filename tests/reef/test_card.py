"""Which interface of a card is used, and in which dialect."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from bubble.protocol.jsontext import JSONValue
from bubble.reef.card import Interface, agent_name, choose
from bubble.reef.failures import CardRefused
from tests.reef.recordings import CARDS

URL = "http://127.0.0.1:8000/.well-known/agent-card.json"
Members = Mapping[str, JSONValue]


def card(**members: JSONValue) -> JSONValue:
    return {"name": "A", "capabilities": {"streaming": True}, **members}


def entry(binding: str, path: str = "", **members: JSONValue) -> JSONValue:
    return {"protocolBinding": binding, "url": f"http://127.0.0.1:8000{path}", **members}


def chosen(written: JSONValue) -> tuple[str, str, str]:
    interface = choose(written, card_url=URL)
    return interface.binding, interface.generation, interface.url


@pytest.mark.requirement("RF-12", "RF-50")
@pytest.mark.parametrize(
    ("name", "binding", "generation", "url"),
    [
        ("adk-0.3", "JSONRPC", "0.3", "http://127.0.0.1:8121"),
        ("adk-1.0", "JSONRPC", "1.0", "http://127.0.0.1:8111"),
        ("dockerlike", "JSONRPC", "0.3", "http://127.0.0.1:8131/invoke"),
        ("v03", "JSONRPC", "0.3", "http://127.0.0.1:8103/rpc"),
        ("v1-all", "HTTP+JSON", "1.0", "http://127.0.0.1:8101/rest"),
        ("v1-jsonrpc-only", "JSONRPC", "1.0", "http://127.0.0.1:8101/rpc"),
        ("v1-rest-only", "HTTP+JSON", "1.0", "http://127.0.0.1:8101/rest"),
        ("v1-rest-tenant", "HTTP+JSON", "1.0", "http://127.0.0.1:8101/rest"),
    ],
)
def test_the_recorded_cards_lead_to_the_interface_that_their_agents_served(
    name: str, binding: str, generation: str, url: str
) -> None:
    assert chosen(CARDS[name]) == (binding, generation, url)


@pytest.mark.requirement("RF-11")
@pytest.mark.parametrize(
    "written",
    [
        CARDS["v1-not-streaming"],
        card(capabilities={}, url="http://a"),
        card(capabilities={"streaming": "true"}, url="http://a"),
        card(capabilities=None, url="http://a"),
        [],
    ],
)
def test_a_card_that_does_not_say_that_the_agent_streams_is_refused(written: JSONValue) -> None:
    with pytest.raises(CardRefused):
        choose(written, card_url=URL)


@pytest.mark.requirement("RF-12", "RF-50")
def test_the_first_http_entry_is_taken_before_any_other_binding() -> None:
    entries = [entry("GRPC"), entry("JSONRPC", "/rpc"), entry("HTTP+JSON", "/one"), entry("HTTP+JSON", "/two")]
    assert chosen(card(supportedInterfaces=entries)) == ("HTTP+JSON", "1.0", "http://127.0.0.1:8000/one")


@pytest.mark.requirement("RF-50")
def test_without_an_http_entry_the_first_json_rpc_entry_is_taken() -> None:
    entries = [entry("GRPC"), entry("JSONRPC", "/one"), entry("JSONRPC", "/two")]
    assert chosen(card(supportedInterfaces=entries)) == ("JSONRPC", "1.0", "http://127.0.0.1:8000/one")


@pytest.mark.requirement("RF-13")
def test_without_interfaces_it_is_json_rpc_at_the_top_level_url() -> None:
    assert chosen(card(url="http://127.0.0.1:8000/rpc")) == ("JSONRPC", "0.3", "http://127.0.0.1:8000/rpc")
    assert chosen(card(url="http://127.0.0.1:8000/rpc", supportedInterfaces=[]))[0] == "JSONRPC"


@pytest.mark.requirement("RF-50")
@pytest.mark.parametrize(
    ("members", "binding", "path"),
    [
        ({"preferredTransport": "HTTP+JSON"}, "HTTP+JSON", "/main"),
        ({"preferredTransport": "JSONRPC"}, "JSONRPC", "/main"),
        ({"preferredTransport": "GRPC"}, "HTTP+JSON", "/second"),
        ({"additionalInterfaces": [{"transport": "HTTP+JSON", "url": "/second"}]}, "JSONRPC", "/main"),
    ],
)
def test_an_older_card_is_walked_from_its_url_to_its_additional_interfaces(
    members: Members, binding: str, path: str
) -> None:
    additional: JSONValue = [
        {"transport": "GRPC", "url": "http://127.0.0.1:8000/first"},
        {"transport": "HTTP+JSON", "url": "http://127.0.0.1:8000/second"},
        {"transport": "JSONRPC", "url": "http://127.0.0.1:8000/third"},
    ]
    written = card(**{"url": "http://127.0.0.1:8000/main", "additionalInterfaces": additional, **members})
    assert chosen(written) == (binding, "0.3", f"http://127.0.0.1:8000{path}")


@pytest.mark.requirement("RF-51")
@pytest.mark.parametrize(
    ("version", "generation"),
    [
        ("1.0", "1.0"),
        ("1.0.0", "1.0"),
        ("v1", "1.0"),
        ("2.0", "1.0"),
        ("0.3", "0.3"),
        ("0.3.0", "0.3"),
        ("0.2.6", "0.3"),
    ],
)
def test_the_version_of_the_entry_picks_the_dialect(version: str, generation: str) -> None:
    assert chosen(card(supportedInterfaces=[entry("JSONRPC", protocolVersion=version)]))[1] == generation


@pytest.mark.requirement("RF-51")
@pytest.mark.parametrize("version", [None, "", "latest", 1])
def test_without_a_version_that_can_be_read_the_shape_of_the_card_decides(version: JSONValue) -> None:
    assert chosen(card(supportedInterfaces=[entry("JSONRPC", protocolVersion=version)]))[1] == "1.0"
    assert chosen(card(url="http://127.0.0.1:8000", protocolVersion=version))[1] == "0.3"


@pytest.mark.requirement("RF-51")
def test_an_entry_without_a_version_has_that_of_its_card() -> None:
    assert chosen(card(protocolVersion="0.3.0", supportedInterfaces=[entry("JSONRPC")]))[1] == "0.3"


def test_a_card_that_offers_nothing_that_reef_speaks_is_refused_with_what_it_offers() -> None:
    with pytest.raises(CardRefused, match="offers GRPC"):
        choose(card(supportedInterfaces=[entry("GRPC")]), card_url=URL)
    with pytest.raises(CardRefused, match="names no url"):
        choose(card(), card_url=URL)


@pytest.mark.parametrize(
    ("members", "named"),
    [
        ({"url": "http://h:99999"}, "url is http://h:99999, which cannot be called"),
        ({"supportedInterfaces": [entry("GRPC"), {"protocolBinding": "JSONRPC", "url": "http://[oops"}]}, "supportedInterfaces[1].url is"),
        ({"supportedInterfaces": [{"protocolBinding": "JSONRPC", "url": " "}]}, "supportedInterfaces[0].url is missing or empty"),
        ({"supportedInterfaces": [{"protocolBinding": "HTTP+JSON", "url": 7}]}, "supportedInterfaces[0].url is missing or empty"),
        ({"additionalInterfaces": [7, {"transport": "JSONRPC", "url": "http://a b"}]}, "additionalInterfaces[1].url is"),
        ({"supportedInterfaces": [entry("HTTP+JSON", tenant="..")]}, "supportedInterfaces[0].tenant is ..: it can be no part"),
        ({"supportedInterfaces": [entry("HTTP+JSON", tenant="\ud800")]}, "supportedInterfaces[0].tenant is"),
    ],
)  # fmt: skip
def test_what_cannot_be_called_is_refused_by_the_name_of_its_member(members: Members, named: str) -> None:
    with pytest.raises(CardRefused) as raised:
        choose(card(**members), card_url=URL)
    assert f"The agent card's {named}" in raised.value.message
    raised.value.message.encode()


def test_an_interface_is_shown_without_what_opens_it() -> None:
    shown = str(choose(card(url="/rpc?key=S3CR3T"), card_url="http://user:S3CR3T@h/agent-card.json"))
    assert shown == "JSONRPC of A2A 0.3 at http://…@h/rpc?…"


def test_the_tenant_of_an_entry_is_kept() -> None:
    assert choose(CARDS["v1-rest-tenant"], card_url=URL) == Interface(
        binding="HTTP+JSON", generation="1.0", url="http://127.0.0.1:8101/rest", tenant="acme"
    )


def test_a_name_is_shown_on_one_line_and_no_name_is_none() -> None:
    assert agent_name({"name": "My\n agent"}) == "My agent"
    assert agent_name({"name": 7}) == agent_name(None) == ""
