"""The servers that `bubble login` remembers: `$XDG_CONFIG_HOME/bubble/profiles.json`, readable by its owner alone.

In order: `--profile`; BUBBLE_URL with BUBBLE_TOKEN, which need no file at all; BUBBLE_PROFILE; the profile in use, which is that of
the last login. BUBBLE_TOKEN without BUBBLE_URL replaces the token of the profile.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, TypeAlias
from urllib.parse import urlsplit

import msgspec
import typer

from bubble.cli.failures import CommandError, UsageProblem

__all__ = [
    "Profile",
    "ProfileOption",
    "Profiles",
    "Target",
    "check_profile_name",
    "check_url",
    "config_directory",
    "load_profiles",
    "profile_name_for",
    "resolve_target",
    "save_profiles",
]

ProfileOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--profile", "-p", metavar="NAME", help="Which login to use, if not the last one."),
]

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@\-]{0,63}")


class Profile(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A server, the bearer for it, and as whom the server knew that bearer."""

    url: str
    token: str
    principal_id: str


class Profiles(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """All profiles by name, and which of them is in use."""

    current: str | None = None
    profiles: Mapping[str, Profile] = {}

    def having(self, name: str, profile: Profile) -> Profiles:
        """These and one more, which becomes the one in use."""
        return Profiles(current=name, profiles={**self.profiles, name: profile})

    def using(self, name: str) -> Profiles:
        """These with another one in use; `UsageProblem` if there is none of that name."""
        return Profiles(current=self._known(name), profiles=self.profiles)

    def without(self, name: str) -> Profiles:
        """These but one; `UsageProblem` if there is none of that name."""
        self._known(name)
        left = {other: profile for other, profile in self.profiles.items() if other != name}
        current = self.current if self.current != name else next(iter(left), None)
        return Profiles(current=current, profiles=left)

    def get(self, name: str) -> Profile:
        """The profile of that name; `UsageProblem` if there is none."""
        return self.profiles[self._known(name)]

    def _known(self, name: str) -> str:
        if name not in self.profiles:
            known = ", ".join(self.profiles) or "none yet"
            raise UsageProblem(
                f'There is no profile "{name}" (known: {known}); `bubble login URL --profile {name}` makes it.'
            )
        return name


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where a command goes and with which bearer; `source` says in words where that was found."""

    url: str
    token: str
    source: str


def config_directory() -> Path:
    """`$XDG_CONFIG_HOME/bubble`, or `~/.config/bubble`."""
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base and Path(base).is_absolute() else Path.home() / ".config") / "bubble"


def _file() -> Path:
    return config_directory() / "profiles.json"


def load_profiles() -> Profiles:
    """What was remembered; none where there is no file. A file that others can read is closed to them."""
    path = _file()
    try:
        with path.open("rb") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                os.fchmod(file.fileno(), 0o600)
            text = file.read()
    except FileNotFoundError:
        return Profiles()
    try:
        return msgspec.json.decode(text, type=Profiles)
    except msgspec.MsgspecError as error:
        raise CommandError(f"{path} is damaged ({error}); correct it or remove it, then log in again.") from None


def save_profiles(profiles: Profiles) -> Path:
    """Writes them for good, never half: into a new file (mode 0600) that then takes the old one's place. The path."""
    path = _file()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".profiles-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(profiles), indent=2) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return path


def check_url(url: str) -> str:
    """`url` as the address of a server, without a slash at its end; `UsageProblem` if it is none."""
    if "@" in url.partition("//")[2].partition("/")[0]:
        raise UsageProblem("The address must have no query, fragment or user name; the token is asked for separately.")
    if not _can_be_called(url):
        raise UsageProblem(f'"{url}" is not the address of a server: it must look like http://127.0.0.1:3000.')
    if "?" in url or "#" in url:
        raise UsageProblem("The address must have no query, fragment or user name; the token is asked for separately.")
    return url.rstrip("/")


def _can_be_called(url: str) -> bool:
    if not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # half a bracket, a port that is none
        return False


def profile_name_for(url: str) -> str:
    """The name of a profile that was given none: the server's host and port."""
    return urlsplit(url).netloc.strip("[]").replace("[", "").replace("]", "")


def check_profile_name(name: str) -> str:
    """`name` as the name of a profile; `UsageProblem` if it cannot be one."""
    if not _NAME.fullmatch(name):
        raise UsageProblem(
            "A profile's name is 1 to 64 of `A-Z a-z 0-9 . _ : @ -`, beginning with a letter or a digit."
        )
    return name


def resolve_target(profile: str | None) -> Target:
    """The server to talk to, found in the order that this module states; `profile` is the name given with the command."""
    url, token = os.environ.get("BUBBLE_URL"), os.environ.get("BUBBLE_TOKEN")
    if url and not profile:
        return _from_environment(url, token)
    known = load_profiles()
    name = profile or os.environ.get("BUBBLE_PROFILE") or known.current
    if name is None:
        raise UsageProblem("You are not logged in: `bubble login URL`, or set BUBBLE_URL and BUBBLE_TOKEN.")
    found = known.get(name)
    if token and not profile:
        return Target(url=found.url, token=token, source=f'profile "{name}" with the token in BUBBLE_TOKEN')
    return Target(url=found.url, token=found.token, source=f'profile "{name}"')


def _from_environment(url: str, token: str | None) -> Target:
    address = check_url(url)
    if token:
        return Target(url=address, token=token, source="BUBBLE_URL and BUBBLE_TOKEN")
    for name, profile in load_profiles().profiles.items():
        if profile.url == address:
            return Target(url=address, token=profile.token, source=f'BUBBLE_URL with the token of profile "{name}"')
    raise UsageProblem(
        f"BUBBLE_URL is set but there is no token for it: set BUBBLE_TOKEN, or `bubble login {address}`."
    )
