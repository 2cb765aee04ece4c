"""`bubble post`, `bubble approve` and `bubble interrupt`: what a person says on a thread."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer
from msgspec import UNSET

from bubble.cli.failures import CommandError, UsageProblem
from bubble.cli.messages import message_run
from bubble.cli.output import JsonOption, note, write_raw
from bubble.cli.profiles import ProfileOption
from bubble.cli.remote import connected, run_async
from bubble.cli.threads import ThreadArgument
from bubble.protocol.events import (
    RunInterruptRequested,
    SequencedEvent,
    ToolCallApproval,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubble.client import BubbleConnection

__all__ = ["approve_app", "interrupt_app", "post_app"]

post_app = typer.Typer(add_completion=False, name="post", help="Say something on a thread.")
approve_app = typer.Typer(add_completion=False, name="approve", help="Approve or reject a tool call.")
interrupt_app = typer.Typer(add_completion=False, name="interrupt", help="Ask a run to stop.")

RunArgument: TypeAlias = Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")]


@post_app.command()
def post(
    thread_id: ThreadArgument,
    text: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TEXT]...", help="What to say; without it, or as `-`, it is read from standard input."),
    ] = None,
    *,
    as_json: JsonOption = False,
    profile: ProfileOption = None,
) -> None:
    """Say something: one run of yours, appended whole or not at all."""
    stored = run_async(_post(profile, thread_id, _text(text or [])))
    _tell(
        stored,
        as_json=as_json,
        said=f"Said in run {stored[0].to_dict()['runId']}, seq {stored[0].seq} to {stored[-1].seq}.",
    )


def _text(words: Sequence[str]) -> str:
    text = " ".join(words)
    if text in ("", "-"):
        if sys.stdin.isatty():
            note("Type what to say, then Ctrl-D.")
        text = sys.stdin.read().rstrip("\n")
    if not text:
        raise UsageProblem("There is nothing to say: give the text, or pipe it in.")
    return text


async def _post(profile: str | None, thread_id: str, text: str) -> Sequence[SequencedEvent]:
    async with connected(profile) as bubble:
        return await bubble.append_events(thread_id, message_run(await _me(bubble), text))


async def _me(bubble: BubbleConnection) -> str:
    return (await bubble.who_am_i()).principal_id


@approve_app.command()
def approve(
    thread_id: ThreadArgument,
    run_id: RunArgument,
    tool_call_id: Annotated[str, typer.Argument(metavar="CALL", help="The tool call's id.")],
    *,
    reject: Annotated[bool, typer.Option("--reject", help="Reject it instead.")] = False,
    reason: Annotated[str | None, typer.Option("--reason", help="Why it is rejected.")] = None,
    as_json: JsonOption = False,
    profile: ProfileOption = None,
) -> None:
    """Approve a tool call that waits for a decision, or reject it; the first decision counts."""
    if reason is not None and not reject:
        raise UsageProblem("A reason goes with a rejection only: add --reject, or leave --reason out.")
    stored = run_async(_approve(profile, thread_id, run_id, tool_call_id, approved=not reject, reason=reason))
    _tell([stored], as_json=as_json, said=f"{'Rejected' if reject else 'Approved'}, seq {stored.seq}.")


async def _approve(
    profile: str | None, thread_id: str, run_id: str, tool_call_id: str, *, approved: bool, reason: str | None
) -> SequencedEvent:
    async with connected(profile) as bubble:
        decision = ToolCallApproval(
            principal_id=await _me(bubble),
            run_id=run_id,
            tool_call_id=tool_call_id,
            approved=approved,
            reason=UNSET if reason is None else reason,
        )
        return await bubble.append_event(thread_id, decision)


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
    _tell([stored], as_json=as_json, said=f"Asked run {stored.to_dict()['runId']} to stop, seq {stored.seq}.")


async def _interrupt(profile: str | None, thread_id: str, run_id: str | None) -> SequencedEvent:
    async with connected(profile) as bubble:
        chosen = run_id if run_id is not None else await _only_open_run(bubble, thread_id)
        request = RunInterruptRequested(principal_id=await _me(bubble), run_id=chosen)
        return await bubble.append_event(thread_id, request)


async def _only_open_run(bubble: BubbleConnection, thread_id: str) -> str:
    found = [run.run_id async for run in bubble.list_runs(thread_id, state="open")]
    if not found:
        raise CommandError(f"No run is open on {thread_id}.")
    if len(found) > 1:
        raise UsageProblem(f"{len(found)} runs are open on {thread_id}, say which one: {', '.join(found[:5])}.")
    return found[0]


def _tell(stored: Sequence[SequencedEvent], *, as_json: bool, said: str) -> None:
    if not as_json:
        note(said)
        return
    if len(stored) == 1:
        write_raw(stored[0].text)
    else:
        write_raw(b'{"events":[%s]}' % b",".join(event.text for event in stored))
