"""What a figure is made of.

A figure has parties, the product and what it is held against, which are measured in turn, round after round; and rows, each of which reads
a number of the product and one of a reference out of every round. A row's ratio is the median of the rounds' ratios: what slows the machine
down for a while slows down both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

__all__ = ["Bar", "Bench", "Figure", "Measure", "Parties", "Reading", "Round", "Row", "Sample", "Scale", "Unit"]

Sample: TypeAlias = Mapping[str, float]
Round: TypeAlias = Mapping[str, Sample]
Measure: TypeAlias = Callable[[], Sample]
Parties: TypeAlias = Mapping[str, Measure]
Reading: TypeAlias = Callable[[Round], float]
Unit: TypeAlias = Literal["/s", "ms", "us", "KiB"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much is done: `rounds` of everything, sizes and durations multiplied by `factor`."""

    rounds: int
    factor: float

    def count(self, full: int, *, least: int = 10) -> int:
        """So many at this scale."""
        return max(least, int(full * self.factor))

    def seconds(self, full: float, *, least: float = 0.05) -> float:
        """So long at this scale."""
        return max(least, full * self.factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where and how much to measure. `store` None is the embedded store in `directory`; otherwise its URL, for instance `memory:`."""

    directory: Path
    scale: Scale
    store: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """What is promised: the ratio to the reference, or the value itself, is `at_least` or `at_most` this."""

    of: Literal["ratio", "value"] = "ratio"
    at_least: float | None = None
    at_most: float | None = None

    def holds(self, *, value: float, ratio: float | None) -> bool:
        """Whether it is kept."""
        judged = value if self.of == "value" else ratio
        if judged is None:
            return False
        return (self.at_least is None or judged >= self.at_least) and (self.at_most is None or judged <= self.at_most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table. `parties` are those it reads; where one of them is not here, neither is the row."""

    title: str
    unit: Unit
    parties: Sequence[str]
    ours: Reading
    reference: Reading | None = None
    against: str = ""
    bar: Bar | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A measurement: `open` makes its parties, which live until the stack is closed. Each party is measured `repeat` times a round."""

    name: str
    open: Callable[[Bench, ExitStack], Parties]
    rows: Sequence[Row]
    repeat: int = 1
