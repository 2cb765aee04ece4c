"""Random logs: what holds for every one of them, however it reaches the assembler.

Each property runs on a few logs always, and on thousands in the slow part of the suite.
"""

from __future__ import annotations

import asyncio
import copy
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubble.assembler import (
    BubbleMessage,
    Grouping,
    MessagePart,
    NativePart,
    ThreadAssembler,
    ThreadSnapshot,
    create_assembler,
    message_changes,
)
from bubble.assembler.records import FinishRecord, PartRecord, read_record
from bubble.extensions.artifacts import ArtifactHandler
from bubble.protocol.events import SequencedEvent
from tests.assembler.logs import bubble, delta, logs, numbered
from tests.assembler.threads import ASSEMBLER, run

Log = list[SequencedEvent]

GROUPINGS = st.sampled_from(["speaker", "run"])

few_and_thousands = pytest.mark.parametrize("examples", [60, pytest.param(2_000, marks=pytest.mark.slow)])


def hold(examples: int, claim: Callable[..., None], *strategies: st.SearchStrategy[Any]) -> None:
    """Runs `claim` on that many examples."""
    settings(max_examples=examples)(given(*strategies)(claim))()


def assembled(log: Log, grouping: Grouping) -> ThreadSnapshot:
    return run(ASSEMBLER.assemble(log, grouping=grouping))


async def applied(log: Log, grouping: Grouping) -> ThreadAssembler:
    thread = ASSEMBLER.open(grouping=grouping)
    await thread.apply(log)
    return thread


CUTS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5), st.booleans()), max_size=6)


def check_batches(log: Log, cuts: list[tuple[int, int, bool]], grouping: Grouping) -> None:
    async def in_batches() -> ThreadSnapshot:
        thread = ASSEMBLER.open(grouping=grouping)
        for stop, overlap, looks in [*sorted(cuts), (len(log), 3, False)]:
            head = (await thread.snapshot()).head_seq if looks else 0
            await thread.apply(log[max(0, head - overlap) : stop])
        return await thread.snapshot()

    assert run(in_batches()) == assembled(log, grouping)


@few_and_thousands
@pytest.mark.requirement("TA-91", "TA-13", "TA-14")
def test_any_split_and_any_overlap_gives_what_one_assembly_gives(examples: int) -> None:
    hold(examples, check_batches, logs(), CUTS, GROUPINGS)


def check_prepends(log: Log, start: int, pages: list[tuple[int, int]], grouping: Grouping) -> None:
    async def prepended() -> ThreadSnapshot:
        thread = await applied(log[start % len(log) :], grouping)
        for first, length in [*pages, (0, len(log))]:
            await thread.prepend(reversed(log[first : first + length]))
        return await thread.snapshot()

    assert run(prepended()) == assembled(log, grouping)


@few_and_thousands
@pytest.mark.requirement("TA-92", "TA-53")
def test_any_order_of_prepends_gives_what_one_assembly_gives(examples: int) -> None:
    pages = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 10)), max_size=4)
    hold(examples, check_prepends, logs(min_size=1), st.integers(0, 30), pages, GROUPINGS)


def check_prepend_changes(log: Log, start: int, grouping: Grouping) -> None:
    async def prepend() -> tuple[ThreadSnapshot, bool, ThreadSnapshot]:
        thread = await applied(log[start:], grouping)
        before = await thread.snapshot()
        return before, (await thread.prepend(log)).changed, await thread.snapshot()

    before, changed, after = run(prepend())
    assert changed == (before.messages != after.messages)
    old = {message["id"]: message for message in before.messages}
    for message in after.messages:
        if message == old.get(message["id"]):
            assert message is old[message["id"]], "an equal message must be the same object"


@few_and_thousands
@pytest.mark.requirement("TA-06")
def test_a_prepend_tells_exactly_whether_it_changed_a_message(examples: int) -> None:
    hold(examples, check_prepend_changes, logs(), st.integers(0, 10), GROUPINGS)


