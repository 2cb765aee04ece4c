"""`bubble config`: the settings in effect."""

from __future__ import annotations

from typing import Annotated

import typer

from bubble.cli.options import (
    ConfigOption,
    DataOption,
    HostOption,
    InsecureOption,
    PortOption,
    PublicUrlOption,
    StoreOption,
    settings,
)
from bubble.cli.output import JsonOption, show_table, write_json

__all__ = ["app"]

app = typer.Typer(add_completion=False, name="config", help="Show the settings in effect and where each comes from.")


@app.command()
def show_config(
    *,
    config: ConfigOption = None,
    data: DataOption = None,
    store: StoreOption = None,
    host: HostOption = None,
    port: PortOption = None,
    public_url: PublicUrlOption = None,
    insecure: InsecureOption = False,
    changed: Annotated[bool, typer.Option("--changed", help="Only what is not a default.")] = False,
    as_json: JsonOption = False,
) -> None:
    """The settings that `bubble serve` with the same flags would have, and where each comes from; secrets are masked."""
    described = settings(
        config=config, data=data, store=store, host=host, port=port, public_url=public_url, insecure=insecure
    ).describe()
    shown = [each for each in described if not changed or each.source != "default"]
    if as_json:
        write_json([{"name": each.name, "value": each.value, "source": each.source} for each in shown])
        return
    show_table(
        ("SETTING", "VALUE", "SOURCE", "WHAT IT IS"),
        ((each.name, each.value, each.source, each.description) for each in shown),
        empty="All settings have their defaults.",
    )
