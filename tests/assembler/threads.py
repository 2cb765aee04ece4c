"""Assembling in a test: no event loop, where nothing waits."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from typing import TypeVar

from bubble.assembler import BubbleMessage, Grouping, ThreadAssembler, create_assembler
from bubble.assembler.messages import RoleOf, default_role
from bubble.extensions.artifacts import ArtifactHandler
from tests.assembler.logs import Event, numbered

__all__ = ["ASSEMBLER", "applied", "apply", "assembled", "run", "window_after"]

T = TypeVar("T")

ASSEMBLER = create_assembler(part_handlers=[ArtifactHandler()])


def run(operation: Coroutine[object, object, T]) -> T:
    """The outcome of what never waits, and so needs no event loop."""
    try:
        operation.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    raise AssertionError("a thread waited, though no handler did")


def assembled(
    events: Iterable[Event], grouping: Grouping = "speaker", role_of: RoleOf = default_role
) -> list[BubbleMessage]:
    """The messages of a log, one event after the other from 1 on."""
    return list(run(ASSEMBLER.assemble(numbered(events), grouping=grouping, role_of=role_of)).messages)


def applied(events: Iterable[Event], grouping: Grouping = "speaker", *, first: int = 1) -> ThreadAssembler:
    """A thread that holds a log."""
    thread = ASSEMBLER.open(grouping=grouping)
    run(thread.apply(numbered(events, first=first)))
    return thread


def apply(thread: ThreadAssembler, *events: Event) -> bool:
    """Applies further events; whether that changed anything."""
    head = run(thread.snapshot()).head_seq
    return run(thread.apply(numbered(events, first=head + 1))).changed


def window_after(seq: int, events: Iterable[Event], grouping: Grouping = "speaker") -> list[BubbleMessage]:
    """The window of a log that was cleared through `seq`."""
    thread = applied(events, grouping)
    run(thread.clear_window(seq))
    return list(run(thread.window()).messages)
