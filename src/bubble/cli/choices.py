"""For commands that find out by themselves what they are about: how a choice is put, and how it is told what was done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubble.cli.output import note, write_raw

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubble.protocol.events import SequencedEvent

__all__ = ["named", "tell"]

# So many are named where there is a choice.
_NAMED: Final = 5


def named(choices: Sequence[object]) -> str:
    """The choices in words: some of them, and how many more there are."""
    more = f" and {len(choices) - _NAMED} more" if len(choices) > _NAMED else ""
    return ", ".join(map(str, choices[:_NAMED])) + more


def tell(stored: SequencedEvent, *, as_json: bool, said: str) -> None:
    """That an event was appended: the event itself on standard output, or a sentence on standard error."""
    if as_json:
        write_raw(stored.text)
    else:
        note(said)
