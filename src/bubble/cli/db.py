"""`bubble db`: check, back up and migrate the embedded store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from bubble.cli.failures import CommandError, UsageProblem
from bubble.cli.options import ConfigOption, DataOption, StoreOption, settings
from bubble.cli.output import Column, JsonOption, note, show_table, working, write_json
from bubble.cli.remote import run_async
from bubble.protocol.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from bubble.store.records import Problem

__all__ = ["app"]

T = TypeVar("T")

app = typer.Typer(add_completion=False, name="db", help="Check, back up and migrate a store.")


@app.command()
def check(
    *, config: ConfigOption = None, data: DataOption = None, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """See whether the store is sound: SQLite's own check, then every thread's seqs, head, times and runs.

    Works beside a running server. Exit code 1 if something is wrong.
    """
    path = _file(config, data, store)
    with working(f"Checking {path}…"):
        problems = _at_work(_check(path))
    if as_json:
        write_json([{"threadId": each.thread_id, "message": each.message} for each in problems])
    elif problems:
        show_table((Column("THREAD"), "PROBLEM"), ((each.thread_id, each.message) for each in problems), empty="")
    else:
        note(f"{path} is sound.")
    if problems:
        found = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise CommandError(f"{path} has {found}: keep a copy of it, then restore a backup.")


async def _check(path: Path) -> Sequence[Problem]:
    from bubble.store.sqlite import check_file

    return await check_file(path)


@app.command()
def backup(
    target: Annotated[Path, typer.Argument(metavar="FILE", help="Where to; it must not exist yet.")],
    *,
    config: ConfigOption = None,
    data: DataOption = None,
    store: StoreOption = None,
) -> None:
    """Copy the store as it is at this moment, also beside a running server; the copy is a store of its own."""
    path = _file(config, data, store)
    with working(f"Copying {path}…"):
        _at_work(_backup(path, target))
    note(f"{path} is copied to {target} ({target.stat().st_size / 2**20:.1f} MiB).")


async def _backup(path: Path, target: Path) -> None:
    from bubble.store.sqlite import backup_file

    await backup_file(path, target)


@app.command()
def migrate(*, config: ConfigOption = None, data: DataOption = None, store: StoreOption = None) -> None:
    """Bring the store up to what this version of Bubble needs; its server must be stopped. There is no way back but a backup."""
    path = _file(config, data, store)
    with working(f"Migrating {path}…"):
        version = _at_work(_migrate(path))
    note(f"{path} has schema {version}, which is what this Bubble needs.")


async def _migrate(path: Path) -> int:
    from bubble.store.sqlite import SqliteStore

    async with await SqliteStore.open(path) as store:
        return store.schema_version


def _at_work(work: Coroutine[object, object, T]) -> T:
    try:
        return run_async(work)
    except Unavailable as error:  # of the file itself: no server is to blame that `bubble doctor` could look at
        raise CommandError(error.message) from error


def _file(config: Path | None, data: Path | None, store: str | None) -> Path:
    url = settings(config=config, data=data, store=store).store_url
    if not url.startswith("sqlite:///"):
        raise UsageProblem(f"{url} has no file: name the store's with --data or --store sqlite:///path.")
    path = Path(url.removeprefix("sqlite:///"))
    if not path.is_file():
        raise CommandError(f"There is no store {path}: `bubble serve` makes one, --data and --store name another one.")
    return path
