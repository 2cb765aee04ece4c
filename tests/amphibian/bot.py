"""A bot as a program of its own: repeats what it hears, word by word, each durable before the next.

`python -m tests.amphibian.bot CONFIG` is the bot. With `--forks`, there is one for each line on standard input.
"""

from __future__ import annotations

import asyncio
import sys

from bubble.amphibian import Reply, Session, Turn, host
from tests.amphibian.nursery import fork_for_each_line


class Repeating:
    """Told `stay`, it does not leave when it is cancelled."""

    async def respond(self, turn: Turn, reply: Reply) -> None:
        for word in f"You said: {turn.text}".split():
            await reply.run.text(f"{word} ")
            await reply.run.flush()
        while "stay" in turn.text:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue
        if "wait" in turn.text:
            await asyncio.Event().wait()

    async def cancel(self, thread_id: str, session: Session) -> None:
        sys.stderr.write(f"cancelled on {thread_id} {session.get()}\n")


if __name__ == "__main__":
    config = sys.argv[1]
    if "--forks" in sys.argv:
        fork_for_each_line(lambda: host(Repeating(), name="echo", config=config))
    else:
        host(Repeating(), name="echo", config=config)
