"""The table, and the same for machines."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import apsw

from bench.figure import Bar, Unit
from bench.runner import Line, Spread

__all__ = ["as_json", "machine", "table"]

_HEADINGS: Final = ("FIGURE", "BUBBLE", "(SPREAD)", "REFERENCE", "", "RATIO", "BAR", "HOLDS", "BUSY")
_NUMBERS: Final = frozenset({1, 3, 5})
_THOUSAND: Final = 1_000
_TEN_THOUSAND: Final = 10_000
_MILLION: Final = 1_000_000


def machine(directory: Path) -> Mapping[str, object]:
    """What the figures were taken on. `load` is how many processes already wanted to run when it began."""
    return {
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processors": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "fileSystem": _file_system(directory),
    }


def _file_system(directory: Path) -> str:
    """The kind of file system below a directory: what `durable` means there."""
    best, kind = "", "unknown"
    for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines():
        _, mounted, name, *_ = line.split()
        if directory.resolve().is_relative_to(mounted) and len(mounted) >= len(best):
            best, kind = mounted, name
    return kind


def as_json(lines: Iterable[Line], about: Mapping[str, object]) -> Mapping[str, object]:
    """Everything, as plain data."""
    return {"machine": dict(about), "figures": [_plain(line) for line in lines]}


def _plain(line: Line) -> Mapping[str, object]:
    bar = line.bar
    return {
        "figure": line.figure,
        "title": line.title,
        "unit": line.unit,
        "bubble": _plain_spread(line.ours),
        "against": line.against or None,
        "reference": _plain_spread(line.reference),
        "ratio": _plain_spread(line.ratio),
        "bar": None if bar is None else {"of": bar.of, "atLeast": bar.at_least, "atMost": bar.at_most},
        "holds": line.holds,
        "busy": None if line.busy is None else {"server": line.busy[0], "load": line.busy[1]},
    }


def _plain_spread(spread: Spread | None) -> Mapping[str, float] | None:
    return None if spread is None else {"median": spread.median, "least": spread.least, "most": spread.most}


def table(lines: Sequence[Line]) -> str:
    """The table as text."""
    cells = [_HEADINGS, *(_cells(line) for line in lines)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(_HEADINGS))]
    return "\n".join(
        "  ".join(
            text.rjust(width) if column in _NUMBERS else text.ljust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    )


def _cells(line: Line) -> tuple[str, ...]:
    reference = "" if line.reference is None else _number(line.reference.median, line.unit)
    spread = f"({_number(line.ours.least, line.unit)}–{_number(line.ours.most, line.unit)})"
    busy = "" if line.busy is None else f"{line.busy[0]:.0%} / {line.busy[1]:.0%}"
    return (
        line.title,
        f"{_number(line.ours.median, line.unit)} {line.unit}",
        spread,
        reference,
        line.against,
        "" if line.ratio is None else f"{line.ratio.median:.2f} ×",
        _bar(line.bar, line.unit),
        {None: "", True: "yes", False: "NO"}[line.holds],
        busy,
    )


def _bar(bar: Bar | None, unit: Unit) -> str:
    if bar is None:
        return ""
    sign, limit = ("≥", bar.at_least) if bar.at_least is not None else ("≤", bar.at_most)
    return f"{sign} {limit:g} {'×' if bar.of == 'ratio' else unit}"


def _number(value: float, unit: Unit) -> str:
    if unit == "/s" and value >= _MILLION:
        return f"{value / _MILLION:.2f} M"
    if abs(value) >= _TEN_THOUSAND:
        return f"{value / _THOUSAND:.1f} k"
    return f"{value:,.0f}" if abs(value) >= _THOUSAND else f"{value:.3g}"
