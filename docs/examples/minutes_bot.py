"""A bot that is quiet until somebody calls it, and then goes through everything that was said since it was last called."""

import asyncio
import os
import sys
from contextlib import suppress

from bubble import BubbleConnection
from bubble.assembler import message_text


def lines_of(messages: list, *, me: str) -> list[str]:
    """What others said, one line per message."""
    lines = []
    for message in messages:
        author = message["metadata"]["bubble"]["principalId"]
        text = message_text(message)
        if text and author != me:
            lines.append(f"{author}: {text}")
    return lines


async def main() -> None:
    thread_id = os.environ["THREAD"]
    async with BubbleConnection(os.environ["BUBBLE_URL"], token=os.environ["HELPER_TOKEN"]) as bubble:
        me = (await bubble.who_am_i()).principal_id
        await bubble.extensions.negotiate()
        thread = bubble.assembler.create().open(grouping="run")
        settled = await bubble.get_cursor(thread_id)
        async with bubble.subscribe_thread(thread_id) as events:
            async for event in events:
                await thread.apply([event])
                if event.type != "run_finished" or event.seq <= settled:
                    continue
                await thread.clear_window(settled)
                window = await thread.window()
                said = lines_of(window.messages, me=me)
                if not any("@minutes" in line for line in said):
                    continue
                async with bubble.run(thread_id, kind="agent_work", snapshot_seq=window.through_seq) as run:
                    await run.text("Since the last minutes:\n" + "\n".join(said[:-1]))
                settled = await bubble.advance_cursor(thread_id, window.through_seq)


if __name__ == "__main__":
    if missing := {"BUBBLE_URL", "HELPER_TOKEN", "THREAD"} - os.environ.keys():
        sys.exit(f"minutes_bot: set {' and '.join(sorted(missing))}")
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
