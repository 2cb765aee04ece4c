"""What the command line writes: tables and sentences for people, JSON for machines.

Results go to standard output, everything about how it is going to standard error. Colours and progress bars appear on a terminal
only. Text that came from a server is somebody else's: it is shown without its control characters, so that a thread's title cannot
move the cursor, recolour the terminal or turn the reading direction around.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import typer

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "Column",
    "JsonOption",
    "Steps",
    "YesOption",
    "confirm",
    "note",
    "plain",
    "progress",
    "say",
    "say_error",
    "show_fields",
    "show_table",
    "stdout_console",
    "working",
    "write_json",
    "write_raw",
]

JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="JSON for machines instead of words for people.")]
YesOption: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

# C0 and C1 controls, DEL, the bidirectional and invisible format characters, line and paragraph separators, lone surrogates.
_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)

# What a table leaves out of a time on the wire.
_SECONDS: Final = re.compile(r"^(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(?:\.\d+)?Z$")

_LEAST_TEXT: Final = 12
_GAP: Final = 3


def plain(text: str) -> str:
    """`text` with every character that a terminal would act upon written as an escape."""
    return _UNSAFE.sub(lambda match: match.group().encode("unicode_escape").decode("ascii"), text)


@lru_cache(maxsize=2)
def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    # What goes into a pipe or a file is not cut to anybody's window.
    width = None if stream.isatty() else 10_000
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True, width=width)


def stdout_console() -> Console:
    """The console of results."""
    return _console(stderr=False)


def say(text: str, *, style: str | None = None) -> None:
    """One line of result for people; `text` is made safe."""
    stdout_console().print("\n".join(plain(line) for line in text.split("\n")), style=style)


def note(text: str) -> None:
    """One line about how it is going, on standard error."""
    _console(stderr=True).print(plain(text), style="dim")


def say_error(sentence: str) -> None:
    """What went wrong, on standard error."""
    from rich.text import Text

    _console(stderr=True).print(Text.assemble(("bubble: ", "bold red"), plain(sentence)))


def write_json(value: object) -> None:
    """One JSON document on a line of its own: msgspec structs in their wire form, or plain data."""
    import msgspec

    from bubble.protocol.jsontext import dump_json

    write_raw(dump_json(msgspec.to_builtins(value)))


def write_raw(line: bytes) -> None:
    """The bytes and a newline, to standard output as they are."""
    sys.stdout.flush()
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `show_table`. Only `text` is folded where the terminal is too narrow; a `time` is shown to the minute, in UTC,
    which its heading says.

    On a terminal of fewer than `from_width` characters the column is left out.
    """

    name: str
    kind: Literal["id", "text", "time"] = "id"
    from_width: int = 0

    @property
    def heading(self) -> str:
        """What stands above it."""
        return f"{self.name} (UTC)" if self.kind == "time" else self.name


def show_table(columns: Sequence[str | Column], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """A table for people; the sentence `empty` where there are no rows (None or UNSET in a cell is shown as `-`).

    A column that is given as its name alone holds text.
    """
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    console = stdout_console()
    every = [Column(each, "text") if isinstance(each, str) else each for each in columns]
    shown = [index for index, each in enumerate(every) if console.width >= each.from_width]
    cells = [[_cell_of(every[index], row[index]) for index in shown] for row in rows]
    if not cells:
        note(empty)
        return
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else None, pad_edge=False, header_style="bold")
    needed = 0
    for place, column in enumerate(every[index] for index in shown):
        if column.kind == "text":
            needed += _LEAST_TEXT
            table.add_column(column.heading, overflow="fold")
        else:  # its whole width is kept: half an id can be neither read nor copied
            width = max(cell_len(column.heading), *(cell_len(row[place]) for row in cells))
            needed += width + _GAP
            table.add_column(column.heading, overflow="ignore", no_wrap=True, min_width=width)
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    if needed > console.width:
        table.width = needed  # the terminal breaks the lines, at least nothing is lost
    console.print(table, soft_wrap=False, crop=False)


def _cell_of(column: Column, value: object) -> str:
    cell = _cell(value)
    return _SECONDS.sub(r"\1 \2", cell) if column.kind == "time" else cell


def show_fields(fields: Iterable[tuple[str, object]]) -> None:
    """`name  value` lines for people; fields without a value (None, UNSET, empty) are left out."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in fields:
        if not _is_absent(value) and value != "":
            table.add_row(Text(name), Text(_cell(value)))
    stdout_console().print(table, soft_wrap=False)


def _is_absent(value: object) -> bool:
    return value is None or type(value).__name__ == "UnsetType"


def _cell(value: object) -> str:
    return "-" if _is_absent(value) else plain(str(value))


def confirm(question: str, *, yes: bool) -> None:
    """Returns if the person agrees (or `yes`); without a terminal to ask on, `--yes` is needed."""
    from bubble.cli.failures import CommandError, UsageProblem

    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageProblem(f"{question} There is nobody to ask here: add --yes if you mean it.")
    if not typer.confirm(plain(question), err=True):
        raise CommandError("Nothing was changed.")


class Steps:
    """Counts the steps of a long work; shown while it goes on, on a terminal."""

    def __init__(self) -> None:
        self.done = 0

    def advance(self, steps: int = 1) -> None:
        """So many more steps are done."""
        self.done += steps


@contextmanager
def progress(label: str, *, total: int | None) -> Iterator[Steps]:
    """A progress bar on standard error for as long as the block runs; silent where that is no terminal."""
    console = _console(stderr=True)
    if not console.is_terminal:
        yield Steps()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(plain(label), total=total)

        class _Shown(Steps):
            def advance(self, steps: int = 1) -> None:
                super().advance(steps)
                bar.advance(task, steps)

        yield _Shown()


@contextmanager
def working(label: str) -> Iterator[None]:
    """A sign on standard error that something of unknown length goes on; silent where that is no terminal."""
    console = _console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(plain(label)):
        yield
