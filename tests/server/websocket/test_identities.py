"""Sockets that end because what they rest on ends: sessions and JWTs. Real keys, real time."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.auth.issuers import AUDIENCE, ISSUER, SigningKey
from tests.server.websocket.live import ADMIN_TOKEN, Live, serving

pytestmark = pytest.mark.anyio

KEY = SigningKey("k1")


async def _session(live: Live) -> dict[str, str]:
    answer = await live.http.post(
        "/v1/sessions", json={"token": ADMIN_TOKEN}, headers={"Origin": live.app.services.url}
    )
    assert answer.is_success, answer.text
    return {"Cookie": answer.headers["set-cookie"].split(";")[0], "Origin": live.app.services.url}


@pytest.mark.requirement("PR-4-40")
async def test_a_socket_ends_within_a_second_of_the_logout(live: Live) -> None:
    browser = await _session(live)
    csrf = (await live.http.get("/v1/whoami", headers=browser)).json()["csrfToken"]
    async with live.peer(None, **browser) as peer:
        assert await peer.settled() == []
        left = await live.http.delete("/v1/sessions", headers={**browser, "X-Bubble-CSRF": csrf})
        assert left.is_success, left.text
        began = time.monotonic()
        assert await peer.closing() == (4401, "unauthenticated")
        assert time.monotonic() - began < 1


@pytest.mark.requirement("PR-4-40")
async def test_a_socket_ends_with_its_session() -> None:
    async with serving(sessions={"lifetime": 2}) as live:
        browser = await _session(live)
        async with live.peer(None, **browser) as peer:
            assert await peer.settled() == []
            assert await peer.closing() == (4401, "unauthenticated")


@pytest.mark.requirement("PR-4-42", "PR-4-43")
@pytest.mark.parametrize("end", ["exp", "disabled"])
async def test_a_socket_by_jwt_ends_at_exp_plus_leeway_or_with_its_principal(tmp_path: Path, end: str) -> None:
    keys = tmp_path / "jwks.json"
    keys.write_text(json.dumps({"keys": [KEY.jwk()]}), encoding="utf-8")
    jwt = {"issuer": ISSUER, "audience": AUDIENCE, "alias": "corp", "jwks_file": keys, "leeway": 1}
    async with serving(jwt=jwt) as live:
        exp = int(time.time()) + (1 if end == "exp" else 600)
        token = KEY.sign({"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": exp})
        async with live.peer(token) as peer:
            assert await peer.settled() == []
            if end == "disabled":
                await live.call("PATCH", "/v1/principals/corp:ann", {"disabled": True})
            assert await peer.closing() == (4401, "unauthenticated")
            if end == "exp":
                assert exp + 1 <= time.time() < exp + 1 + 2
