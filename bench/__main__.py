"""`python -m bench [--json] [--quick] [figure…]`: takes the figures and prints one table. It starts what it needs and stops it again."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from bench.figure import Bench, Figure, Scale
from bench.figures import FIGURES
from bench.report import as_json, machine, table
from bench.runner import Line, run_figure

__all__ = ["main"]

_FULL: Final = Scale(rounds=5, factor=1.0)
_QUICK: Final = Scale(rounds=3, factor=0.2)
_QUIET_LOAD: Final = 0.5


def main(arguments: Sequence[str] | None = None) -> int:
    """Takes the figures that are asked for and prints them. No figure makes this fail, only what could not be measured does."""
    parser = _parser()
    given = parser.parse_args(arguments)
    known = {figure.name: figure for figure in FIGURES}
    unknown = sorted(set(given.figures) - set(known))
    if unknown:
        parser.error(f"there is no figure {', '.join(unknown)}; there are {', '.join(known)}")
    if sys.platform != "linux":
        parser.error("the figures need Linux: epoll, /proc and MSG_TRUNC")
    chosen = [known[name] for name in given.figures] or list(FIGURES)
    lines, about = _take(chosen, given)
    print(json.dumps(as_json(lines, about), indent=2, ensure_ascii=False) if given.json else _text(lines, about))
    return 0


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="python -m bench",
        description="Take the figures, each beside a reference on this machine.",
        epilog="Figures: " + ", ".join(figure.name for figure in FIGURES),
        allow_abbrev=False,
    )
    parser.add_argument("figures", nargs="*", metavar="figure", help="only these")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller: an impression, no figure to quote")
    parser.add_argument("--rounds", type=_count, metavar="N", help="how often everything is measured")
    parser.add_argument("--directory", type=Path, metavar="DIR", help="where data goes: the disk that is measured")
    parser.add_argument("--store", metavar="URL", help="another store than the embedded one, for instance memory:")
    return parser


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


def _take(chosen: Sequence[Figure], given: Namespace) -> tuple[list[Line], Mapping[str, object]]:
    scale = _QUICK if given.quick else _FULL
    scale = replace(scale, rounds=given.rounds or scale.rounds)
    lines: list[Line] = []
    with tempfile.TemporaryDirectory(prefix="bench-", dir=given.directory, ignore_cleanup_errors=True) as name:
        about = machine(Path(name))
        for number, figure in enumerate(chosen):
            directory = Path(name) / str(number)
            directory.mkdir()
            lines += run_figure(figure, Bench(directory=directory, scale=scale, store=given.store), tell=_tell)
            shutil.rmtree(directory, ignore_errors=True)
    _tell("")
    return lines, about


def _tell(text: str) -> None:
    """Says on a terminal what is being done, on one line that is written over."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def _text(lines: Sequence[Line], about: Mapping[str, object]) -> str:
    load = float(str(about["load"]))
    notes = [
        "",
        "Medians over the rounds; a ratio is the median of the rounds' ratios. Busy: share of a processor, server / load.",
        f"Python {about['python']}, SQLite {about['sqlite']}, {about['system']}.",
        f"{about['processors']} processors; data on {about['fileSystem']}.",
    ]
    if load > _QUIET_LOAD:
        notes.append(f"The machine was not quiet when this began (load {load:.1f}): take the figures again.")
    return "\n".join([table(lines), *notes])


if __name__ == "__main__":
    sys.exit(main())
