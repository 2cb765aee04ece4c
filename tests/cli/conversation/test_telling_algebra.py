"""However a conversation comes in, all that was said is told, once, in order, below the heading of who said it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bubble.assembler import Grouping
from tests.assembler.logs import Event, delta, end, finished, numbered, start, started
from tests.cli.conversation.telling import tell

SPEAKERS = ("ann", "bob", "cy")


TURNS = st.lists(st.tuples(st.sampled_from(SPEAKERS), st.sampled_from(["", "\n", " ", "\n\n"])), max_size=40)


def conversation(turns: list[tuple[str, str]]) -> list[Event]:
    """One run per speaker, all open at once; each delta is a word of its own and what stands before it."""
    log = [event for who in SPEAKERS for event in (started(who, who), start(who, who))]
    log += [delta(f"{space}w{number}.", who, who) for number, (who, space) in enumerate(turns)]
    return log + [event for who in SPEAKERS for event in (end(who, who), finished(who, who))]


def words_by_speaker(text: str) -> dict[str, str]:
    said, speaking = dict.fromkeys(SPEAKERS, ""), ""
    for line in text.splitlines()[1:]:
        if line.startswith(" "):
            said[speaking] += line.strip()
        elif line:
            speaking = line.split()[1]
    return {who: said[who].replace(" ", "") for who in SPEAKERS}


@given(turns=TURNS, at_once=st.integers(1, 12), grouping=st.sampled_from(["speaker", "run"]))
def test_every_word_is_told_once_and_in_order(turns: list[tuple[str, str]], at_once: int, grouping: Grouping) -> None:
    text = tell(numbered(conversation(turns)), at_once=at_once, grouping=grouping)
    expected = {
        who: "".join(f"w{number}." for number, (speaker, _) in enumerate(turns) if speaker == who) for who in SPEAKERS
    }
    assert words_by_speaker(text) == expected


@given(turns=TURNS, at_once=st.integers(1, 12))
def test_by_speaker_words_stand_in_the_order_in_which_they_were_said(
    turns: list[tuple[str, str]], at_once: int
) -> None:
    text = tell(numbered(conversation(turns)), at_once=at_once)
    told = [word for line in text.splitlines() if line.startswith(" ") for word in line.split()]
    assert "".join(told) == "".join(f"w{number}." for number, _ in enumerate(turns))
