"""Every recorded exchange with a real agent, replayed byte for byte in arbitrary pieces, comes to the same on a thread."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

import pytest

from bubble.reef.agent import ReefAgent
from tests.reef.expectations import expected
from tests.reef.raw_agent import raw_agent
from tests.reef.recordings import Recording, Replay, recordings
from tests.reef.stage import Stage

pytestmark = pytest.mark.anyio

RECORDINGS = list(recordings())


def test_there_are_recordings_of_every_dialect() -> None:
    assert {(each.generation, each.binding) for each in RECORDINGS} == {
        (generation, binding) for generation in ("0.3", "1.0") for binding in ("JSONRPC", "HTTP+JSON")
    }


@pytest.mark.requirement("RF-14", "RF-31", "RF-105")
@pytest.mark.parametrize("recording", RECORDINGS, ids=str)
async def test_a_recorded_reply_is_on_the_thread_once(
    recording: Recording, make_stage: Callable[..., Awaitable[Stage]], reef_to: Callable[..., ReefAgent]
) -> None:
    for at, exchange in recording.sent():
        for seed in range(2):
            replay = Replay(recording, start=at, cuts=random.Random(seed))  # noqa: S311 - cuts, no secrets
            task_id = exchange.message.get("taskId")
            async with raw_agent(replay, binding=recording.binding, generation=recording.generation) as raw:
                stage = await make_stage({"taskId": task_id} if task_id else {})
                held = await stage.ask(reef_to(raw.url), "whatever was asked")
            wanted = expected(recording, at)
            assert (held.text, held.reasoning) == (wanted.text, wanted.reasoning)
            assert held.assembled_text == wanted.text
            assert held.calls == list(wanted.calls)
            assert held.files == list(wanted.files)
            assert (held.counts("run_started"), held.counts("run_finished")) == (1, 1)
            assert held.outcomes == [wanted.outcome]
            assert len(held.errors) == (wanted.error is not None)
            assert (wanted.error or "") in "".join(held.errors)
