"""What a request by cookie needs, and what its cookie looks like."""

from __future__ import annotations

import pytest

from bubble.auth.browser import BrowserRules, csrf_token, normal_origin
from bubble.protocol.errors import Forbidden

PLAIN = BrowserRules(origins=frozenset({"http://127.0.0.1:3000", "http://localhost:3000"}))
TLS = BrowserRules(origins=frozenset({"https://bubble.example.org"}))
COOKIE = "bubble_session_" + "0" * 64
UNSAFE = ["POST", "PUT", "PATCH", "DELETE", "post", "get", "PURGE"]
FOREIGN = [
    None,
    "",
    "null",
    "https://evil.example.org",
    "https://bubble.example.org.evil.org",
    "https://bubble.example.org:8443",
    "http://bubble.example.org",
    "https://BUBBLE.example.org",
    "https://bubble.example.org/",
    "https://bubble.example.org, https://evil.example.org",
]


def attributes(header: str) -> set[str]:
    """The attributes of a `Set-Cookie` value."""
    return {part.strip() for part in header.split(";")[1:]}


@pytest.mark.requirement("PR-4-20")
def test_the_cookie_is_for_the_server_only_and_never_sent_from_another_site() -> None:
    header = PLAIN.set_cookie(COOKIE, max_age_seconds=60)
    assert header.startswith(f"bubble_session={COOKIE};")
    assert attributes(header) == {"Path=/", "Max-Age=60", "HttpOnly", "SameSite=Strict"}


@pytest.mark.requirement("PR-4-20", "PR-4-21")
def test_under_tls_the_cookie_is_secure_and_bound_to_the_host() -> None:
    header = TLS.set_cookie(COOKIE, max_age_seconds=60)
    assert header.startswith(f"__Host-bubble_session={COOKIE};")
    assert attributes(header) == {"Path=/", "Max-Age=60", "HttpOnly", "SameSite=Strict", "Secure"}


@pytest.mark.requirement("PR-4-20", "PR-4-21")
@pytest.mark.parametrize("rules", [PLAIN, TLS])
def test_the_cookie_is_taken_away_under_the_attributes_it_was_given_with(rules: BrowserRules) -> None:
    given, taken = rules.set_cookie(COOKIE, max_age_seconds=60), rules.clear_cookie()
    assert taken.startswith(f"{rules.cookie_name}=;")
    assert attributes(taken) == attributes(given) - {"Max-Age=60"} | {"Max-Age=0"}


@pytest.mark.parametrize(
    ("header", "found"),
    [
        (None, None),
        ("", None),
        ("bubble_session=", None),
        ("other=1", None),
        (f"bubble_session={COOKIE}", COOKIE),
        (f"a=1; bubble_session={COOKIE};b=2", COOKIE),
        (f'bad[name="x; bubble_session={COOKIE}', COOKIE),
        (f"bubble_session={COOKIE}; bubble_session={COOKIE}", COOKIE),
        (f"bubble_session=planted; bubble_session={COOKIE}", None),
        (f"xbubble_session={COOKIE}", None),
        (f"BUBBLE_SESSION={COOKIE}", None),
    ],
)
def test_the_session_is_found_among_other_cookies(header: str | None, found: str | None) -> None:
    assert PLAIN.read_cookie(header) == found


@pytest.mark.requirement("PR-4-21")
def test_under_tls_a_cookie_that_any_subdomain_could_set_is_not_read() -> None:
    assert TLS.read_cookie("bubble_session=planted") is None
    assert TLS.read_cookie(f"bubble_session=planted; __Host-bubble_session={COOKIE}") == COOKIE


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_the_page_itself_may_write(method: str) -> None:
    TLS.require_own_page(method, cookie=COOKIE, origin="https://bubble.example.org", csrf=csrf_token(COOKIE))


@pytest.mark.parametrize("method", UNSAFE)
@pytest.mark.parametrize("origin", FOREIGN)
def test_a_request_from_elsewhere_may_not_write(method: str, origin: str | None) -> None:
    with pytest.raises(Forbidden, match="Origin"):
        TLS.require_own_page(method, cookie=COOKIE, origin=origin, csrf=csrf_token(COOKIE))


@pytest.mark.parametrize("method", UNSAFE)
@pytest.mark.parametrize(
    "csrf", [None, "", "0" * 64, csrf_token(COOKIE + "1"), csrf_token(COOKIE).upper(), "é", "\udc80"]
)
def test_a_request_without_the_sessions_csrf_token_may_not_write(method: str, csrf: str | None) -> None:
    with pytest.raises(Forbidden, match="X-Bubble-CSRF"):
        TLS.require_own_page(method, cookie=COOKIE, origin="https://bubble.example.org", csrf=csrf)


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_reading_needs_neither(method: str) -> None:
    TLS.require_own_page(method, cookie=COOKIE, origin=None, csrf=None)


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_a_page_that_says_whose_it_is_reads_for_nobody_else(method: str) -> None:
    TLS.require_own_page(method, cookie=COOKIE, origin=None, csrf=csrf_token(COOKIE))
    with pytest.raises(Forbidden, match="X-Bubble-CSRF"):
        TLS.require_own_page(method, cookie=COOKIE, origin=None, csrf=csrf_token(COOKIE + "1"))


@pytest.mark.parametrize("origin", FOREIGN)
def test_an_upgrade_by_cookie_needs_the_pages_origin(origin: str | None) -> None:
    with pytest.raises(Forbidden):
        TLS.require_origin(origin)
    TLS.require_origin("https://bubble.example.org")


def test_the_csrf_token_tells_nothing_of_the_cookie_and_is_each_sessions_own() -> None:
    token = csrf_token(COOKIE)
    assert token == csrf_token(COOKIE)
    assert token != csrf_token(COOKIE[:-1] + "1")
    assert token not in COOKIE
    assert COOKIE not in token


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://Bubble.Example.org", "https://bubble.example.org"),
        ("https://bubble.example.org:443/prefix/", "https://bubble.example.org"),
        ("http://bubble.example.org:80", "http://bubble.example.org"),
        ("http://127.0.0.1:3000", "http://127.0.0.1:3000"),
        ("http://[::1]:3000/", "http://[::1]:3000"),
        ("https://bubble.example.org:80", "https://bubble.example.org:80"),
    ],
)
def test_an_origin_is_written_as_browsers_write_it(url: str, origin: str) -> None:
    assert normal_origin(url) == origin
    assert BrowserRules(origins=frozenset({url})).origins == {origin}


@pytest.mark.parametrize(
    "url", ["", "bubble.example.org", "ftp://x", "https://", "https://a:b@x", "https://x:port", "null"]
)
def test_what_has_no_origin_is_refused(url: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the reason is urllib's where the port is wrong
        normal_origin(url)


def test_a_page_without_an_origin_is_refused() -> None:
    with pytest.raises(ValueError, match="origin"):
        BrowserRules(origins=frozenset())
