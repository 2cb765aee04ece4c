"""The life of a thread assembler: batches, pages, turns, the end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from bubble.assembler import Grouping, MessagePart, NativePart, create_assembler, message_changes
from bubble.protocol.errors import InvalidRequest
from bubble.protocol.events import SequencedEvent
from tests.assembler.logs import (
    bubble,
    chunk,
    data_of,
    delta,
    finished,
    interrupt,
    joined,
    native,
    numbered,
    said,
    shown,
    start,
    started,
    texts,
    wire,
)
from tests.assembler.threads import ASSEMBLER, applied, apply, assembled, run

LOG = [started(), start(), delta("a"), delta("b"), interrupt(), delta("c"), finished()]


@pytest.mark.requirement("TA-02")
def test_assemblers_of_several_threads_know_nothing_of_each_other() -> None:
    one, other = applied(LOG), applied([joined()])
    run(one.close())
    assert shown(run(other.snapshot()).messages) == [("~1", "")]


@pytest.mark.requirement("TA-05", "TA-01")
def test_events_may_be_given_as_they_are_stored_or_in_wire_form() -> None:
    assert run(ASSEMBLER.assemble(wire(LOG))) == run(ASSEMBLER.assemble(numbered(LOG)))


@pytest.mark.requirement("TA-05")
@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({**started(), "createdAt": "2026-05-06T12:34:56.789Z"}, r"\$\.seq"),
        ({**started(), "seq": True, "createdAt": "2026-05-06T12:34:56.789Z"}, r"\$\.seq"),
        ({**started(), "seq": 1}, r"\$\.createdAt"),
        ({**started(), "seq": 7, "createdAt": "2026-05-06T12:34:56.789Z", "note": object()}, "Event 7"),
        ("event", "SequencedEvent"),
    ],
)
def test_what_is_no_stored_event_is_refused(event: Any, message: str) -> None:  # noqa: ANN401 - that is the point
    with pytest.raises(InvalidRequest, match=message):
        run(ASSEMBLER.open().apply([event]))


@pytest.mark.requirement("TA-13", "TA-14")
def test_events_at_or_below_the_head_are_ignored() -> None:
    thread = ASSEMBLER.open()
    events = numbered(LOG)
    run(thread.apply(events[2:5]))
    assert run(thread.apply(events[:5])).changed is False
    assert run(thread.apply(events)).changed is True
    assert run(thread.snapshot()) == run(ASSEMBLER.assemble(events[2:]))


@pytest.mark.requirement("TA-93")
@pytest.mark.parametrize("seqs", [[1, 2, 2], [1, 3, 2], [5, 1]])
def test_a_batch_that_does_not_ascend_is_refused_and_changes_nothing(seqs: list[int]) -> None:
    thread = ASSEMBLER.open()
    batch = [numbered([joined()], first=seq)[0] for seq in seqs]
    with pytest.raises(ValueError, match=f"{seqs[-1]} comes after {seqs[-2]}"):
        run(thread.apply(batch))
    snapshot = run(thread.snapshot())
    assert (snapshot.messages, snapshot.head_seq) == ((), 0)


@pytest.mark.requirement("TA-93")
def test_gaps_are_fine() -> None:
    events = numbered(LOG)
    assert [texts(one) for one in run(ASSEMBLER.assemble([events[1], events[3], events[6]])).messages] == ["b"]


@pytest.mark.requirement("TA-07", "TA-94")
def test_a_snapshot_tells_the_range_that_it_was_made_of() -> None:
    empty, some = run(ASSEMBLER.open().snapshot()), run(applied(LOG, first=5).snapshot())
    assert (empty.messages, empty.head_seq, empty.oldest_seq) == ((), 0, None)
    assert (some.head_seq, some.oldest_seq) == (11, 5)


@pytest.mark.requirement("TA-08", "TA-42")
def test_an_older_page_brings_the_beginnings_of_what_was_ignored() -> None:
    thread, events = ASSEMBLER.open(), numbered(LOG)
    run(thread.apply(events[3:]))
    assert shown(run(thread.snapshot()).messages) == [("r", "")]
    assert run(thread.prepend(events[:3])).changed is True
    assert run(thread.snapshot()) == run(ASSEMBLER.assemble(events))


@pytest.mark.requirement("TA-92")
def test_a_page_that_reaches_beyond_the_head_leaves_the_rest_for_apply() -> None:
    thread, events = ASSEMBLER.open(), numbered(LOG)
    run(thread.apply(events[3:5]))
    run(thread.prepend([*events[:4], *events[6:]]))
    assert run(thread.snapshot()) == run(ASSEMBLER.assemble(events[:5]))
    run(thread.apply(events))
    assert run(thread.snapshot()) == run(ASSEMBLER.assemble(events))


@pytest.mark.requirement("TA-92", "TA-06")
def test_a_page_that_is_held_already_changes_nothing_and_keeps_the_messages() -> None:
    thread = applied(LOG)
    before = run(thread.snapshot())
    assert run(thread.prepend(numbered(LOG))).changed is False
    assert all(one is other for one, other in zip(before.messages, run(thread.snapshot()).messages, strict=True))


@pytest.mark.requirement("TA-15", "TA-99")
def test_an_older_page_leaves_messages_that_it_does_not_touch_the_same_objects() -> None:
    log = numbered([*said("a"), *said("b", run="s")])
    thread = ASSEMBLER.open()
    run(thread.apply(log[3:]))
    before = run(thread.snapshot())
    run(thread.prepend(log[:3]))
    after = run(thread.snapshot())
    assert after.messages[1] is before.messages[0]
    assert [message["id"] for message in message_changes(before, after).upserts] == ["r"]


@pytest.mark.requirement("TA-06", "TA-53", "TA-99")
def test_a_message_that_is_gone_after_a_prepend_is_told_as_a_removal() -> None:
    # Without its beginning Ann's data comes between two things that the bot says; with it, it only changes what was there before.
    data = [chunk("data-x", who="ann", id="1", data=number) for number in range(2)]
    log = numbered([data[0], *said("a"), data[1], *said("b")])
    thread = ASSEMBLER.open()
    run(thread.apply(log[1:]))
    before = run(thread.snapshot())
    assert run(thread.prepend(log)).changed is True
    after = run(thread.snapshot())
    changes = message_changes(before, after)
    assert [message["id"] for message in after.messages] == ["r", "r~1"]
    assert ([message["id"] for message in changes.upserts], changes.removals) == (["r", "r~1"], ("r~2",))


@pytest.mark.requirement("TA-99")
def test_the_changes_since_nothing_are_all_messages() -> None:
    snapshot = run(applied(LOG).snapshot())
    changes = message_changes(None, snapshot)
    assert (changes.upserts, changes.removals) == (snapshot.messages, ())


@pytest.mark.requirement("TA-15", "TA-99")
def test_only_the_message_that_an_event_changed_is_another_object() -> None:
    thread = applied([*said("a"), *said("b", run="s"), start(run="t")])
    before = run(thread.snapshot())
    apply(thread, delta("x", run="t"))
    after = run(thread.snapshot())
    assert [one is other for one, other in zip(before.messages, after.messages, strict=True)] == [True, True, False]
    assert message_changes(before, after).upserts == after.messages[2:]


@pytest.mark.requirement("TA-11")
def test_a_closed_thread_refuses_everything_but_being_closed_again() -> None:
    thread = applied(LOG)
    run(thread.close())
    run(thread.close())
    for operation in (thread.apply([]), thread.snapshot(), thread.prepend([]), thread.window(), thread.clear_window(0)):
        with pytest.raises(RuntimeError, match="closed"):
            run(operation)


@pytest.mark.requirement("TA-20")
def test_another_grouping_is_refused() -> None:
    nonsense: Any = "author"
    with pytest.raises(ValueError, match="author"):
        ASSEMBLER.open(grouping=nonsense)


@pytest.mark.requirement("TA-20")
def test_grouping_is_by_speaker_unless_said_otherwise() -> None:
    assert run(ASSEMBLER.assemble(numbered(LOG))) == run(ASSEMBLER.assemble(numbered(LOG), grouping="speaker"))
    assert len(assembled(LOG, "run")) < len(assembled(LOG))


@pytest.mark.requirement("TA-26")
@pytest.mark.parametrize("grouping", ["speaker", "run"])
def test_one_shot_assembly_is_what_a_thread_would_show(grouping: Grouping) -> None:
    assert run(ASSEMBLER.assemble(numbered(LOG), grouping=grouping)) == run(applied(LOG, grouping).snapshot())


class Gate:
    """A handler of the kind `slow` that answers when it is let."""

    kind = "slow"

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.opens = asyncio.Event()

    async def to_chunks(self, part: NativePart) -> Sequence[Mapping[str, Any]]:
        self.entered.set()
        await self.opens.wait()
        if part.get("fails"):
            raise OSError("the registry is out of reach")
        return [{"type": "data-slow", "data": 1}]

    def from_ui_part(self, _: MessagePart) -> NativePart | None:
        return None


@pytest.mark.anyio
@pytest.mark.requirement("TA-12", "TA-34")
async def test_an_operation_waits_for_those_that_were_called_before() -> None:
    gate = Gate()
    thread = create_assembler(part_handlers=[gate]).open()
    slow = asyncio.create_task(thread.apply(numbered([native("slow")])))
    await gate.entered.wait()
    first = asyncio.create_task(thread.snapshot())
    more = asyncio.create_task(thread.apply(numbered([joined()], first=2)))
    last = asyncio.create_task(thread.snapshot())
    gate.opens.set()
    await asyncio.gather(slow, more)
    snapshots = [await first, await last]
    assert [[message["id"] for message in snapshot.messages] for snapshot in snapshots] == [["r"], ["r", "~2"]]


@pytest.mark.anyio
@pytest.mark.requirement("TA-38", "TA-08")
@pytest.mark.parametrize("older", [False, True], ids=["apply", "prepend"])
async def test_a_handler_that_fails_fails_the_operation_and_changes_nothing(*, older: bool) -> None:
    gate = Gate()
    gate.opens.set()
    thread = create_assembler(part_handlers=[gate]).open()
    await thread.apply(numbered([joined()], first=5))
    before = await thread.snapshot()
    page = numbered([*said("a"), native("slow", fails=True)], first=1 if older else 6)
    with pytest.raises(OSError, match="out of reach"):
        await (thread.prepend(page) if older else thread.apply(page))
    assert await thread.snapshot() == before
    assert (await thread.apply(numbered(said("b"), first=6))).changed


@pytest.mark.anyio
@pytest.mark.requirement("TA-12")
async def test_an_operation_that_is_cancelled_changes_nothing_and_lets_the_next_one_go_on() -> None:
    gate = Gate()
    thread = create_assembler(part_handlers=[gate]).open()
    slow = asyncio.create_task(thread.apply(numbered([*said("a"), native("slow")])))
    await gate.entered.wait()
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow
    assert (await thread.snapshot()).head_seq == 0


@pytest.mark.requirement("TA-98")
def test_an_event_that_this_version_does_not_know_is_passed_over() -> None:
    novel = SequencedEvent(1, "2026-05-06T12:34:56.789Z", b'{"seq":1,"createdAt":"x","type":"novel"}')
    thread = ASSEMBLER.open()
    assert run(thread.apply([novel, *numbered([joined()], first=2)])).changed
    snapshot = run(thread.snapshot())
    assert (len(snapshot.messages), snapshot.oldest_seq) == (1, 1)


@pytest.mark.requirement("TA-98")
def test_members_and_values_that_a_newer_server_added_are_passed_over() -> None:
    newer = [{**started(kind="robot_work"), "novel": 1}, {**said("a")[0], "novel": 1}, chunk("data-x", data=1)]
    [message] = assembled(newer)
    assert (bubble(message)["kind"], message["role"]) == ("robot_work", "assistant")


def test_a_block_closes_the_assembler_that_it_opened() -> None:
    async def use() -> None:
        async with ASSEMBLER.open() as thread:
            await thread.apply(wire(LOG))
        with pytest.raises(RuntimeError, match="closed"):
            await thread.snapshot()

    run(use())


@pytest.mark.requirement("TA-02", "TA-C-08")
def test_a_thread_is_reopened_by_another_assembler_with_all_that_it_has() -> None:
    log = numbered([*said("a"), native("artifact", artifactId="1", op="create", text="x"), *said("b", "s")])
    thread = create_assembler().open(grouping="run", role_of=lambda _: "system")
    run(thread.apply(log))
    run(thread.clear_window(3))
    before = run(thread.snapshot())
    again = run(ASSEMBLER.reopen(thread))
    after = run(again.snapshot())
    assert after == run(ASSEMBLER.assemble(log, grouping="run", role_of=lambda _: "system")) != before
    assert [message["id"] for message in message_changes(before, after).upserts] == ["r"]
    assert [message["id"] for message in run(again.window()).messages] == ["r", "s"]
    run(again.apply(numbered([delta("c", "s")], first=len(log) + 1)))
    assert run(thread.snapshot()) == before


@pytest.mark.requirement("TA-02", "TA-C-08")
def test_a_reopened_thread_shows_what_only_json_tells_apart() -> None:
    class Flags:
        kind = "flag"

        def __init__(self, data: object) -> None:
            self._data: Any = data

        def to_chunks(self, _: NativePart) -> Sequence[Mapping[str, Any]]:
            return [{"type": "data-flag", "data": self._data}]

        def from_ui_part(self, _: MessagePart) -> NativePart | None:
            return None

    thread = create_assembler(part_handlers=[Flags(1)]).open()
    run(thread.apply(numbered([native("flag")])))
    run(thread.snapshot())
    again = run(create_assembler(part_handlers=[Flags(data=True)]).reopen(thread))
    [message] = run(again.snapshot()).messages
    assert data_of(message)[0] is True


@pytest.mark.requirement("TA-02")
def test_a_thread_that_cannot_be_reopened_stays_as_it_is() -> None:
    class Unreachable:
        kind = "artifact"

        def to_chunks(self, part: NativePart) -> Sequence[Mapping[str, Any]]:
            raise OSError(str(part["artifactId"]))

        def from_ui_part(self, _: MessagePart) -> NativePart | None:
            return None

    thread = applied([native("artifact", artifactId="1", op="create", text="x")])
    before = run(thread.snapshot())
    with pytest.raises(OSError, match="1"):
        run(create_assembler(part_handlers=[Unreachable()]).reopen(thread))
    assert run(thread.snapshot()).messages[0] is before.messages[0]
    run(thread.close())
    with pytest.raises(RuntimeError, match="closed"):
        run(ASSEMBLER.reopen(thread))
