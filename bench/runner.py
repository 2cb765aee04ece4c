"""Takes figures: in each round every party is measured once, in an order that turns round, so that none always comes first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median
from typing import Final

from bench.figure import Bar, Bench, Figure, Parties, Round, Row, Sample, Unit

__all__ = ["Line", "Spread", "run_figure"]

_BUSY: Final = ("server_busy", "load_busy")


@dataclass(frozen=True, slots=True)
class Spread:
    """What came out over the rounds."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of at least one value."""
        return cls(median(values), min(values), max(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One row of a figure with its numbers. `busy`: the share of a processor that server and load used for ours, where measured."""

    figure: str
    title: str
    unit: Unit
    ours: Spread
    against: str
    reference: Spread | None
    ratio: Spread | None
    bar: Bar | None
    busy: tuple[float, float] | None

    @property
    def holds(self) -> bool | None:
        """Whether the bar is kept; None if there is none."""
        if self.bar is None:
            return None
        return self.bar.holds(value=self.ours.median, ratio=None if self.ratio is None else self.ratio.median)


def run_figure(figure: Figure, bench: Bench, *, tell: Callable[[str], None]) -> list[Line]:
    """All rows of a figure whose parties are here. `tell` hears what is being done."""
    with ExitStack() as stack:
        tell(f"{figure.name}: starting")
        parties = figure.open(bench, stack)
        rounds = list(_rounds(figure, parties, bench.scale.rounds * figure.repeat, tell))
    return [_line(figure, row, rounds) for row in figure.rows if set(row.parties) <= set(parties)]


def _rounds(figure: Figure, parties: Parties, count: int, tell: Callable[[str], None]) -> Iterator[Round]:
    names = list(parties)
    for number in range(count):
        measured: dict[str, Sample] = {}
        for name in names if number % 2 == 0 else reversed(names):
            tell(f"{figure.name}: round {number + 1} of {count}, {name}")
            measured[name] = parties[name]()
        yield measured


def _line(figure: Figure, row: Row, rounds: Sequence[Round]) -> Line:
    ours = [row.ours(measured) for measured in rounds]
    reference = None if row.reference is None else [row.reference(measured) for measured in rounds]
    ratios = None if reference is None else [mine / its for mine, its in zip(ours, reference, strict=True) if its > 0]
    return Line(
        figure=figure.name,
        title=row.title,
        unit=row.unit,
        ours=Spread.of(ours),
        against=row.against,
        reference=None if reference is None else Spread.of(reference),
        ratio=Spread.of(ratios) if ratios else None,
        bar=row.bar,
        busy=_busy([measured[row.parties[0]] for measured in rounds]),
    )


def _busy(samples: Sequence[Sample]) -> tuple[float, float] | None:
    if not all(name in sample for sample in samples for name in _BUSY):
        return None
    server, load = (median(sample[name] for sample in samples) for name in _BUSY)
    return server, load
