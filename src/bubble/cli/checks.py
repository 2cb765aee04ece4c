"""What `bubble doctor` looks at: each check is one question and gives one sentence."""

from __future__ import annotations

import errno
import importlib.metadata
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from bubble import __version__

if TYPE_CHECKING:
    from bubble.cli.profiles import Target
    from bubble.server.settings import Settings

__all__ = ["Finding", "State", "local_findings", "server_findings"]

State = Literal["ok", "warning", "failed", "skipped"]
_PROTOCOL: Final = "1"
_LOW_SPACE: Final = 256 * 1024 * 1024
# What a server says where it has nothing.
_NO_ROUTE: Final = 404
_OF_A_PROXY: Final = frozenset({502, 503, 504})
_CLOCK_TOLERANCE: Final = 5.0
_SLOW_FSYNC: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The outcome of a check, in one sentence; where it failed or warns, the sentence says what to do."""

    check: str
    state: State
    sentence: str


def _ok(check: str, sentence: str) -> Finding:
    return Finding(check=check, state="ok", sentence=sentence)


def _failed(check: str, sentence: str) -> Finding:
    return Finding(check=check, state="failed", sentence=sentence)


def _warning(check: str, sentence: str) -> Finding:
    return Finding(check=check, state="warning", sentence=sentence)


def _skipped(check: str, sentence: str) -> Finding:
    return Finding(check=check, state="skipped", sentence=sentence)


def local_findings(settings: Settings) -> Iterator[Finding]:
    """What can be seen without a server: this Python, the libraries, the data directory, the port."""
    yield _python()
    yield _sqlite()
    if settings.store is None:
        yield _data_directory(settings.data)
        yield _fsync(settings.data)
        yield _space(settings.data)
    else:
        yield _skipped("data", f"The store is {settings.store}, there is no data directory to look at.")
    yield _port(settings)


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return _ok("python", f"Python {version} and Bubble {__version__}.")


def _sqlite() -> Finding:
    try:
        import bubble.store.sqlite  # noqa: F401 - whether it can be loaded is the question
    except ImportError as error:
        return _failed("sqlite", f"The embedded store cannot be loaded ({error}): install bubble-threads again.")
    return _ok("sqlite", f"SQLite by apsw {importlib.metadata.version('apsw')}.")


def _existing(path: Path) -> Path:
    # A directory that is still to be made is as good as the nearest one above it.
    return next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())


def _data_directory(data: Path) -> Finding:
    place = _existing(data)
    if not place.is_dir():
        return _failed("data", f"{place} is a file: name a directory with --data.")
    if not os.access(place, os.W_OK | os.X_OK):
        return _failed("data", f"{place} cannot be written by you: change its owner, or name another one with --data.")
    if place != data.absolute():
        return _ok("data", f"{data} does not exist yet; `bubble serve` can make it.")
    if place.stat().st_mode & 0o007:
        return _warning("data", f"Everybody on this machine can look into {data}: `chmod o-rwx {data}`.")
    return _ok("data", f"{data} can be written.")


def _fsync(data: Path) -> Finding:
    place = _existing(data)
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"bubble")
            file.flush()
            start = time.perf_counter()
            os.fsync(file.fileno())
            seconds = time.perf_counter() - start
    except OSError as error:
        return _failed("fsync", f"A file in {place} cannot be made durable ({error.strerror}): use a local disk.")
    if seconds > _SLOW_FSYNC:
        return _warning(
            "fsync", f"Making a file in {place} durable took {seconds * 1000:.0f} ms: use a faster or less busy disk."
        )
    return _ok("fsync", f"Making a file in {place} durable took {seconds * 1000:.1f} ms.")


def _space(data: Path) -> Finding:
    free = shutil.disk_usage(_existing(data)).free
    said = f"{free / 2**30:.1f} GiB are free for {data}"
    return _warning("space", f"Only {said}: make room.") if free < _LOW_SPACE else _ok("space", f"{said}.")


def _port(settings: Settings) -> Finding:
    where = f"{settings.host}:{settings.port}"
    if settings.port == 0:
        return _ok("port", "Any free port will be taken.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[
            0
        ]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return _skipped("port", f"{where} is taken; if not by your server, choose another one with --port.")
        return _failed("port", f"{where} cannot be listened on ({error.strerror or error}): check --host and --port.")
    return _ok("port", f"{where} is free.")


async def server_findings(target: Target) -> list[Finding]:
    """What can be seen of a server: whether it answers, is ready, speaks this protocol, has the time, and knows the token."""
    import httpx2

    from bubble.client.paths import no_route_at

    async with httpx2.AsyncClient(base_url=target.url, timeout=5.0) as client:
        try:
            start = time.perf_counter()
            ready = await client.get("/readyz")
            taken = time.perf_counter() - start
        except httpx2.HTTPError as error:
            reason = str(error) or type(error).__name__
            return [
                _failed(
                    "server",
                    f"{target.url} does not answer ({reason}): start it with `bubble serve`, or log in elsewhere.",
                )
            ]
        if ready.status_code == _NO_ROUTE and "bubble-protocol-version" in ready.headers:
            return [_failed("server", no_route_at(target.url).message)]
        if "bubble-protocol-version" not in ready.headers and ready.status_code not in _OF_A_PROXY:
            return [
                _failed(
                    "server", f"{target.url} answers, but what answers there is no Bubble server: check the address."
                )
            ]
        findings = [
            _readiness(target, ready.status_code, taken),
            _version(ready.headers.get("bubble-protocol-version")),
        ]
        findings.append(_clock(ready.headers.get("date")))
    return [*findings, await _token(target)]


def _readiness(target: Target, status: int, seconds: float) -> Finding:
    if status != 200:
        return _failed("server", f"{target.url} answers, but is not ready ({status}): see its log.")
    return _ok("server", f"{target.url} (by {target.source}) was ready in {seconds * 1000:.0f} ms.")


def _version(version: str | None) -> Finding:
    if version is None:
        return _failed("protocol", "What answers there is no Bubble server: check the address.")
    if version != _PROTOCOL:
        return _failed(
            "protocol", f"The server speaks protocol {version}, this command {_PROTOCOL}: upgrade the older one."
        )
    return _ok("protocol", f"Both speak protocol {version}.")


def _clock(date: str | None) -> Finding:
    if date is None:
        return _skipped("clock", "The server does not tell its time.")
    ahead = (datetime.now(UTC) - parsedate_to_datetime(date)).total_seconds()
    if abs(ahead) > _CLOCK_TOLERANCE:
        return _failed(
            "clock", f"This clock is {ahead:+.0f} s off the server's: set one of them right, or tokens end early."
        )
    return _ok("clock", "This clock and the server's agree.")


async def _token(target: Target) -> Finding:
    from bubble.client import BubbleConnection
    from bubble.protocol.errors import BubbleError

    try:
        async with BubbleConnection(target.url, token=target.token, retry_for=0.0) as bubble:
            principal = await bubble.who_am_i()
    except BubbleError as error:
        return _failed(
            "token", f"The token is not accepted ({error.message.rstrip('.')}): `bubble login {target.url}`."
        )
    return _ok("token", f"The token is that of {principal.principal_id}.")
