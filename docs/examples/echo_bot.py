import asyncio
import os
import sys

from bubble import BubbleConnection, BubbleError


async def attend(bubble: BubbleConnection, thread_id: str) -> None:
    heard = {}
    async with bubble.subscribe_thread(thread_id, from_seq=await bubble.get_cursor(thread_id) + 1) as events:
        async for stored in events:
            event = stored.to_dict()
            if event["type"] == "run_started" and event.get("kind") == "user_input":
                heard[event["runId"]] = ""
            elif event["type"] == "message_part" and event["runId"] in heard:
                heard[event["runId"]] += event["part"].get("delta", "")
            elif event["type"] == "run_finished" and event["runId"] in heard:
                async with bubble.run(thread_id, kind="agent_work", snapshot_seq=stored.seq) as run:
                    await run.text(f"You said: {heard.pop(event['runId'])}")
                await bubble.advance_cursor(thread_id, stored.seq)


async def main() -> None:
    async with BubbleConnection(os.environ["BUBBLE_URL"], token=os.environ["BUBBLE_TOKEN"]) as bubble:
        async with asyncio.TaskGroup() as tasks, bubble.subscribe_grants() as changes:
            async for change in changes:
                if change.change == "granted":
                    tasks.create_task(attend(bubble, change.grant.thread_id))


if __name__ == "__main__":
    if not {"BUBBLE_URL", "BUBBLE_TOKEN"} <= os.environ.keys():
        sys.exit("echo_bot: say in BUBBLE_URL where the server is, and give the bot's token in BUBBLE_TOKEN")
    problem = None
    try:
        asyncio.run(main())
    except* KeyboardInterrupt:
        pass
    except* BubbleError as problems:
        problem = problems.exceptions[0]
    sys.exit(problem and f"echo_bot: {problem}")
