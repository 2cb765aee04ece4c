"""Nothing that somebody wrote acts upon the terminal of who reads it, and nothing of it breaks the telling."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubble.assembler import Grouping
from bubble.protocol.events import SequencedEvent
from tests.assembler.logs import (
    Event,
    approval,
    chunk,
    delta,
    finished,
    logs,
    native,
    numbered,
    said,
    start,
    started,
    titled,
    tool,
)
from tests.cli.conversation.telling import tell

# Escape sequences, C1, a bell, backspaces, bidirectional overrides and isolates, separators, markup of the library that prints.
HOSTILE = "\x1b[2J\x9b31m\x07\b\b\r\u202e\u2066\u2028\x00\ud83d[red]:smile:[/red][link=https://evil.example]"

ACTS = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)

PLACES: dict[str, list[Event]] = {
    "text": said(HOSTILE),
    "reasoning": [start(kind="reasoning"), delta(HOSTILE, kind="reasoning")],
    "tool name": [tool(name=HOSTILE)],
    "dynamic tool": [tool(name=HOSTILE, dynamic=True, title=HOSTILE)],
    "call id": [approval(HOSTILE), tool(HOSTILE, name=HOSTILE)],
    "input": [tool(input=HOSTILE)],
    "input in a list": [tool(input=[{HOSTILE: HOSTILE}])],
    "output": [tool(), chunk("tool-output-available", toolCallId="c", output=HOSTILE)],
    "tool error": [tool(), chunk("tool-output-error", toolCallId="c", errorText=HOSTILE)],
    "input text": [
        chunk("tool-input-start", toolCallId="c", toolName="t"),
        chunk("tool-input-delta", toolCallId="c", inputTextDelta=HOSTILE),
    ],
    "reason": [tool(), approval(approved=False, reason=HOSTILE)],
    "file": [chunk("file", url=f"https://{HOSTILE}", mediaType=HOSTILE, filename=HOSTILE)],
    "source": [chunk("source-url", sourceId="s", url=HOSTILE, title=HOSTILE)],
    "document": [chunk("source-document", sourceId="s", mediaType=HOSTILE, title=HOSTILE, filename=HOSTILE)],
    "data": [chunk(f"data-{HOSTILE}", data=HOSTILE)],
    "artifact": [native("artifact", artifactId="a", op="create", name=HOSTILE, mediaType=HOSTILE, text=HOSTILE)],
    "artifact's url": [native("artifact", artifactId="a", op="create", url=HOSTILE)],
    "agent event": [native("agent_event", name=HOSTILE, data=HOSTILE)],
    "unknown kind": [native(HOSTILE, value=HOSTILE)],
    "error": [*said("x"), chunk("error", errorText=HOSTILE)],
    "title": [titled(HOSTILE)],
}


@pytest.mark.parametrize("width", [None, 60])
@pytest.mark.parametrize("place", PLACES)
def test_what_a_terminal_would_act_upon_is_written_as_an_escape(place: str, width: int | None) -> None:
    text = tell(numbered([started(), *PLACES[place]]), width=width)
    assert ACTS.search(text) is None
    joined = re.sub(r"\n\s+[│┆→✗]?\s*", "", text)
    assert r"\u202e\u2066\u2028" in joined
    assert r"\ud83d[red]:smile:[/red][link=https://evil.example]" in joined


def test_what_looks_like_markup_is_told_as_it_stands() -> None:
    text = tell(numbered([started(), *said("[bold red]x[/] :smile: https://example.org"), finished()]), width=80)
    assert "[bold red]x[/] :smile: https://example.org\n" in text


def test_an_input_without_a_bottom_does_not_break_the_telling() -> None:
    deep = [
        chunk("tool-input-start", toolCallId="c", toolName="t"),
        chunk("tool-input-delta", toolCallId="c", inputTextDelta="[" * 10_000),
    ]
    assert "▸ t" in tell(numbered([started(), *deep, finished()]))


def test_what_is_no_prose_is_not_told_without_end() -> None:
    text = tell(numbered([started(), tool(input="x" * 100_000), finished()]))
    assert len(text) < 2_000
    assert "100,000 characters" in text


def test_prose_is_told_to_its_end_in_a_pipe_however_long_its_lines_are() -> None:
    text = "word " * 20_000 + "end"
    assert f"          {text}\n" in tell(numbered([started(), *said(text), finished()]))


@given(log=logs(), at_once=st.integers(1, 20), grouping=st.sampled_from(["speaker", "run"]))
def test_any_log_is_told_without_a_hitch_and_without_a_character_that_acts(
    log: list[SequencedEvent], at_once: int, grouping: Grouping
) -> None:
    assert ACTS.search(tell(log, at_once=at_once, grouping=grouping, width=40)) is None
