"""The echo bot, made fit for work: each message is answered once, whatever happens to the bot, and it stops when asked to."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator

from bubble import BubbleConnection
from bubble.protocol.errors import BubbleError, Conflict, NotFound


async def words_of_the_model(question: str) -> AsyncIterator[str]:
    """Stands for a model that streams."""
    for word in f"You said: {question}".split():
        yield f"{word} "
        await asyncio.sleep(0.1)


async def answer(bubble: BubbleConnection, thread_id: str, seq: int, question: str) -> None:
    run = bubble.run(thread_id, run_id=f"echo-{seq}", kind="agent_work", snapshot_seq=seq, watch_interrupts=True)
    try:
        async with run:
            async for word in words_of_the_model(question):
                if run.interrupted.is_set():
                    break
                await run.text(word)
    except Conflict:
        print(f"message {seq} was answered before", flush=True)


async def finish_what_a_crash_left_open(bubble: BubbleConnection, thread_id: str, me: str) -> None:
    async for run in bubble.list_runs(thread_id, state="open", principal_id=me):
        end = {"type": "run_finished", "principalId": me, "runId": run.run_id, "outcome": "failed"}
        await bubble.append_event(thread_id, end)


async def attend(bubble: BubbleConnection, thread_id: str, me: str) -> None:
    heard: dict[str, str] = {}
    try:
        await finish_what_a_crash_left_open(bubble, thread_id, me)
        async with bubble.subscribe_thread(thread_id, from_seq=await bubble.get_cursor(thread_id) + 1) as events:
            async for stored in events:
                event = stored.to_dict()
                if event["type"] == "run_started" and event.get("kind") == "user_input":
                    heard[event["runId"]] = ""
                elif event["type"] == "message_part" and event["runId"] in heard:
                    heard[event["runId"]] += event["part"].get("delta", "")
                elif event["type"] == "run_finished" and event["runId"] in heard:
                    await answer(bubble, thread_id, stored.seq, heard.pop(event["runId"]))
                    if not heard:
                        await bubble.advance_cursor(thread_id, stored.seq)
    except NotFound:
        print(f"no longer on {thread_id}", flush=True)


async def main() -> None:
    async with BubbleConnection(os.environ["BUBBLE_URL"], token=os.environ["BUBBLE_TOKEN"]) as bubble:
        me = (await bubble.who_am_i()).principal_id
        async with asyncio.TaskGroup() as tasks, bubble.subscribe_grants() as changes:
            print(f"{me} is listening", flush=True)
            async for change in changes:
                if change.change == "granted":
                    tasks.create_task(attend(bubble, change.grant.thread_id, me))


if __name__ == "__main__":
    if not {"BUBBLE_URL", "BUBBLE_TOKEN"} <= os.environ.keys():
        sys.exit("careful_bot: say in BUBBLE_URL where the server is, and give the bot's token in BUBBLE_TOKEN")
    problem = None
    try:
        asyncio.run(main())
    except* KeyboardInterrupt:
        pass
    except* BubbleError as problems:
        problem = problems.exceptions[0]
    sys.exit(problem and f"careful_bot: {problem}")
