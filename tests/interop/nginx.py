"""A real nginx, configured as the guide says, with a real server behind it: both processes, on loopback ports, in one directory."""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import os
import secrets
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.docs.markdown import ROOT, blocks
from tests.docs.ports import free_ports

__all__ = ["GUIDE", "Site", "guide_settings", "running_site"]

GUIDE = ROOT / "docs" / "guides" / "run-behind-nginx.md"
SECONDS = 30

_SERVE = (sys.executable, "-m", "bubble.cli", "serve", "--json", "--until-stdin-ends")

_OUTER = """\
daemon off;
pid {directory}/nginx.pid;
error_log {directory}/nginx-error.log warn;
{user}
events {{ worker_connections 512; }}
http {{
    client_body_temp_path {directory}/bodies;
    proxy_temp_path {directory}/proxied;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
{inner}
}}
"""


def guide_settings() -> str:
    """The guide's `bubble.toml`."""
    (text,) = (block.text for block in blocks(GUIDE) if block.language == "toml")
    return text


def _guide_configuration() -> str:
    (text,) = (block.text for block in blocks(GUIDE) if block.language == "nginx")
    return text


class Server:
    """`bubble serve` in `directory`."""

    def __init__(self, directory: Path, port: int, token: str, variables: Mapping[str, str]) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("BUBBLE_")}
        self._environment = {**kept, "BUBBLE_ADMIN_TOKEN": token, **variables}
        self._directory = directory
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns once it listens."""
        command = [*_SERVE, "--port", str(self._port)]
        with (self._directory / "server.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self._directory,
                env=self._environment,
            )
        self._process = process
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, (self._directory / "server.log").read_text(encoding="utf-8")
        assert json.loads(line)["port"] == self._port

    def stop(self) -> None:
        """Stops it as an operator would. Idempotent."""
        process, self._process = self._process, None
        if process is not None:
            with process:
                process.terminate()
                assert process.wait(SECONDS) == 0


@dataclass(frozen=True, kw_only=True)
class Site:
    """What the world sees at `url`, and the admin's token. `context` trusts its certificate."""

    url: str
    plain_url: str
    directory: Path
    token: str
    context: ssl.SSLContext
    server: Server

    @property
    def log(self) -> str:
        """nginx's access log."""
        return (self.directory / "bubble.log").read_text(encoding="utf-8")

    @property
    def server_log(self) -> str:
        """Bubble's log."""
        return (self.directory / "server.log").read_text(encoding="utf-8")


def _certificate(directory: Path) -> ssl.SSLContext:
    """Makes one for localhost; a context that trusts nothing else."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    names: list[x509.GeneralName] = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    (directory / "fullchain.pem").write_bytes(pem)
    (directory / "privkey.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return ssl.create_default_context(cadata=pem.decode("ascii"))


def _here(configuration: str, directory: Path, *, plain_port: int, tls_port: int, server_port: int) -> str:
    """The guide's configuration with the names and ports of this test, and nothing else changed."""
    changes = {
        "listen 80;": f"listen 127.0.0.1:{plain_port};",
        "listen 443 ssl http2;": f"listen 127.0.0.1:{tls_port} ssl http2;",
        "server 127.0.0.1:3000;": f"server 127.0.0.1:{server_port};",
        "server_name bubble.example.com;": "server_name localhost;",
        "/etc/letsencrypt/live/bubble.example.com/": f"{directory}/",
        "/var/log/nginx/": f"{directory}/",
    }
    for old, new in changes.items():
        assert old in configuration, f"the guide has no `{old}` any more"
        configuration = configuration.replace(old, new)
    return configuration


@contextmanager
def running_site(directory: Path, *, nginx: Mapping[str, str] | None = None, **variables: str) -> Iterator[Site]:
    """Starts both and stops them. `nginx` replaces parts of the guide's configuration; `variables` are Bubble's."""
    plain_port, tls_port, server_port = free_ports(3)
    context = _certificate(directory)
    configuration = _guide_configuration()
    for old, new in (nginx or {}).items():
        assert old in configuration, f"the guide has no `{old}`"
        configuration = configuration.replace(old, new)
    inner = _here(configuration, directory, plain_port=plain_port, tls_port=tls_port, server_port=server_port)
    user = "user root;" if os.getuid() == 0 else ""
    (directory / "nginx.conf").write_text(_OUTER.format(directory=directory, user=user, inner=inner), encoding="utf-8")
    url = f"https://localhost:{tls_port}"
    settings = guide_settings()
    (directory / "bubble.toml").write_text(settings.replace("https://bubble.example.com", url), encoding="utf-8")
    token = secrets.token_urlsafe(32)
    server = Server(directory, server_port, token, variables)
    try:
        server.start()
        with _nginx(directory, tls_port):
            yield Site(
                url=url,
                plain_url=f"http://localhost:{plain_port}",
                directory=directory,
                token=token,
                context=context,
                server=server,
            )
    finally:
        server.stop()


@contextmanager
def _nginx(directory: Path, port: int) -> Iterator[None]:
    errors = directory / "nginx-error.log"
    nginx = ["nginx", "-p", str(directory), "-c", str(directory / "nginx.conf"), "-e", str(errors)]
    # The shell stops nginx when its input ends: at the latest when this process is gone.
    process = subprocess.Popen(["sh", "-c", '"$@" & read -r _; kill $!; wait $!', "sh", *nginx], stdin=subprocess.PIPE)
    with process:
        assert process.stdin is not None
        try:
            _wait_until_it_listens(port, errors)
            yield
        finally:
            process.stdin.close()
            process.wait(SECONDS)


def _wait_until_it_listens(port: int, errors: Path) -> None:
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            assert time.monotonic() < deadline, errors.read_text(encoding="utf-8")
            time.sleep(0.02)  # nginx tells nobody when it listens
        else:
            return