def check_steps(log: Log, grouping: Grouping) -> None:
    async def one_by_one() -> list[tuple[bool, ThreadSnapshot, ThreadSnapshot]]:
        thread = ASSEMBLER.open(grouping=grouping)
        steps = []
        for event in log:
            changed = (await thread.apply([event])).changed
            snapshot = await thread.snapshot()
            steps.append((changed, snapshot, copy.deepcopy(snapshot)))
        return steps

    empty = ThreadSnapshot((), 0, None)
    steps = [(False, empty, empty), *run(one_by_one())]
    for (_, before, old), (changed, after, new) in pairwise(steps):
        assert changed == (old.messages != new.messages)
        ids, later_ids = ([message["id"] for message in each.messages] for each in (before, after))
        assert later_ids[: len(ids)] == ids, "ids and their order stay as the head grows"
        assert len(set(later_ids)) == len(later_ids)
        check_changes(before, after)
    for _, snapshot, as_it_was in steps:
        assert snapshot == as_it_was, "what was handed out never changes"


def check_changes(before: ThreadSnapshot, after: ThreadSnapshot) -> None:
    changes = message_changes(before, after)
    kept = {message["id"]: message for message in before.messages if message["id"] not in changes.removals}
    kept |= {message["id"]: message for message in changes.upserts}
    assert kept == {message["id"]: message for message in after.messages}
    old = {message["id"]: message for message in before.messages}
    assert all(message != old.get(message["id"]) for message in changes.upserts), "nothing is told without need"


@few_and_thousands
@pytest.mark.requirement("TA-06", "TA-15", "TA-53", "TA-99")
def test_each_event_tells_exactly_whether_it_changed_a_message_and_changes_nothing_handed_out(examples: int) -> None:
    hold(examples, check_steps, logs(), GROUPINGS)


def units(text: object) -> bytes:
    return str(text).encode("utf-16-le", "surrogatepass")


def expected_part(old: MessagePart, new: MessagePart) -> tuple[bool | None, MessagePart]:
    """Whether a part that was there at the clear must be in the window (None: it may), and how."""
    if new["type"] not in ("text", "reasoning"):
        return (True if new != old else None), new
    assert units(new["text"]).startswith(units(old["text"]))
    rest = units(new["text"])[len(units(old["text"])) :].decode("utf-16-le", "surrogatepass")
    return bool(rest), {**new, "text": rest}


def fits(expected: list[tuple[bool | None, MessagePart]], parts: Sequence[MessagePart]) -> bool:
    """Whether `parts` are the expected ones that must be there, with some of those that may, in order."""
    if not expected:
        return not parts
    must, part = expected[0]
    if must is not False and parts and parts[0] == part and fits(expected[1:], parts[1:]):
        return True
    return not must and fits(expected[1:], parts)


def check_message_since(old: BubbleMessage | None, new: BubbleMessage, shown: BubbleMessage | None) -> None:
    before = old["parts"] if old else []
    expected = [expected_part(*pair) for pair in zip(before, new["parts"], strict=False)]
    expected += [(True, part) for part in new["parts"][len(before) :]]
    if shown is None:
        assert all(part["type"] == "step-start" for must, part in expected if must), "a contribution is missing"
        return
    assert fits(expected, shown["parts"]), "the window shows what was cleared, or not what came after"
    mine, whole = bubble(shown), bubble(new)
    mine.pop("reactions", None), whole.pop("reactions", None)
    assert (shown["id"], shown["role"], mine) == (new["id"], new["role"], whole)


def check_window(log: Log, cleared_at: int, later: int, grouping: Grouping) -> None:
    cleared = min(cleared_at, len(log))

    async def looked_at() -> tuple[tuple[BubbleMessage, ...], ThreadSnapshot]:
        thread = await applied(log[: cleared + later], grouping)
        await thread.window()
        await thread.clear_window(cleared)
        await thread.window()
        await thread.apply(log)
        window = await thread.window()
        assert window.through_seq == len(log)
        return window.messages, await thread.snapshot()

    shown, whole = run(looked_at())
    assert whole == assembled(log, grouping), "windows leave the snapshot alone"
    old = {message["id"]: message for message in assembled(log[:cleared], grouping).messages}
    in_window = {message["id"]: message for message in shown}
    assert list(in_window) == [message["id"] for message in whole.messages if message["id"] in in_window]
    for message in whole.messages:
        check_message_since(old.get(message["id"]), message, in_window.get(message["id"]))
        check_reactions_since(log, cleared, in_window.get(message["id"]))


