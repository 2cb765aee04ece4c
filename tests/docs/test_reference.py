"""The reference says what the code does: tables made from it, examples that it accepts, numbers that are its defaults."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from bubble.assembler import BubbleMessage, BubbleMetadata
from bubble.client.closing import come_back
from bubble.client.transport import SocketClosed
from bubble.hub import HubStatistics
from bubble.protocol.errors import ERROR_CODES
from bubble.protocol.events import EVENT_TYPES, SequencedEvent, decode_event
from bubble.protocol.frames import ClientFrame, ServerFrame
from bubble.protocol.limits import Limits
from bubble.server.messages.following import MessageStatistics
from bubble.server.metrics import Metrics
from bubble.server.options import RateOptions, StreamOptions
from bubble.server.settings import Settings
from bubble.server.watching.following import WatchStatistics
from bubble.server.websocket import driver
from bubble.store.records import StoreStatistics
from tests.docs.generated import REGIONS
from tests.docs.markdown import ROOT, Block, blocks, pages, regions

REFERENCE = ROOT / "docs" / "reference"


def text_of(name: str) -> str:
    """A page of the reference, its lines joined."""
    return " ".join((REFERENCE / name).read_text(encoding="utf-8").split())


def examples(language: str) -> list[Block]:
    """The blocks of a language, but for files that a reader saves: those are tried with their page."""
    return [
        block for page in pages() for block in blocks(page) if block.language == language and "file" not in block.how
    ]


@pytest.mark.parametrize("page", list(REGIONS), ids=lambda page: page.name)
def test_what_is_made_from_the_code_is_up_to_date(page: Path) -> None:
    expected = {name: make() for name, make in REGIONS[page].items()}
    assert regions(page) == expected, "`python -m tests.docs.generated` writes it anew"


@pytest.mark.parametrize("block", examples("json"), ids=str)
def test_every_example_of_json_is_what_the_code_reads(block: Block) -> None:
    value = json.loads(block.text)
    text = block.text.encode("utf-8")
    kind = value.get("type")
    if "seq" in value:
        assert SequencedEvent.from_text(text).seq == value["seq"]
    elif kind in EVENT_TYPES:
        decode_event(text)
    elif kind in {each.__struct_config__.tag for each in get_args(ClientFrame)}:
        frame = msgspec.json.decode(text, type=ClientFrame)
        if kind == "thread.append":
            decode_event(json.dumps(value["event"]).encode())
        assert frame.__struct_config__.tag == kind
    elif kind is not None:
        msgspec.json.decode(text, type=ServerFrame)
    elif "parts" in value:
        msgspec.json.decode(text, type=BubbleMessage)
        assert set(value["metadata"]["bubble"]) <= set(BubbleMetadata.__annotations__)
    else:
        assert value["code"] in ERROR_CODES
        assert set(value) <= {"code", "message", "details"}


@pytest.mark.parametrize("block", examples("toml"), ids=str)
def test_every_example_of_a_file_of_settings_is_accepted(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("BUBBLE_")]:
        monkeypatch.delenv(name)
    file = tmp_path / "bubble.toml"
    file.write_text(block.text, encoding="utf-8")
    Settings(config=file)


def test_the_close_codes_are_those_that_there_are() -> None:
    named = {int(code) for code in re.findall(r"^\| (\d{4})", (REFERENCE / "websocket.md").read_text(), re.MULTILINE)}
    used = {value for name, value in vars(driver).items() if name.startswith("CLOSE_")}
    assert used | {1009, 4408} <= named
    assert come_back(SocketClosed(4401, "")) == "with_another_token"
    assert come_back(SocketClosed(4429, "10")) == "after_seconds"


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        ("websocket.md", f"more than {Limits().subscriptions:,} subscriptions on a connection"),
        ("websocket.md", f"more than {StreamOptions().connections_per_principal:,} connections of a principal"),
        ("websocket.md", f"a frame over 1 MiB + {(Limits().frame_bytes - Limits().event_bytes) // 1024} KiB"),
        ("websocket.md", f"a frame over {Limits().frame_hard_bytes // 1024**2} MiB"),
        ("websocket.md", f"pings every {StreamOptions().ping_interval:g} seconds"),
        ("websocket.md", f"for {StreamOptions().peer_timeout:g} seconds sends nothing"),
        ("websocket.md", f"faster than {RateOptions().frames_per_second:,.0f} a second"),
        ("websocket.md", f"(bursts of {RateOptions().frames_burst:,})"),
        ("websocket.md", f"faster than {driver.OTHER_FRAMES_PER_SECOND:,.0f} a second"),
        ("websocket.md", f"(bursts of {driver.OTHER_FRAMES_BURST:,.0f})"),
        ("websocket.md", f"kept {Limits().idempotency_hours} hours"),
        ("http.md", f"kept for {Limits().idempotency_hours} hours"),
        ("http.md", f"`limit` is {Limits().page_default} by default; one above {Limits().page_events:,} is clamped"),
        ("http.md", f"stops at {Limits().page_bytes // 1024**2} MiB"),
        ("http.md", f"`waitMs` (up to {Limits().wait_ms:,})"),
        ("http.md", f"a comment every {StreamOptions().keep_alive:g} seconds"),
    ],
)
def test_a_number_in_the_prose_is_the_default(page: str, sentence: str) -> None:
    assert sentence in text_of(page)


def test_the_figures_for_prometheus_are_those_that_there_are() -> None:
    store = StoreStatistics(appends=0, refused=0, commits=0, commit_seconds=0.0, largest_batch=0, queued=0)
    hub = HubStatistics(connections=0, subscriptions=0, tails=0, tasks=0, deliveries=0)
    messages = MessageStatistics(followings=0, viewers=0, folded=0)
    watches = WatchStatistics(sessions=0, watchers=0)
    metrics = Metrics(store=lambda: store, hub=lambda: hub, messages=lambda: messages, watches=lambda: watches)
    metrics.request("GET", "/healthz", 200, seconds=0.001)
    metrics.refused("http")
    told = set(re.findall(r"^# TYPE (\w+) (?!gauge).*$|^# TYPE (\w+) gauge$", metrics.text().decode(), re.MULTILINE))
    names = {counter or gauge for counter, gauge in told}
    named = set(re.findall(r"`(bubble_\w+)`", (REFERENCE / "http.md").read_text(encoding="utf-8")))
    assert {name for name in names if not name.endswith("_created")} == named
