"""The recorded replies are what their README says."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest
from msgspec import Raw

from bubble.demo.recordings import recording, recordings
from bubble.demo.script import all_replies
from bubble.protocol.events import MessagePart, decode_event, encode_event
from bubble.protocol.jsontext import load_json


def described() -> dict[str, int]:
    """File names and numbers of chunks, from the README's table."""
    text = files("bubble.demo").joinpath("recordings", "README.md").read_text(encoding="utf-8")
    return {name: int(count) for name, count in re.findall(r"^\| `(\w+)\.jsonl` \| (\d+) \|", text, re.MULTILINE)}


def test_the_readme_lists_every_recording_with_its_length() -> None:
    assert described() == {name: len(recording(name)) for name in recordings()}


def test_the_play_uses_every_recording() -> None:
    assert set(all_replies()) == set(recordings())


@pytest.mark.parametrize("name", recordings())
def test_each_chunk_is_a_typed_object_that_keeps_its_bytes_in_an_event(name: str) -> None:
    for chunk in recording(name):
        value = load_json(chunk)
        assert isinstance(value, dict)
        assert isinstance(value["type"], str)
        event = MessagePart(principal_id="echo", run_id="r", part=Raw(chunk), version="ai-sdk-v6")
        kept = decode_event(encode_event(event)).event
        assert isinstance(kept, MessagePart)
        assert bytes(kept.part) == chunk
