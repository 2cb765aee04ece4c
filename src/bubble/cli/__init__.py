"""The `bubble` command. Importing this costs nothing: each command's module is loaded when the command is called."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line `arguments` (None: those of this process) and leaves with `SystemExit`.

    The exit code is 0 when all went well, 1 when something failed, 2 when the command was not given the way it must be.
    """
    from bubble.cli.app import run

    raise SystemExit(run(arguments))
