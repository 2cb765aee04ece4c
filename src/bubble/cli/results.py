"""`bubble result`: what a person answers to a tool call that waits for its result."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from bubble.cli.choices import named, tell
from bubble.cli.failures import CommandError, UsageProblem
from bubble.cli.output import JsonOption, note
from bubble.cli.profiles import ProfileOption
from bubble.cli.remote import connected, run_async
from bubble.cli.threads import ThreadArgument
from bubble.protocol.events import SequencedEvent, ToolCallResult, raw
from bubble.protocol.jsontext import JSONValue, load_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from msgspec import Raw

    from bubble.assembler import BubbleMessage
    from bubble.assembler.messages import MessagePart
    from bubble.client import BubbleConnection

__all__ = ["app"]

app = typer.Typer(add_completion=False, name="result", help="Give a tool call its result.")

# Messages that are looked through in one step, from the end.
_PAGE: Final = 200
_LIKE_JSON: Final = ("{", "[", '"')
# After such an end nobody waits for a result any more.
_BROKEN_OFF: Final = frozenset({"failed", "interrupted", "lost"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """A tool call of somebody else's run."""

    run_id: str
    tool_call_id: str
    name: str
    input: JSONValue
    is_waiting: bool
    is_answered: bool

    def __str__(self) -> str:
        return f"{self.name} ({self.run_id} {self.tool_call_id})"


@app.command()
def result(
    thread_id: ThreadArgument,
    value: Annotated[
        list[str] | None,
        typer.Argument(metavar="[VALUE]...", help="The result; without it, or as `-`, it is read from standard input."),
    ] = None,
    *,
    run_id: Annotated[
        str | None, typer.Option("--run", metavar="RUN", help="The run's id; may be left out if only one call waits.")
    ] = None,
    tool_call_id: Annotated[
        str | None, typer.Option("--call", metavar="CALL", help="The tool call's id; may be left out likewise.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", metavar="FILE", help="Read the result from this file.")
    ] = None,
    as_text: Annotated[
        bool, typer.Option("--text", help="It is text, whatever it looks like; else what is JSON is taken for that.")
    ] = False,
    as_json: JsonOption = False,
    profile: ProfileOption = None,
) -> None:
    """Give a tool call that waits for it its result, in place of the tool."""
    output = _output(_given(value or [], file), as_text=as_text)
    call, stored = run_async(_append(profile, thread_id, run_id, tool_call_id, output))
    tell(stored, as_json=as_json, said=f"Gave {call.name} its result, seq {stored.seq}.")


def _given(words: Sequence[str], file: Path | None) -> str:
    if file is not None:
        if words:
            raise UsageProblem("The result is either given or in a file: leave one of them out.")
        return _text_of(file)
    if words and [*words] != ["-"]:
        return " ".join(words)
    if sys.stdin.isatty():
        note("Type the result, then Ctrl-D.")
    return sys.stdin.read().rstrip("\n")


def _text_of(file: Path) -> str:
    try:
        return file.read_text("utf-8-sig").rstrip("\n")
    except UnicodeDecodeError:
        raise UsageProblem(f"{file} holds something that is no text.") from None
    except OSError as error:
        raise UsageProblem(f"{file} cannot be read: {error.strerror or error}.") from None


def _output(text: str, *, as_text: bool) -> Raw:
    """The result as JSON. What begins like JSON and is none is most likely a slip, which a tool would only choke on later."""
    if as_text:
        return raw(text)
    if not text.strip():
        raise UsageProblem("There is no result: give it, or pipe it in. --text gives an empty one.")
    try:
        return raw(load_json(text))
    except (ValueError, RecursionError) as error:
        if text.lstrip().startswith(_LIKE_JSON):
            raise UsageProblem(f"This looks like JSON, but it is none ({error}); --text takes it as text.") from None
        return raw(text)


async def _append(
    profile: str | None, thread_id: str, run_id: str | None, tool_call_id: str | None, output: Raw
) -> tuple[_Call, SequencedEvent]:
    async with connected(profile) as bubble:
        me = (await bubble.who_am_i()).principal_id
        call = await _chosen(bubble, thread_id, run_id, tool_call_id, me)
        if call.is_answered:
            raise CommandError(f"{call} has a result already, and the first one counts.")
        event = ToolCallResult(
            principal_id=me,
            run_id=call.run_id,
            tool_call_id=call.tool_call_id,
            input=raw(call.input),
            output=output,
        )
        return call, await bubble.append_event(thread_id, event)


async def _chosen(
    bubble: BubbleConnection, thread_id: str, run_id: str | None, tool_call_id: str | None, me: str
) -> _Call:
    """The newest call with this id; without an id the one that waits. Of calls that wait, only the newest are a choice: older ones are
    most likely those that nobody has answered and nobody will.
    """
    before: int | None = None
    while True:
        page = await bubble.get_message_page(thread_id, before=before, limit=_PAGE, grouping="run")
        calls = [call for message in page.messages for call in _calls_in(message, me) if run_id in (None, call.run_id)]
        if tool_call_id is None:
            found = [call for call in calls if call.is_waiting]
            if len(found) > 1:
                raise UsageProblem(f"{len(found)} tool calls wait on {thread_id}, say which --call: {named(found)}.")
        else:
            found = [call for call in calls if call.tool_call_id == tool_call_id]
        if found:
            return found[-1]
        before = page.next_before
        if before is None:
            break
    where = thread_id if run_id is None else f"run {run_id} of {thread_id}"
    if tool_call_id is None:
        raise CommandError(f"No tool call waits for a result on {where}.")
    raise UsageProblem(f"Nobody else has made a call {tool_call_id} on {where}.")


def _calls_in(message: BubbleMessage, me: str) -> Iterator[_Call]:
    """The calls that the owner of a run made. What somebody else put into the run only looks like one, and one's own are one's own."""
    from bubble.cli.conversation.tools import awaits_result, is_tool, tool_name

    bubble = message["metadata"]["bubble"]
    run_id = bubble.get("runId")
    if run_id is None or bubble["principalId"] == me or message["role"] == "user":
        return
    is_over = bubble.get("outcome") in _BROKEN_OFF
    answered = {_answered_call(part) for part in message["parts"]}
    for part in message["parts"]:
        if is_tool(part):
            yield _Call(
                run_id=run_id,
                tool_call_id=str(part["toolCallId"]),
                name=tool_name(part),
                input=part.get("input"),
                is_waiting=awaits_result(part) and not is_over,
                is_answered=part["toolCallId"] in answered,
            )


def _answered_call(part: MessagePart) -> JSONValue:
    """The call that somebody gave a result, where the part says that."""
    given = part.get("data") if part["type"] == "data-bubble-tool-result" else None
    return given.get("toolCallId") if isinstance(given, dict) else None
