"""URLs of cards, put right, and hosts that a card may not name."""

from __future__ import annotations

import pytest

from bubble.reef.addresses import below, card_urls, interface_url, is_private_name, origin, path_segment
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


MALFORMED = [
    "http://a:99999/x", "http://a:0/x", "http://a:port", "http://[oops", "http://a]/", "http://[1.2.3.4]/", "http://a..b/",
    f"http://{'a' * 64}.example/", "http://a b/", "http://a/x y", "http://a/\n", "http://a/\x00", "http://a/\ud800", "http://１２７.0.0.1/",
]  # fmt: skip


@pytest.mark.parametrize("given", MALFORMED)
def test_an_address_that_cannot_be_called_says_what_it_must_be(given: str) -> None:
    with pytest.raises(ValueError, match=r"^it(s \w+)*( and port)? must ") as raised:
        card_urls(given)
    assert type(raised.value) is ValueError


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
        ("https://a.example/base/message:stream?key=1#x", "https://a.example/base?key=1"),
    ],
)
def test_an_interface_url_is_understood_as_it_was_meant(written: str, meant: str) -> None:
    assert interface_url(written, card_url=CARD) == meant


@pytest.mark.parametrize(
    "written",
    ["grpc://a:50051", "mailto:me", "http://0.0.0.0:port", "//[oops", "//a:99999/", "//u:secret@a:99999/?key=secret"],
)
def test_an_interface_url_that_cannot_be_called_is_refused_by_its_place_in_the_card(written: str) -> None:
    with pytest.raises(
        CardRefused, match=r"card's additionalInterfaces\[1\]\.url is .+, which cannot be called: it.* must"
    ) as raised:
        interface_url(written, card_url=CARD, member="additionalInterfaces[1].url")
    assert "secret" not in raised.value.message


@pytest.mark.parametrize(
    ("url", "is_at"),
    [
        ("http://a", "http://a/tasks/t"),
        ("http://a/", "http://a/tasks/t"),
        ("http://a/base/", "http://a/base/tasks/t"),
        ("http://a/base?key=1&x=/y", "http://a/base/tasks/t?key=1&x=/y"),
    ],
)
def test_what_is_below_an_address_stands_before_its_query(url: str, is_at: str) -> None:
    assert below(url, "/tasks/t") == is_at


@pytest.mark.parametrize(
    ("text", "segment"),
    [
        ("a/b", "a%2Fb"),
        ("a?b#c", "a%3Fb%23c"),
        ("a b", "a%20b"),
        ("é", "%C3%A9"),
        ("...", "..."),
        ("%2e%2e", "%252e%252e"),
    ],
)
def test_what_stands_in_a_path_cannot_leave_its_place(text: str, segment: str) -> None:
    assert path_segment(text) == segment


@pytest.mark.parametrize("text", ["", ".", "..", "\ud800", "x" * 2_001])
def test_what_can_be_no_part_of_a_path_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="can be no part of an address"):
        path_segment(text)


def test_urls_of_one_origin_are_told_from_others() -> None:
    assert origin("https://A.example/x") == origin("https://a.example:443/y?z")
    assert origin("https://a.example") != origin("http://a.example")
    assert origin("http://a.example:80") != origin("http://a.example:8080")
    assert origin("http://[::1]:80/x") == "http://[::1]:80"


@pytest.mark.requirement("RF-66")
@pytest.mark.parametrize(
    "host",
    [
        "localhost", "LOCALHOST.", "api.localhost", "127.0.0.1", "127.1", "2130706433", "0x7f000001", "10.0.0.8",
        "192.168.1.1", "172.16.0.1", "169.254.169.254", "::1", "fe80::1%eth0", "fd00::1", "::ffff:127.0.0.1", "0.0.0.0",  # noqa: S104 - named, not bound
        "localhost.", "127.0.0.1.", "0x7f.1", "0177.0.0.1", "0x7f000001.", "100.64.0.1", "224.0.0.1", "239.255.255.250",
        "255.255.255.255", "::", "::127.0.0.1", "::8.8.8.8", "::ffff:10.0.0.8", "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::808:808", "2002:7f00:1::", "2002:c0a8:101::1", "2001:0:808:808::1", "fec0::1", "ff02::1", "2001:db8::1",
        "3fff::1", "100::1",
    ],
)  # fmt: skip
def test_private_hosts_are_recognised_however_they_are_written(host: str) -> None:
    assert is_private_name(host)


@pytest.mark.parametrize(
    "host",
    [
        "example.com", "8.8.8.8", "2606:4700::1111", "localhost.example.com", "::ffff:8.8.8.8", "64:ff9b::808:808",
        "2002:808:808::1", "134744072",
    ],
)  # fmt: skip
def test_public_hosts_are_not_taken_for_private_ones(host: str) -> None:
    assert not is_private_name(host)
