"""A thread as messages, live: each change of a message as one line."""

import asyncio
import os
import sys
from contextlib import suppress

from bubble import BubbleConnection
from bubble.assembler import message_text


async def main() -> None:
    async with (
        BubbleConnection(os.environ["BUBBLE_URL"], token=os.environ["BUBBLE_TOKEN"]) as bubble,
        bubble.follow_messages(os.environ["THREAD"]) as updates,
    ):
        async for update in updates:
            print(f"{len(update.messages)} messages at {update.head_seq}", flush=True)
            for message in update.upserts:
                about = message["metadata"]["bubble"]
                said = message_text(message)
                print(f"  {message['id']} is {about['status']}: {said!r}", about.get("reactions", ""), flush=True)


if missing := {"BUBBLE_URL", "BUBBLE_TOKEN", "THREAD"} - os.environ.keys():
    sys.exit(f"live: set {' and '.join(sorted(missing))}")
with suppress(KeyboardInterrupt):
    asyncio.run(main())
