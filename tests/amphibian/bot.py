"""A bot as a program of its own: repeats what it hears, word by word, each durable before the next.

`python bot.py CONFIG` is the bot. `python bot.py CONFIG --forks` starts one for each line on standard input, as a child that has everything
loaded, and says its process id; that is quicker than a new interpreter, and a child is killed like any other process.
"""

from __future__ import annotations

import asyncio
import os
import sys

from bubble.amphibian import Reply, Session, Turn, host


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


def fork_for_each_line(config: str) -> None:
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            host(Repeating(), name="echo", config=config)
            os._exit(0)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
        os.waitpid(child, 0)
        sys.stdout.write("ended\n")
        sys.stdout.flush()


if __name__ == "__main__":
    if "--forks" in sys.argv:
        fork_for_each_line(sys.argv[1])
    else:
        host(Repeating(), name="echo", config=sys.argv[1])
