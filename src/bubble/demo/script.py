"""What the demonstration plays: who says what, and which recorded replies the bot gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["ADA", "BOT", "CAST", "GRACE", "SCRIPT", "TITLE", "Line", "Member", "all_replies"]

TITLE: Final = "A demonstration"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """Somebody who takes part."""

    principal_id: str
    display_name: str
    is_bot: bool = False


ADA: Final = Member(principal_id="ada", display_name="Ada")
GRACE: Final = Member(principal_id="grace", display_name="Grace")
BOT: Final = Member(principal_id="echo", display_name="Echo", is_bot=True)
CAST: Final = (ADA, GRACE, BOT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A person says something; the bot answers with these recordings, a run each, a chunk every `pause` seconds.

    `absence`: while the last reply of this line streams, Grace leaves and comes back.
    """

    speaker: Member
    text: str
    replies: Sequence[str]
    pause: float
    absence: bool = False


SCRIPT: Final = (
    Line(speaker=ADA, text="Hello, Echo!", replies=("greeting",), pause=0.06),
    Line(
        speaker=GRACE,
        text="Think about it first: what is the weather in Paris?",
        replies=("thinking", "weather"),
        pause=0.05,
    ),
    Line(speaker=ADA, text="Send a family, and split its emoji between tokens.", replies=("family",), pause=0.04),
    Line(
        speaker=GRACE,
        text="And now everything you have, fast. I must leave for a moment.",
        replies=("everything",),
        pause=0.003,
        absence=True,
    ),
)


def all_replies() -> Sequence[str]:
    """The recordings of the whole play, in order."""
    return [reply for line in SCRIPT for reply in line.replies]
