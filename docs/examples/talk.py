"""A short conversation to show: somebody asks, a bot answers, and is interrupted."""

import asyncio
import os
import sys

from bubble import BubbleConnection, BubbleError


async def main() -> None:
    url, thread_id = os.environ["BUBBLE_URL"], os.environ["THREAD"]
    async with (
        BubbleConnection(url, token=os.environ["CAROL_TOKEN"]) as carol,
        BubbleConnection(url, token=os.environ["HELPER_TOKEN"]) as helper,
    ):
        await carol.send_message(thread_id, "What does it cost to send order 4711 back?")
        async with helper.run(thread_id, run_id="answer-1", kind="agent_work") as run:
            await run.reasoning("It depends on the weight.")
            call = await run.tool_call("weigh", {"order": 4711}, tool_call_id="call-1")
            await call.output({"kg": 2.5})
            await run.text("Sending it ")
            await run.flush()
            await carol.send_message(thread_id, "No insurance!")
            await run.text("costs 8 euros.")


if missing := {"BUBBLE_URL", "CAROL_TOKEN", "HELPER_TOKEN", "THREAD"} - os.environ.keys():
    sys.exit(f"talk: set {' and '.join(sorted(missing))}")
try:
    asyncio.run(main())
except BubbleError as problem:
    sys.exit(f"talk: {problem}")
