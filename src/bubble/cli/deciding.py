"""`bubble approve` and `bubble interrupt`: what a person decides about the runs of others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import UNSET

from bubble.cli.choices import named, tell
from bubble.cli.failures import CommandError, UsageProblem
from bubble.cli.given import checked_text
from bubble.cli.output import JsonOption
from bubble.cli.profiles import ProfileOption
from bubble.cli.remote import connected, run_async
from bubble.cli.threads import ThreadArgument
from bubble.protocol.events import RunInterruptRequested, SequencedEvent, ToolCallApproval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bubble.assembler import BubbleMessage
    from bubble.client import BubbleConnection
    from bubble.protocol.resources import Run

__all__ = ["approve_app", "interrupt_app"]

approve_app = typer.Typer(add_completion=False, name="approve", help="Approve or reject a tool call.")
interrupt_app = typer.Typer(add_completion=False, name="interrupt", help="Ask a run to stop.")


@dataclass(frozen=True, slots=True)
class _Call:
    """A tool call; `name` is None where it was given and not found."""

    run_id: str
    tool_call_id: str
    name: str | None = None
    is_waiting: bool = False

    def __str__(self) -> str:
        return f"{self.name} ({self.run_id} {self.tool_call_id})"


@approve_app.command()
def approve(
    thread_id: ThreadArgument,
    run_id: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="The run's id; may be left out if only one call waits.")
    ] = None,
    tool_call_id: Annotated[
        str | None, typer.Argument(metavar="[CALL]", help="The tool call's id; may be left out likewise.")
    ] = None,
    *,
    reject: Annotated[bool, typer.Option("--reject", help="Reject it instead.")] = False,
    reason: Annotated[str | None, typer.Option("--reason", help="Why it is rejected.")] = None,
    early: Annotated[bool, typer.Option("--early", help="Decide on a call that the run has yet to make.")] = False,
    as_json: JsonOption = False,
    profile: ProfileOption = None,
) -> None:
    """Approve a tool call that waits for a decision, or reject it; the first decision counts."""
    if reason is not None and not reject:
        raise UsageProblem("A reason goes with a rejection only: add --reject, or leave --reason out.")
    if reason is not None:
        checked_text(reason)
    if early and tool_call_id is None:
        raise UsageProblem("--early is about a call that is not there to be found: name the run and the call.")
    call, stored = run_async(
        _decide(profile, thread_id, run_id, tool_call_id, approved=not reject, reason=reason, early=early)
    )
    what = "" if call.name is None else f" {call.name}"
    tell(stored, as_json=as_json, said=f"{'Rejected' if reject else 'Approved'}{what}, seq {stored.seq}.")


async def _decide(
    profile: str | None,
    thread_id: str,
    run_id: str | None,
    tool_call_id: str | None,
    *,
    approved: bool,
    reason: str | None,
    early: bool,
) -> tuple[_Call, SequencedEvent]:
    async with connected(profile) as bubble:
        me = (await bubble.who_am_i()).principal_id
        if run_id is None or tool_call_id is None:
            call = await _only_waiting_call(bubble, thread_id, run_id, me)
        else:
            call = _Call(run_id, tool_call_id)
            call = call if early else await _found(bubble, thread_id, call, me)
        decision = ToolCallApproval(
            principal_id=me,
            run_id=call.run_id,
            tool_call_id=call.tool_call_id,
            approved=approved,
            reason=UNSET if reason is None else reason,
        )
        return call, await bubble.append_event(thread_id, decision)


async def _found(bubble: BubbleConnection, thread_id: str, call: _Call, me: str) -> _Call:
    """The call with its name. A decision is final and waits for its call without a word, so one on a mistyped id is refused here."""
    run = await _run_of_another(bubble, thread_id, call.run_id, me)
    if run is None:  # what is wrong with the run is the server's to say
        return call
    calls = await _calls_of(bubble, thread_id, [run])
    for each in calls:
        if each.tool_call_id == call.tool_call_id:
            return each
    if run.state == "finished":
        raise UsageProblem(f"Run {call.run_id} is over and has made no call {call.tool_call_id}.")
    waiting = named([each for each in calls if each.is_waiting])
    raise UsageProblem(
        f"Run {call.run_id} has made no call {call.tool_call_id}; "
        f"{f'this waits: {waiting}' if waiting else 'none of its calls waits'}. --early decides on a call to come."
    )


async def _only_waiting_call(bubble: BubbleConnection, thread_id: str, run_id: str | None, me: str) -> _Call:
    runs = await _runs_to_decide_on(bubble, thread_id, run_id, me)
    calls = [call for call in await _calls_of(bubble, thread_id, runs) if call.is_waiting] if runs else []
    if not calls:
        where = thread_id if run_id is None else f"run {run_id} of {thread_id}"
        raise CommandError(f"No tool call waits for your decision on {where}.")
    if len(calls) > 1:
        raise UsageProblem(f"{len(calls)} tool calls wait on {thread_id}, say which one: {named(calls)}.")
    return calls[0]


async def _runs_to_decide_on(bubble: BubbleConnection, thread_id: str, run_id: str | None, me: str) -> list[Run]:
    # Nobody decides on the calls of their own runs.
    runs = await _open_runs(bubble, thread_id)
    return [run for run in runs if run.principal_id != me and run_id in (None, run.run_id)]


async def _run_of_another(bubble: BubbleConnection, thread_id: str, run_id: str, me: str) -> Run | None:
    async for run in bubble.list_runs(thread_id):
        if run.run_id == run_id:
            return None if run.principal_id == me else run
    return None


async def _calls_of(bubble: BubbleConnection, thread_id: str, runs: Sequence[Run]) -> list[_Call]:
    first = min(run.started_seq for run in runs)
    await bubble.extensions.negotiate()
    events = [event async for event in bubble.iter_events(thread_id, from_seq=first)]
    snapshot = await bubble.assembler.create().assemble(events, grouping="run")
    owners = {run.run_id: run.principal_id for run in runs}
    return [call for message in snapshot.messages for call in _calls_in(message, owners)]


def _calls_in(message: BubbleMessage, owners: Mapping[str, str]) -> list[_Call]:
    """The calls that the owner of a run made. A decision is on those: what somebody else put into the run only looks like one of them."""
    from bubble.cli.conversation.tools import is_tool, is_waiting, tool_name

    bubble = message["metadata"]["bubble"]
    run_id = bubble.get("runId", "")
    if owners.get(run_id) != bubble["principalId"]:
        return []
    return [
        _Call(run_id, str(part["toolCallId"]), tool_name(part), is_waiting=is_waiting(part))
        for part in message["parts"]
        if is_tool(part)
    ]


@interrupt_app.command()
def interrupt(
    thread_id: ThreadArgument,
    run_id: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="The run's id; may be left out if only one is open.")
    ] = None,
    *,
    as_json: JsonOption = False,
    profile: ProfileOption = None,
) -> None:
    """Ask a run to stop at its next safe point."""
    stored = run_async(_interrupt(profile, thread_id, run_id))
    tell(stored, as_json=as_json, said=f"Asked run {stored.to_dict()['runId']} to stop, seq {stored.seq}.")


async def _interrupt(profile: str | None, thread_id: str, run_id: str | None) -> SequencedEvent:
    async with connected(profile) as bubble:
        chosen = run_id if run_id is not None else await _only_open_run(bubble, thread_id)
        me = (await bubble.who_am_i()).principal_id
        return await bubble.append_event(thread_id, RunInterruptRequested(principal_id=me, run_id=chosen))


async def _only_open_run(bubble: BubbleConnection, thread_id: str) -> str:
    runs = await _open_runs(bubble, thread_id)
    if not runs:
        raise CommandError(f"No run is open on {thread_id}.")
    if len(runs) > 1:
        which = named([f"{run.run_id} of {run.principal_id}" for run in runs])
        raise UsageProblem(f"{len(runs)} runs are open on {thread_id}, say which one: {which}.")
    return runs[0].run_id


async def _open_runs(bubble: BubbleConnection, thread_id: str) -> list[Run]:
    return [run async for run in bubble.list_runs(thread_id, state="open")]
