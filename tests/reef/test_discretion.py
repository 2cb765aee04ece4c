"""What is shown of addresses and of foreign words."""

from __future__ import annotations

import base64
from urllib.parse import quote

import pytest

from bubble.reef.discretion import keep_secret, keep_secrets_of, quoted, shown_url, without_secrets


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://agents.example:8443/team", "https://agents.example:8443/team"),
        ("https://user:S3CR3T@host/?key=S3CR3T", "https://…@host/?…"),
        ("https://user:S3CR@3T@host/", "https://…@host/"),
        ("https://us er:S3CR3T@host/", "https://…@host/"),
        ("https://host/x#access_token=S3CR3T", "https://host/x#…"),
        ("https://host?key=S3CR3T#more", "https://host?…"),
        ("//user:S3CR3T@host/x", "//…@host/x"),
        ("https://host/a b?key=S3C R3T#more of it", "https://host/a b?…"),
    ],
)
def test_an_address_is_shown_without_what_opens_it(url: str, shown: str) -> None:
    assert shown_url(url) == shown


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("Authorization: Bearer S3CR3T", "Authorization: Bearer …"),
        ("Bearer: S3CR3T is no good", "Bearer: … is no good"),
        ('I do not know the bearer "S3CR3T".', 'I do not know the bearer "…".'),
        ("Basic%20dXNlcjpS3CR3T=", "Basic%20…"),
        ("authorization=Token S3CR3T, x-api-key: 'S3CR3T'", "authorization=…, x-api-key: '…'"),
        ("password=S3CR3T&more", "password=…&more"),
        ("cannot reach user:S3CR3T@host", "cannot reach …@host"),
        ("https:\\/\\/user:S3CR3T@host", "https:\\/\\/…@host"),
        ("no route for /agents?key=S3CR3T.", "no route for /agents?…."),
    ],
)
def test_of_foreign_words_what_looks_like_a_secret_is_left_out(words: str, shown: str) -> None:
    assert without_secrets(words) == shown


@pytest.mark.parametrize(
    "words",
    [
        "It is 12:30, is it? Write to me@agents.example: a plan.",
        "The bearer, a token, is missing.",
        "What? a=b, and @all: c",
    ],
)
def test_what_looks_like_none_stays(words: str) -> None:
    assert without_secrets(words) == words


@pytest.mark.parametrize("secret", ["KN0WN/V4LUE+z", "kn0wn.v4lue", "kn0wn-ä-v4lue"])
def test_a_known_secret_is_left_out_in_every_spelling(secret: str) -> None:
    keep_secret(secret)
    spelt = [secret, quote(secret), quote(secret, safe=""), quote(secret).lower(), secret.replace("/", "\\/")]
    spelt += ["".join(f"%{byte:02x}" for byte in secret.encode())]
    for each in spelt:
        assert without_secrets(f"Is <{each}> yours?") == "Is <…> yours?"


def test_what_opens_an_address_is_known_with_it() -> None:
    keep_secrets_of("https://scout:P4SS%20W0RD@host/?V4LUE-ALONE&key=K3Y%2BV4LUE&x=1")
    whole = base64.b64encode(b"scout:P4SS W0RD").decode()
    for each in ("P4SS W0RD", "P4SS%20W0RD", "V4LUE-ALONE", "K3Y+V4LUE", "K3Y V4LUE", whole, whole.rstrip("=")):
        assert without_secrets(f"Is <{each}> yours?").startswith("Is <…")
    keep_secrets_of("https://T0KEN-ALONE@host/")
    assert without_secrets("T0KEN-ALONE") == "…"


def test_what_is_too_short_to_be_told_from_words_is_no_secret() -> None:
    keep_secret("token")
    assert without_secrets("The token is missing.") == "The token is missing."


@pytest.mark.timeout(30)  # seconds; where the time grows with the square, it takes minutes
@pytest.mark.parametrize(
    "words", ["//a" * 10**5, "a:" * 10**5, "bearer " * 10**5, "password" + " " * 10**5, "?a" * 10**5, "a" * 10**5]
)
def test_long_words_are_gone_through_once(words: str) -> None:
    assert len(without_secrets(words)) <= len(words)


def test_an_address_without_secrets_is_shown_as_it_is() -> None:
    words = "The agent at http://127.0.0.1:8100/v1 cannot be reached, is it?"
    assert without_secrets(words) == words


def test_foreign_words_are_one_line_that_a_terminal_can_show() -> None:
    assert quoted(" two\n lines\t") == "two lines"
    assert quoted("\x1b[2Jred \ud800 \u202egnp.exe\x07") == "\ufffd[2Jred \ufffd \ufffdgnp.exe\ufffd"


def test_foreign_words_are_cut_after_what_is_useful_and_not_within_a_secret() -> None:
    assert quoted("x" * 501) == "x" * 500 + "…"
    assert quoted("x" * 490 + " http://user:S3CR3T@host") == "x" * 490 + " http://…@…"
    assert len(quoted("//" * 40_000_000)) == 501
