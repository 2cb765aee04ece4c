"""The flags that `bubble serve`, `bubble config` and `bubble doctor` share, and the settings that they lead to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from bubble.cli.failures import UsageProblem

if TYPE_CHECKING:
    from bubble.server.settings import Settings

__all__ = [
    "ConfigOption",
    "DataOption",
    "HostOption",
    "InsecureOption",
    "PortOption",
    "PublicUrlOption",
    "StoreOption",
    "settings",
]

ConfigOption: TypeAlias = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings from this file instead of ./bubble.toml.")
]
DataOption: TypeAlias = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", help="The directory of the embedded store (.bubble).")
]
StoreOption: TypeAlias = Annotated[
    str | None, typer.Option("--store", metavar="URL", help="Another store: `memory:` or `sqlite:///path`.")
]
HostOption: TypeAlias = Annotated[
    str | None, typer.Option("--host", metavar="ADDRESS", help="The address to listen on (127.0.0.1).")
]
PortOption: TypeAlias = Annotated[
    int | None, typer.Option("--port", min=0, max=65_535, help="The port to listen on (3000); 0 takes any free one.")
]
PublicUrlOption: TypeAlias = Annotated[
    str | None, typer.Option("--public-url", metavar="URL", help="Where browsers reach it, if a proxy stands in front.")
]
InsecureOption: TypeAlias = Annotated[bool, typer.Option("--insecure", help="Allow a public address without TLS.")]


def settings(
    *,
    config: Path | None = None,
    data: Path | None = None,
    store: str | None = None,
    host: str | None = None,
    port: int | None = None,
    public_url: str | None = None,
    insecure: bool = False,
    **others: object,
) -> Settings:
    """The settings in effect with these flags on top; `UsageProblem` says which option is wrong and where it stands."""
    from bubble.server.settings import Settings, SettingsError

    try:
        return Settings(
            config=config,
            data=data,
            store=store,
            host=host,
            port=port,
            public_url=public_url,
            insecure=insecure or None,
            **others,
        )
    except SettingsError as error:
        raise UsageProblem(str(error)) from None
