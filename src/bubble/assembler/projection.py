"""Who speaks, and in which message: from events to segments (assembler, section 3).

*Theory of operation.* A **run** is said in **voices**: a voice is one author in one run. What a voice contributes lands in **segments**;
each becomes one message and has one reducer. An event is projected in three steps, each of them a table or a few lines:

1. *What is it?* `_EVENTS` here, by the type of the record; chunks once more by their own type, in `contributing._CHUNKS`.
2. *Does it speak?* Only what makes a visible part or makes a text longer does:

       speaks                                                   does not speak
       ------------------------------------------------------   ------------------------------------------------------
       text-start, reasoning-start, file, source-*              the end of a block, finish-step
       text-delta, reasoning-delta of at least one character    an empty delta
       data-* without an id, or with one that is new            data-* with an id that is there; transient data: nothing
       tool-input-* that makes a part                           everything else about a call that is there
       facts: approval, result, interrupt                       start, start-step, message-metadata, finish, error
       an error of a voice that has said nothing yet            reactions, run_started, run_finished

3. *Where?* What speaks goes where the voice has the floor: in grouping `speaker` that is the last message of the thread if it is this
   voice's, in grouping `run` the one message of this voice. Without the floor, a new segment is *opened* (`stage`). What does not speak
   goes to the segment that has what it is about; if it is about the message as a whole, to the voice's latest one.

Some things come too early. Each waits at one place:

       what                                     waits in          until                           then
       --------------------------------------   ---------------   -----------------------------   ----------------------------
       metadata and steps before a first part   `Voice.pending`   the voice opens a segment       before the part that opens it
       a decision on a call not known yet       `Run.waiting`     the call's first part           right after it, at one with it
       in `run`: a fact, owner unknown          `Run.owed`        somebody starts or speaks       on the owner's message
       a reaction to any of these               `Anchor`          it is in a message              on that message

A text that was open when another voice took the floor is *carried over* with its next character: the part that is left becomes `done`, and
a block of the same id starts in the segment where the voice speaks now. The segment of an open block is always known (`Voice.blocks`),
so this costs one comparison per delta.

Nothing fails half way. Either the reducer refuses a chunk before anything here is changed, and then the chunk leaves no trace; or it was
applied. A segment becomes a message only after the chunk that opens it was applied. So a bad chunk costs itself and nothing else, and
nobody can make a thread unreadable by writing to it.

Everything depends on the events and their order alone: the same log gives the same messages, however it was cut into batches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from bubble.assembler.contributing import take_chunk, take_reading
from bubble.assembler.fields import Part
from bubble.assembler.handlers import Reading
from bubble.assembler.messages import INTERRUPT, PARTICIPANT, TITLE, BubbleMessage, Grouping, RoleOf, default_role
from bubble.assembler.reactions import Anchor, Holder
from bubble.assembler.records import (
    ApprovalRecord,
    FinishRecord,
    InterruptRecord,
    JoinRecord,
    LeaveRecord,
    PartRecord,
    Record,
    ResultRecord,
    StartRecord,
    TitleRecord,
)
from bubble.assembler.runs import Waiting
from bubble.assembler.segment import Segment
from bubble.assembler.settling import carry_out
from bubble.assembler.stage import Stage

__all__ = ["Projection"]

_AI_SDK: Final = "ai-sdk-v6"


class Projection:
    """The messages of one thread, as far as its events were projected. Events come in ascending order of seq."""

    def __init__(self, *, grouping: Grouping = "speaker", role_of: RoleOf = default_role) -> None:
        self._stage = Stage(grouping=grouping, role_of=role_of)

    def project(self, record: Record, reading: Reading | None = None) -> bool:
        """Folds one event in; whether any message changed. `reading` is what its native part stands for, if it has one."""
        now = self._stage.now
        now.seq, now.created_at, now.changed = record.seq, record.created_at, False
        holder = _EVENTS[type(record)](self._stage, record, reading)
        if holder is not None:
            self._stage.places.add(record.seq, holder)
        return now.changed

    def messages(self) -> list[BubbleMessage]:
        """The messages in the order in which they were opened; those that did not change since the last call are the same objects."""
        return self._stage.messages()

    def messages_since(self, seq: int) -> list[BubbleMessage]:
        """The messages in which events above `seq` showed something, with that and nothing else in them."""
        return self._stage.messages_since(seq)

    def adopt(self, messages: list[BubbleMessage]) -> None:
        """Gives out those of other `messages` that are equal to its own of the same id, so that identity tells what changed."""
        self._stage.adopt({message["id"]: message for message in messages})


def _start_run(stage: Stage, record: StartRecord, _: Reading | None) -> Holder | None:
    run = stage.run(record.run_id)
    if run.is_started:
        return None
    run.is_started = True
    run.starter = record.principal_id
    run.kind = record.kind
    run.touch()
    stage.pay(run)
    return run.anchor


def _finish_run(stage: Stage, record: FinishRecord, _: Reading | None) -> Holder | None:
    run = stage.run(record.run_id)
    run.end_blocks()  # and whatever still looks open is shown as done (`rendering.closed`)
    if run.is_finished:
        return None
    run.is_finished = True
    run.outcome = record.outcome
    run.touch()
    return run.segments[-1] if run.segments else None


def _take_part(stage: Stage, record: PartRecord, reading: Reading | None) -> Holder | None:
    run = stage.run(record.run_id)
    if run.starter is None:
        run.starter = record.principal_id
        run.touch()
    voice = run.voice(record.principal_id)
    if reading is not None:
        holder = take_reading(stage, voice, reading)
    elif record.version == _AI_SDK:
        holder = take_chunk(stage, voice, record.part)
    else:
        holder = None
    if run.owed:
        stage.pay(run)
    return holder


def _decide(stage: Stage, record: ApprovalRecord | ResultRecord, _: Reading | None) -> Holder:
    run, waiting = stage.run(record.run_id), Waiting(record)
    if record.tool_call_id in run.calls:
        carry_out(stage, run, waiting)
    else:
        run.waiting.setdefault(record.tool_call_id, []).append(waiting)
    return waiting.anchor


def _interrupt(stage: Stage, record: InterruptRecord, _: Reading | None) -> Holder:
    anchor = Anchor()
    fact: Part = {"type": INTERRUPT, "data": {"principalId": record.principal_id}}
    stage.state(stage.run(record.run_id), record.principal_id, fact, anchor)
    return anchor


def _tell_of_participant(stage: Stage, record: JoinRecord | LeaveRecord, _: Reading | None) -> Segment:
    data: Part = {
        "action": "joined" if isinstance(record, JoinRecord) else "left",
        "principalId": record.principal_id,
        "byPrincipalId": record.by_principal_id,
    }
    return stage.announce(record.by_principal_id, {"type": PARTICIPANT, "data": data})


def _tell_of_title(stage: Stage, record: TitleRecord, _: Reading | None) -> Segment:
    data: Part = {"title": record.title, "byPrincipalId": record.by_principal_id}
    return stage.announce(record.by_principal_id, {"type": TITLE, "data": data})


_EventTaker: TypeAlias = "Callable[[Stage, Any, Reading | None], Holder | None]"
_EVENTS: Final[Mapping[type[Record], _EventTaker]] = {
    StartRecord: _start_run,
    FinishRecord: _finish_run,
    PartRecord: _take_part,
    ApprovalRecord: _decide,
    ResultRecord: _decide,
    InterruptRecord: _interrupt,
    JoinRecord: _tell_of_participant,
    LeaveRecord: _tell_of_participant,
    TitleRecord: _tell_of_title,
}
