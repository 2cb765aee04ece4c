"""URLs of cards, put right, and hosts that a card may not name."""

from __future__ import annotations

import pytest

from bubble.reef.addresses import card_urls, interface_url, is_private_name, origin
from bubble.reef.failures import CardRefused

CARD = "https://agents.example:8443/team/.well-known/agent-card.json"


@pytest.mark.requirement("RF-10", "RF-53")
@pytest.mark.parametrize(
    ("given", "tried"),
    [
        ("http://a", ["http://a/.well-known/agent-card.json", "http://a/.well-known/agent.json"]),
        ("http://a/x/", ["http://a/x/.well-known/agent-card.json", "http://a/x/.well-known/agent.json"]),
        ("http://a/x/agent-card.json", ["http://a/x/agent-card.json", "http://a/x/agent.json"]),
        ("http://a/.well-known/agent.json", ["http://a/.well-known/agent.json"]),
        ("http://a?k=1", ["http://a/.well-known/agent-card.json?k=1", "http://a/.well-known/agent.json?k=1"]),
    ],
)
def test_the_well_known_path_is_added_where_it_is_missing(given: str, tried: list[str]) -> None:
    assert list(card_urls(given)) == tried


@pytest.mark.parametrize("given", ["", "agent", "ftp://a/agent-card.json", "http://"])
def test_what_is_no_web_address_is_no_card_url(given: str) -> None:
    with pytest.raises(ValueError, match="http"):
        card_urls(given)


@pytest.mark.requirement("RF-52")
@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("https://other.example/rpc", "https://other.example/rpc"),
        ("https://other.example/rpc/", "https://other.example/rpc/"),
        ("/rpc", "https://agents.example:8443/rpc"),
        ("../rpc", "https://agents.example:8443/team/rpc"),
        ("http://0.0.0.0:9000/rpc", "http://agents.example:9000/rpc"),
        ("http://[::]:9000/rpc", "http://agents.example:9000/rpc"),
        ("https://a.example/.well-known/agent-card.json", "https://a.example"),
        ("https://a.example/base/v1/message:stream", "https://a.example/base"),
        ("https://a.example/base/message:stream", "https://a.example/base"),
    ],
)
def test_an_interface_url_is_understood_as_it_was_meant(written: str, meant: str) -> None:
    assert interface_url(written, card_url=CARD) == meant


@pytest.mark.parametrize("written", ["grpc://a:50051", "mailto:me", "http://0.0.0.0:port"])
def test_an_interface_url_that_cannot_be_called_is_refused(written: str) -> None:
    with pytest.raises(CardRefused):
        interface_url(written, card_url=CARD)


def test_urls_of_one_origin_are_told_from_others() -> None:
    assert origin("https://A.example/x") == origin("https://a.example:443/y?z")
    assert origin("https://a.example") != origin("http://a.example")
    assert origin("http://a.example:80") != origin("http://a.example:8080")


@pytest.mark.requirement("RF-66")
@pytest.mark.parametrize(
    "host",
    [
        "localhost", "LOCALHOST.", "api.localhost", "127.0.0.1", "127.1", "2130706433", "0x7f000001", "10.0.0.8",
        "192.168.1.1", "172.16.0.1", "169.254.169.254", "::1", "fe80::1%eth0", "fd00::1", "::ffff:127.0.0.1", "0.0.0.0",  # noqa: S104 - named, not bound
    ],
)  # fmt: skip
def test_private_hosts_are_recognised_however_they_are_written(host: str) -> None:
    assert is_private_name(host)


@pytest.mark.parametrize("host", ["example.com", "8.8.8.8", "2606:4700::1111", "localhost.example.com"])
def test_public_hosts_are_not_taken_for_private_ones(host: str) -> None:
    assert not is_private_name(host)
