import asyncio
import os
import sys

from bubble import BubbleConnection, BubbleError


async def main() -> None:
    async with BubbleConnection("http://127.0.0.1:3000", token=os.environ.get("BUBBLE_TOKEN", "")) as bubble:
        thread = await bubble.create_thread(title="Hello")
        async with bubble.run(thread.thread_id, kind="user_input") as run:
            await run.text("Is anybody there?")
        async with bubble.subscribe_thread(thread.thread_id, from_seq=1) as events:
            async for event in events:
                print(event.seq, event.type)
                if event.type == "run_finished":
                    break


try:
    asyncio.run(main())
except BubbleError as problem:
    sys.exit(f"hello: {problem}")
