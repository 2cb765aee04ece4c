"""From a callback to a coroutine: an append that waits for its outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bubble.protocol.errors import BubbleError, InvalidRequest
from bubble.protocol.events import BubbleEvent, EncodedEvent, encoded
from bubble.protocol.identifiers import check_name
from bubble.store.commands import AppendCommand, Appended, AppendResult, Guard, IdempotencyKey

if TYPE_CHECKING:
    from bubble.store.base import BubbleStore

__all__ = ["append_and_wait"]


async def append_and_wait(
    store: BubbleStore,
    thread_id: str,
    events: Sequence[BubbleEvent | Mapping[str, object] | EncodedEvent],
    *,
    guard: Guard | None = None,
    idempotency: IdempotencyKey | None = None,
    expected_head: int | None = None,
) -> Appended:
    """Submits one command and waits until it is durable; raises what it was refused with.

    Cancelling the wait does not take the append back: it may still be stored.
    """
    check_name(thread_id, path="threadId")
    if not events:
        raise InvalidRequest("`events` must hold at least one event.")
    outcome: asyncio.Future[AppendResult] = asyncio.get_running_loop().create_future()

    def done(result: AppendResult) -> None:
        if not outcome.done():
            outcome.set_result(result)

    store.submit(
        AppendCommand(
            thread_id=thread_id,
            events=_encoded(events),
            done=done,
            guard=guard,
            idempotency=idempotency,
            expected_head=expected_head,
            create=guard is None,
        )
    )
    result = await outcome
    if isinstance(result, BubbleError):
        raise result
    return result


def _encoded(events: Sequence[BubbleEvent | Mapping[str, object] | EncodedEvent]) -> Sequence[EncodedEvent]:
    if len(events) == 1:
        return [encoded(events[0])]
    return [encoded(event, path=f"$[{index}]") for index, event in enumerate(events)]