def check_reactions_since(log: Log, cleared: int, message: BubbleMessage | None) -> None:
    listed = bubble(message).get("reactions", {}) if message else {}
    for emoji, people in listed.items():
        for who in people:
            assert any(reacts(event, who, emoji) > cleared for event in log[cleared:]), "a reaction on what was cleared"


def reacts(event: SequencedEvent, who: str, emoji: str) -> int:
    record = read_record(event.text)
    if not (isinstance(record, PartRecord) and record.principal_id == who and record.part.get("emoji") == emoji):
        return 0
    target = record.part.get("targetSeq")
    return target if isinstance(target, int) else 0


@few_and_thousands
@pytest.mark.requirement("TA-09", "TA-16", "TA-17", "TA-81", "TA-83", "TA-95")
def test_a_window_shows_exactly_what_came_after_the_cleared_seq(examples: int) -> None:
    hold(examples, check_window, logs(), st.integers(0, 30), st.integers(0, 30), GROUPINGS)


def check_clears(log: Log, clears: list[int], grouping: Grouping) -> None:
    seqs = [min(seq, len(log)) for seq in clears]

    async def windows() -> list[tuple[BubbleMessage, ...]]:
        stepwise, at_once = await applied(log, grouping), await applied(log, grouping)
        for seq in seqs:
            await stepwise.clear_window(seq)
            await stepwise.window()
        await at_once.clear_window(max(seqs, default=0))
        return [(await thread.window()).messages for thread in (stepwise, at_once)]

    stepwise, at_once = run(windows())
    assert stepwise == at_once


@few_and_thousands
@pytest.mark.requirement("TA-18", "TA-85", "TA-95")
def test_clears_one_after_the_other_are_the_furthest_of_them(examples: int) -> None:
    hold(examples, check_clears, logs(), st.lists(st.integers(0, 30), max_size=4), GROUPINGS)


def check_prepended_windows(log: Log, start: int, cleared: int, grouping: Grouping) -> None:
    async def windows() -> list[tuple[BubbleMessage, ...]]:
        late, early = await applied(log[start % len(log) :], grouping), await applied(log, grouping)
        seq = min(cleared, (await late.snapshot()).head_seq)
        await late.clear_window(seq)
        await late.prepend(log)
        await early.clear_window(seq)
        return [(await thread.window()).messages for thread in (late, early)]

    late, early = run(windows())
    assert late == early


@few_and_thousands
@pytest.mark.requirement("TA-80")
def test_events_that_are_prepended_are_in_the_window_if_they_are_above_the_cleared_seq(examples: int) -> None:
    hold(examples, check_prepended_windows, logs(min_size=1), st.integers(0, 10), st.integers(0, 30), GROUPINGS)


class Hesitant:
    """A handler of artifacts that lets others run before it answers."""

    kind = "artifact"

    def __init__(self) -> None:
        self._plain = ArtifactHandler()

    async def to_chunks(self, part: NativePart) -> Sequence[Mapping[str, Any]] | None:
        await anyio.lowlevel.checkpoint()
        return self._plain.to_chunks(part)

    def from_ui_part(self, part: MessagePart) -> NativePart | None:
        return self._plain.from_ui_part(part)


