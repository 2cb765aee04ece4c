"""`bubble result`: what a person answers to a tool call that waits for its result."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from bubble.cli.choices import named, tell
from bubble.cli.failures import CommandError, UsageProblem
from bubble.cli.given import checked_text, read_text
from bubble.cli.output import JsonOption
from bubble.cli.profiles import ProfileOption
from bubble.cli.remote import connected, run_async
from bubble.cli.threads import ThreadArgument
from bubble.protocol.events import SequencedEvent, ToolCallResult, raw
from bubble.protocol.jsontext import JSONValue, load_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from msgspec import Raw

    from bubble.assembler import BubbleMessage
    from bubble.assembler.messages import MessagePart
    from bubble.client import BubbleConnection

__all__ = ["app"]

app = typer.Typer(add_completion=False, name="result", help="Give a tool call its result.")

# Messages that are looked through in one step, from the end, and in how many steps a call that waits is looked for.
_PAGE: Final = 200
_MOST_PAGES: Final = 10
_LIKE_JSON: Final = ("{", "[", '"')
# After such an end nobody waits for a result any more.
_BROKEN_OFF: Final = frozenset({"failed", "interrupted", "lost"})
_ENDS: Final[Mapping[str, str]] = {
    "output-available": "has its output already",
    "output-error": "has failed already",
    "output-denied": "was not allowed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """A tool call of somebody else's run."""

    run_id: str
    tool_call_id: str
    name: str
    input: JSONValue
    is_waiting: bool
    is_answered: bool
    """Whether somebody gave it a result."""
    end: str | None
    """What came of it, in words, so that no result can be given any more."""

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
    again: Annotated[
        bool,
        typer.Option("--again", help="The --call has a result, but its agent could not be given it: give it one anew."),
    ] = False,
    as_json: JsonOption = False,
    profile: ProfileOption = None,
) -> None:
    """Give a tool call that waits for it its result, in place of the tool."""
    if again and tool_call_id is None:
        raise UsageProblem("--again needs the --call that has a result.")
    output = _output(_given(value or [], file), as_text=as_text)
    call, stored = run_async(_append(profile, thread_id, run_id, tool_call_id, output, again=again))
    tell(stored, as_json=as_json, said=f"Gave {call.name} its result, seq {stored.seq}.")


def _given(words: Sequence[str], file: Path | None) -> str:
    if file is not None:
        if words:
            raise UsageProblem("The result is either given or in a file: leave one of them out.")
        return _text_of(file)
    if words and [*words] != ["-"]:
        return checked_text(" ".join(words))
    return read_text(asks="the result")


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
    profile: str | None, thread_id: str, run_id: str | None, tool_call_id: str | None, output: Raw, *, again: bool
) -> tuple[_Call, SequencedEvent]:
    async with connected(profile) as bubble:
        me = (await bubble.who_am_i()).principal_id
        call = await _chosen(bubble, thread_id, run_id, tool_call_id, me)
        if again and not call.is_answered:
            raise CommandError(f"{call} was given no result yet: leave --again out.")
        if call.end is not None and not again:
            raise CommandError(f"{call} {call.end}.")
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
    where = thread_id if run_id is None else f"run {run_id} of {thread_id}"
    if tool_call_id is not None:
        return await _named_call(bubble, thread_id, run_id, tool_call_id, me, where=where)
    waiting = await _waiting_calls(bubble, thread_id, run_id, me)
    if not waiting:
        raise CommandError(f"No tool call waits for a result on {where}.")
    return _only(waiting, thread_id, option="--call")


async def _named_call(
    bubble: BubbleConnection, thread_id: str, run_id: str | None, tool_call_id: str, me: str, *, where: str
) -> _Call:
    """The call with this id: the one that waits, or else the newest."""
    async for calls, _ in _pages(bubble, thread_id, me):
        found = [call for call in calls if call.tool_call_id == tool_call_id and run_id in (None, call.run_id)]
        waiting = [call for call in found if call.is_waiting]
        if found:
            return _only(waiting, thread_id, option="--run") if waiting else found[-1]
    raise UsageProblem(f"Nobody else has made a call {tool_call_id} on {where}.")


async def _waiting_calls(bubble: BubbleConnection, thread_id: str, run_id: str | None, me: str) -> list[_Call]:
    """All calls that wait, the newest last. Which is meant can only be told where all were seen: a long thread is not read for that."""
    waiting: list[_Call] = []
    pages = 0
    async for calls, is_first in _pages(bubble, thread_id, me):
        found = [call for call in calls if run_id in (None, call.run_id)]
        waiting = [call for call in found if call.is_waiting] + waiting
        if run_id is not None and found:  # what the owner of a run says in it is one message
            break
        pages += 1
        if pages == _MOST_PAGES and not is_first:
            raise UsageProblem(f"{thread_id} is too long to look for all calls that wait: say which --call or --run.")
    return waiting


async def _pages(bubble: BubbleConnection, thread_id: str, me: str) -> AsyncIterator[tuple[list[_Call], bool]]:
    """The calls of others by pages, the newest page first, and whether a page is the first of the thread."""
    before: int | None = None
    while True:
        page = await bubble.get_message_page(thread_id, before=before, limit=_PAGE, grouping="run")
        before = page.next_before
        yield [call for message in page.messages for call in _calls_in(message, me)], before is None
        if before is None:
            return


def _only(calls: Sequence[_Call], thread_id: str, *, option: str) -> _Call:
    if len(calls) > 1:
        raise UsageProblem(f"{len(calls)} tool calls wait on {thread_id}, say which {option}: {named(calls)}.")
    return calls[0]


def _calls_in(message: BubbleMessage, me: str) -> list[_Call]:
    """The calls that the owner of a run made, of each id the newest. What somebody else put into the run only looks like one, and one's
    own are one's own.
    """
    from bubble.cli.conversation.tools import awaits_result, is_tool, tool_name

    bubble = message["metadata"]["bubble"]
    run_id = bubble.get("runId")
    if run_id is None or bubble["principalId"] == me or message["role"] == "user":
        return []
    is_over = bubble.get("outcome") in _BROKEN_OFF
    answered = {_answered_call(part) for part in message["parts"]}
    calls: dict[str, _Call] = {}
    for part in filter(is_tool, message["parts"]):
        call_id = str(part["toolCallId"])
        end = _end(part, is_answered=call_id in answered)
        calls[call_id] = _Call(
            run_id=run_id,
            tool_call_id=call_id,
            name=tool_name(part),
            input=part.get("input"),
            is_waiting=awaits_result(part) and end is None and not is_over,
            is_answered=call_id in answered,
            end=end,
        )
    return list(calls.values())


def _end(part: MessagePart, *, is_answered: bool) -> str | None:
    approval = part.get("approval")
    if is_answered:
        return "has a result already, and the first one counts; if its agent could not be given that, --again gives one anew"
    if part.get("state") == "approval-responded" and isinstance(approval, dict) and approval.get("approved") is False:
        return "was rejected"
    return None if part.get("preliminary") is True else _ENDS.get(str(part.get("state")))


def _answered_call(part: MessagePart) -> JSONValue:
    """The call that somebody gave a result, where the part says that."""
    given = part.get("data") if part["type"] == "data-bubble-tool-result" else None
    return given.get("toolCallId") if isinstance(given, dict) else None
