"""Two bots must not talk for ever. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bubble.amphibian.pending import PendingRun

__all__ = ["BotTurns"]

_MOST_KEPT: Final = 50


class BotTurns:
    """Counts the turns in a row in which no person spoke; after `most` of them it is time to pause until one does."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._in_a_row = 0

    @property
    def notice(self) -> str:
        """What is said at the beginning of a pause, once."""
        return f"{self._most} turns in a row without a word from a person: this bot pauses until somebody writes."

    def keeps_waiting(self, runs: Sequence[PendingRun]) -> bool:
        """Whether there is a pause and these runs do not end it."""
        return self._in_a_row > self._most and not _has_person(runs)

    def allow(self, runs: Sequence[PendingRun]) -> bool:
        """Counts a turn with these runs; False if it begins a pause instead."""
        self._in_a_row = 0 if _has_person(runs) else self._in_a_row + 1
        return self._in_a_row <= self._most

    def those_to_keep(self, runs: Sequence[PendingRun]) -> Sequence[PendingRun]:
        """The newest of what was said in a pause, as much as a person's next words should come with."""
        return runs[-_MOST_KEPT:]


def _has_person(runs: Sequence[PendingRun]) -> bool:
    return any(run.kind == "user_input" for run in runs)
