"""`bubble db`: check, back up and migrate the embedded store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    pass

__all__ = ["app"]

app = typer.Typer(add_completion=False, name="db", help="Check, back up and migrate a store.")