def check_concurrency(log: Log, cuts: list[tuple[int, int, str]], grouping: Grouping) -> None:
    assembler = create_assembler(part_handlers=[Hesitant()])

    def operations(thread: ThreadAssembler) -> list[Callable[[], Awaitable[object]]]:
        calls: Mapping[str, Callable[[int, int], Callable[[], Awaitable[object]]]] = {
            "apply": lambda first, stop: lambda: thread.apply(log[first:stop]),
            "prepend": lambda first, stop: lambda: thread.prepend(log[first:stop]),
            "snapshot": lambda *_: thread.snapshot,
            "window": lambda *_: thread.window,
            "clear": lambda first, _: lambda: thread.clear_window(first),
            "close": lambda *_: thread.close,
        }
        return [calls[name](first, stop) for first, stop, name in cuts]

    async def outcome(call: Callable[[], Awaitable[object]]) -> object:
        try:
            return await call()
        except (ValueError, RuntimeError) as error:
            return repr(error)

    async def at_once() -> list[object]:
        return await asyncio.gather(*map(outcome, operations(assembler.open(grouping=grouping))))

    async def in_turn() -> list[object]:
        return [await outcome(call) for call in operations(assembler.open(grouping=grouping))]

    assert asyncio.run(at_once()) == asyncio.run(in_turn())


@few_and_thousands
@pytest.mark.requirement("TA-12")
def test_operations_that_overlap_behave_as_if_each_had_waited_for_the_one_before(examples: int) -> None:
    names = st.sampled_from(["apply", "apply", "prepend", "snapshot", "window", "clear", "close"])
    cuts = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), names), max_size=8)
    hold(examples, check_concurrency, logs(), cuts, GROUPINGS)


def accepted_tokens(log: Log) -> Counter[tuple[str, str, str]]:
    """Run, author and token of each delta that has an open block, by the rules for blocks alone."""
    open_blocks: set[tuple[str, str, str, str]] = set()
    accepted: Counter[tuple[str, str, str]] = Counter()
    for event in log:
        record = read_record(event.text)
        if isinstance(record, FinishRecord):
            open_blocks = {block for block in open_blocks if block[0] != record.run_id}
        if not isinstance(record, PartRecord) or record.version != "ai-sdk-v6":
            continue
        where, part = (record.run_id, record.principal_id), record.part
        kind, _, step = str(part.get("type")).partition("-")
        if part.get("type") == "finish-step":
            open_blocks = {block for block in open_blocks if block[:2] != where}
        if kind not in ("text", "reasoning") or not isinstance(part.get("id"), str):
            continue
        block = (*where, kind, str(part["id"]))
        if step == "start":
            open_blocks.add(block)
        elif step == "end":
            open_blocks.discard(block)
        elif step == "delta" and block in open_blocks and isinstance(part.get("delta"), str):
            accepted[*where, str(part["delta"])] += 1
    return accepted


def check_tokens(log: Log, grouping: Grouping) -> None:
    events = [event.to_dict() for event in log]
    for event in events:
        part: Any = event.get("part")
        if isinstance(part, dict) and str(part.get("type")).endswith("-delta") and isinstance(part.get("delta"), str):
            part["delta"] = f"<{event['seq']}>"
    tokens: Counter[tuple[str, str, str]] = Counter()
    marked = list(map(rewritten, events))
    for message in assembled(marked, grouping).messages:
        for part in message["parts"]:
            if part["type"] in ("text", "reasoning"):
                for token in str(part["text"]).replace("><", "> <").split():
                    tokens[bubble(message)["runId"], message_author(message), token] += 1
    assert tokens == accepted_tokens(marked), [event.text for event in marked]


def rewritten(event: Mapping[str, Any]) -> SequencedEvent:
    members = {name: value for name, value in event.items() if name not in ("seq", "createdAt")}
    [stored] = numbered([members], first=event["seq"])
    return stored


def message_author(message: BubbleMessage) -> str:
    return message["metadata"]["bubble"]["principalId"]


@few_and_thousands
@pytest.mark.requirement("TA-61", "TA-72", "TA-24")
def test_every_piece_of_text_is_shown_once_in_a_message_of_its_run_and_its_author(examples: int) -> None:
    hold(examples, check_tokens, logs(), GROUPINGS)


@pytest.mark.requirement("TA-06")
def test_a_burst_of_empty_batches_changes_nothing() -> None:
    async def empty() -> Sequence[bool]:
        thread = await applied(numbered([delta("orphan")]), "speaker")
        return [(await thread.apply([])).changed, (await thread.prepend([])).changed]

    assert run(empty()) == [False, False]
