"""All messages of a thread, as they are now."""

import asyncio
import os
import sys

from bubble import BubbleConnection, create_assembler


async def main(grouping: str) -> None:
    async with BubbleConnection(os.environ["BUBBLE_URL"], token=os.environ["BUBBLE_TOKEN"]) as bubble:
        events = [event async for event in bubble.iter_events(os.environ["THREAD"])]
    snapshot = await create_assembler().assemble(events, grouping=grouping)
    for message in snapshot.messages:
        print(f"{message['id']} ({message['role']}, {message['metadata']['bubble']['principalId']})")
        for part in message["parts"]:
            print("   ", line_of(part))


def line_of(part: dict) -> str:
    match part["type"].split("-"):
        case ["text"]:
            return part["text"]
        case ["reasoning"]:
            return f"thinks: {part['text']}"
        case ["tool", *name]:
            return f"calls {'-'.join(name)}({part.get('input')}): {part['state']} {part.get('output', '')}"
        case ["data", "bubble", "participant"]:
            return f"{part['data']['principalId']} {part['data']['action']}"
        case _:
            return f"[{part['type']}]"


if __name__ == "__main__":
    if missing := {"BUBBLE_URL", "BUBBLE_TOKEN", "THREAD"} - os.environ.keys():
        sys.exit(f"show: set {' and '.join(sorted(missing))}")
    asyncio.run(main(*sys.argv[1:] or ["speaker"]))
