"""`bubble bench`: a short, honest measurement."""

from __future__ import annotations

import os
import platform
from typing import TYPE_CHECKING, Annotated, Final

import typer

from bubble.cli.output import JsonOption, note, progress, show_table, write_json
from bubble.cli.remote import run_async

if TYPE_CHECKING:
    from bubble.cli.measuring import Figure

__all__ = ["app"]

app = typer.Typer(add_completion=False, name="bench", help="Measure this machine with a server of its own.")

_FIGURES: Final = 9
_UNLIMITED: Final = {
    "BUBBLE_RATES__REQUESTS_PER_SECOND": "0",
    "BUBBLE_RATES__FRAMES_PER_SECOND": "0",
    "BUBBLE_LOG__LEVEL": "warning",
    "BUBBLE_LOG__REQUESTS": "false",
}


@app.command()
def bench(
    *,
    seconds: Annotated[float, typer.Option("--seconds", min=0.1, max=60, help="How long each figure is taken.")] = 1.5,
    as_json: JsonOption = False,
) -> None:
    """Start a server with an empty store in a temporary directory, measure it with one client process, and remove it.

    Server and client share this machine, so the client's own work is in every figure; rate limits are lifted. The figures of a
    development checkout, with references in the same run, are `make bench`.
    """
    figures = run_async(_measure(seconds))
    if as_json:
        write_json([{"name": each.name, "value": each.value, "unit": each.unit, "how": each.how} for each in figures])
        return
    show_table(
        ("FIGURE", "VALUE", "HOW"),
        ((each.name, f"{each.value:,.{0 if each.value >= 100 else 2}f} {each.unit}", each.how) for each in figures),
        empty="Nothing was measured.",
    )
    note(
        f"Python {platform.python_version()}, {os.cpu_count()} processors, {platform.system()} {platform.machine()}, once each."
    )


async def _measure(seconds: float) -> list[Figure]:
    from bubble.cli.measuring import measure
    from bubble.cli.spawned import spawned_server

    figures: list[Figure] = []
    async with spawned_server(**_UNLIMITED) as server:
        with progress("Measuring", total=_FIGURES) as steps:
            async for figure in measure(server, seconds=seconds):
                figures.append(figure)
                steps.advance()
    return figures
