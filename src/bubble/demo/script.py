"""What the demonstration plays: who says what, and what the bot does then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

__all__ = [
    "ADA",
    "BOT",
    "CAST",
    "COUNT",
    "GRACE",
    "LONG_REPLY",
    "REFUND",
    "SCRIPT",
    "TITLE",
    "Line",
    "Member",
    "all_replies",
    "bot_runs",
    "run_of_reply",
]

TITLE: Final = "A demonstration"

#: The ids of the runs in which the bot does something of its own.
REFUND: Final = "refund"
COUNT: Final = "count"


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
    """A person says something, and the bot acts upon it: it gives these recorded replies, a run each with a chunk every `pause` seconds,
    or does one of the things that it can do by itself.
    """

    speaker: Member
    text: str
    replies: Sequence[str] = ()
    act: Literal["refund", "count"] | None = None
    pause: float = 0.05


SCRIPT: Final = (
    Line(speaker=ADA, text="Hello, Echo!", replies=("greeting",), pause=0.06),
    Line(
        speaker=GRACE,
        text="Think about it first: what is the weather in Paris?",
        replies=("thinking", "weather"),
    ),
    Line(speaker=ADA, text="Send a family, and split its emoji between tokens.", replies=("family",), pause=0.04),
    Line(speaker=ADA, text="I was charged twice. Give me my 20 euros back, please.", act="refund"),
    Line(speaker=GRACE, text="Count to a thousand.", act="count", pause=0.1),
    Line(
        speaker=GRACE,
        text="And now everything you have, fast. I must leave for a moment.",
        replies=("everything",),
        pause=0.003,
    ),
)

#: The last and longest one: while it streams, Grace leaves and comes back.
LONG_REPLY: Final = SCRIPT[-1].replies[-1]


def all_replies() -> Sequence[str]:
    """The recordings of the whole play, in order."""
    return [reply for line in SCRIPT for reply in line.replies]


def run_of_reply(name: str) -> str:
    """The id of the run in which the bot gives a recorded reply."""
    return f"reply-{name}"


def bot_runs() -> Sequence[str]:
    """The ids of all runs of the bot, in order."""
    runs: list[str] = []
    for line in SCRIPT:
        runs += map(run_of_reply, line.replies)
        runs += [] if line.act is None else [line.act]
    return runs
