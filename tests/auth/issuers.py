"""A token issuer with real keys, and the place on 127.0.0.1 where it publishes them."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Literal, TypeAlias

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import get_default_algorithms

from bubble.auth.jwt_settings import JwtSettings
from tests.auth.actors import NOW

__all__ = ["AUDIENCE", "ISSUER", "KeyServer", "SigningKey", "a_key_server", "claims", "settings", "unsigned"]

ISSUER = "https://login.example.org"
AUDIENCE = "bubble"
NOW_SECONDS = NOW // 1000

Private: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
Claim: TypeAlias = object

_CURVES: Mapping[str, ec.EllipticCurve] = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}
_rsa_keys: dict[int, list[rsa.RSAPrivateKey]] = {}


def _rsa_key(bits: int, number: int) -> rsa.RSAPrivateKey:
    """Making one takes its time, so the tests share them."""
    made = _rsa_keys.setdefault(bits, [])
    while len(made) <= number:
        made.append(rsa.generate_private_key(public_exponent=65537, key_size=bits))
    return made[number]


class SigningKey:
    """A private key, its public half as a JWK, and what it signs."""

    def __init__(self, kid: str | None, algorithm: str = "RS256", *, bits: int = 2048, number: int = 0) -> None:
        self.kid = kid
        self.algorithm = algorithm
        self.private: Private
        if algorithm == "EdDSA":
            self.private = ed25519.Ed25519PrivateKey.generate()
        elif algorithm in _CURVES:
            self.private = ec.generate_private_key(_CURVES[algorithm])
        else:
            self.private = _rsa_key(bits, number)

    def jwk(self, **members: object) -> dict[str, object]:
        """The public key as it is published."""
        shown = get_default_algorithms()[self.algorithm].to_jwk(self.private.public_key(), as_dict=True)
        kid = {} if self.kid is None else {"kid": self.kid}
        return {"use": "sig", **shown, **kid, **members}

    def private_jwk(self) -> dict[str, object]:
        """What must never be published: the public key with its private half."""
        private = get_default_algorithms()[self.algorithm].to_jwk(self.private, as_dict=True)
        return {**private, **self.jwk()}

    def public_pem(self) -> bytes:
        """The public key as a text."""
        return self.private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    def sign(
        self, payload: Mapping[str, Claim], *, algorithm: str | None = None, headers: Mapping[str, object] | None = None
    ) -> str:
        """A JWT. It is put together below the library's claims, which refuses to write many a wrong one."""
        kid = {} if self.kid is None else {"kid": self.kid}
        text = json.dumps(dict(payload)).encode()
        return jwt.PyJWS().encode(text, self.private, algorithm or self.algorithm, headers={**kid, **(headers or {})})


def claims(subject: object = "ann", **others: Claim) -> dict[str, Claim]:
    """Good claims, five minutes long, but for `others`; None leaves one out."""
    good: dict[str, Claim] = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": subject,
        "iat": NOW_SECONDS,
        "exp": NOW_SECONDS + 300,
    }
    return {name: value for name, value in {**good, **others}.items() if value is not None}


def settings(*keys: SigningKey, **others: object) -> JwtSettings:
    """Settings with these keys written into them."""
    text = json.dumps({"keys": [key.jwk() for key in keys]})
    values: dict[str, object] = {"issuer": ISSUER, "audience": (AUDIENCE,), "alias": "corp", "jwks": text, **others}
    return JwtSettings(**values)  # type: ignore[arg-type]


def unsigned(header: Mapping[str, object], payload: Mapping[str, Claim], signature: bytes = b"") -> str:
    """A token put together by hand."""
    parts = (json.dumps(header).encode(), json.dumps(payload).encode(), signature)
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


Mood = Literal["answers", "fails", "redirects", "talks nonsense", "never ends"]


class KeyServer:
    """Serves a JWKS and an OpenID configuration, and counts how often it is asked."""

    def __init__(self, *keys: SigningKey) -> None:
        self.keys = list(keys)
        self.mood: Mood = "answers"
        self.asked: list[str] = []
        self.port = 0
        self.issuer_says: str | None = None
        self.released = asyncio.Event()
        self.released.set()
        self.reached = asyncio.Event()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ")[1].decode()
                self.asked.append(path)
                self.reached.set()
                await self.released.wait()
                writer.write(self._answer(path))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _answer(self, path: str) -> bytes:
        if self.mood == "fails":
            return b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"
        if self.mood == "redirects":
            return b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"
        if self.mood == "talks nonsense":
            return _http(b"<html>")
        if self.mood == "never ends":
            return _http(b" " * (2 * 1024 * 1024))
        return _http(json.dumps(self._document(path)).encode())

    def _document(self, path: str) -> dict[str, object]:
        if path.endswith("openid-configuration"):
            return {
                "issuer": self.issuer_says or self.url,
                "jwks_uri": f"{self.url}/keys",
                "scopes_supported": ["openid"],
            }
        return {"keys": [key.jwk() for key in self.keys]}


def _http(body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


@asynccontextmanager
async def a_key_server(*keys: SigningKey) -> AsyncIterator[KeyServer]:
    """A key server on a free port of 127.0.0.1."""
    it = KeyServer(*keys)
    server = await asyncio.start_server(it.serve, "127.0.0.1", 0)
    it.port = server.sockets[0].getsockname()[1]
    try:
        yield it
    finally:
        it.released.set()
        server.close()
        await server.wait_closed()
