"""`bubble messages`: a page of a thread's messages, without following it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bubble.cli.output import JsonOption, note, stdout_console, write_json
from bubble.cli.profiles import ProfileOption
from bubble.cli.remote import connected, run_async
from bubble.cli.threads import GroupingOption, ThreadArgument

if TYPE_CHECKING:
    from bubble.assembler import Grouping
    from bubble.client import MessagePage

__all__ = ["app"]

app = typer.Typer(add_completion=False, name="messages", help="Read a page of a thread's messages.")


@app.command()
def messages(
    thread_id: ThreadArgument,
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=200, help="At most so many.")] = 20,
    before: Annotated[
        int | None, typer.Option("--before", metavar="SEQ", min=1, help="Only those that opened before this seq.")
    ] = None,
    grouping: GroupingOption = "speaker",
    as_json: JsonOption = False,
    profile: ProfileOption = None,
) -> None:
    """The newest messages of a thread, or those before a seq; `bubble tail` follows it."""
    page = run_async(_read(profile, thread_id, before=before, limit=limit, grouping=grouping))
    if as_json:
        write_json({"messages": page.messages, "headSeq": page.head_seq, "nextBefore": page.next_before})
        return
    _tell(page, grouping)
    if page.next_before is not None:
        note(f"Those before: `bubble messages {thread_id} --before {page.next_before}`.")


async def _read(
    profile: str | None, thread_id: str, *, before: int | None, limit: int, grouping: Grouping
) -> MessagePage:
    async with connected(profile) as bubble:
        return await bubble.get_message_page(thread_id, before=before, limit=limit, grouping=grouping)


def _tell(page: MessagePage, grouping: Grouping) -> None:
    from bubble.cli.conversation import Conversation, Screen

    conversation = Conversation(grouping=grouping)
    with Screen(stdout_console()) as screen:
        screen.end([*conversation.take(page.messages), *conversation.rest()])
    if not page.messages:
        note("There are no messages.")
