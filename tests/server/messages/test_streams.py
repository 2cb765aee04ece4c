"""Whatever happens between viewers and a thread, in whatever order: what they see is what the thread shows."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from bubble.assembler import BubbleMessage, Grouping
from bubble.server.messages.portion import first_seq
from bubble.store.memory import MemoryStore
from tests.hub.sinks import make_thread
from tests.server.messages.logs import Move, Writer, moves
from tests.server.messages.viewers import Viewer, a_gallery
from tests.server.messages.views import THREAD, a_view, in_small, whole

STEPS = st.lists(
    st.tuples(st.sampled_from(["write", "write", "freeze", "thaw", "cut", "breathe", "come"]), st.integers(0, 30)),
    min_size=1,
    max_size=25,
)


async def play(viewers: list[Viewer], step: str, number: int) -> None:
    """One step with one of the viewers."""
    viewer = viewers[number % len(viewers)]
    if step == "freeze":
        viewer.freeze()
    elif step == "thaw":
        viewer.thaw()
    elif step == "cut":
        await viewer.leave()
        await viewer.look()
    else:
        for _ in range(number):
            await asyncio.sleep(0)


def sees_it_all(viewer: Viewer, messages: list[BubbleMessage]) -> None:
    """Nothing is missing from its first message on, and nothing is otherwise than in the thread."""
    there = {message["id"]: message for message in messages}
    assert viewer.shown.items() <= there.items()
    assert viewer.floor is not None
    assert [one["id"] for one in messages if first_seq(one) >= viewer.floor and one["id"] not in viewer.shown] == []


@settings(max_examples=150)
@given(made=moves(most=150), grouping=st.sampled_from(["speaker", "run"]), limit=st.integers(1, 6), steps=STEPS)
def test_every_viewer_sees_what_the_thread_shows_whatever_happens(
    made: list[Move], grouping: Grouping, limit: int, steps: list[tuple[str, int]]
) -> None:
    async def story() -> None:
        store = MemoryStore()
        await make_thread(store, THREAD)
        async with a_gallery(store) as gallery:
            writer = Writer(store, THREAD)
            viewers = [gallery.viewer(grouping=grouping, limit=limit)]
            await viewers[0].look()
            left = list(made)
            for step, number in steps:
                if step == "write":
                    await writer.write(left[:number])
                    del left[:number]
                elif step == "come":
                    viewers.append(gallery.viewer(grouping=grouping, limit=limit))
                    await viewers[-1].look()
                else:
                    await play(viewers, step, number)
            head = await writer.say("the end")
            messages = await whole(a_view(store, grouping), head)
            for viewer in viewers:
                viewer.thaw()
                await viewer.has_got(head)
                sees_it_all(viewer, messages)

    with in_small():
        asyncio.run(story())
