"""What of a turn is sent to the agent."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace

from bubble.amphibian import Turn
from bubble.assembler import create_assembler, extract_drain_payload
from bubble.protocol.events import RunFinished, RunStarted
from bubble.reef.events import Part, TextPart
from bubble.reef.files import file_part

__all__ = ["first_end", "later_than", "parts_of"]

_logger = logging.getLogger("bubble.reef")


def parts_of(turn: Turn) -> tuple[Part, ...]:
    """Its words and files; files that cannot be sent are left out, and logged."""
    words = (TextPart(text=turn.text),) if turn.text else ()
    return (*words, *_files(turn))


def first_end(turn: Turn) -> int:
    """Where the first of its runs ended; 0 where it has none."""
    return min((end.seq for end in turn.events if isinstance(end.event, RunFinished)), default=0)


async def later_than(seq: int, turn: Turn) -> Turn:
    """What of the turn was said in runs that ended after `seq`; perhaps all of it, perhaps nothing."""
    ends = {end.event.run_id for end in turn.events if end.seq > seq and isinstance(end.event, RunFinished)}
    events = [stored for stored in turn.events if getattr(stored.event, "run_id", None) in ends]
    payload = await extract_drain_payload(events, own_principal_id="", assembler=create_assembler())
    authors = {each.event.run_id: each.event.principal_id for each in events if isinstance(each.event, RunStarted)}
    return replace(
        turn,
        text=payload.text,
        files=payload.files,
        run_ids=payload.run_ids,
        authors=[authors[run_id] for run_id in payload.run_ids],
        events=events,
    )


def _files(turn: Turn) -> Iterator[Part]:
    for file in turn.files:
        try:
            part = file_part(url=file.url, media_type=file.media_type, filename=file.filename)
        except ValueError as error:
            _logger.warning("A file on thread %s is not sent to the agent: %s.", turn.thread_id, error)
            continue
        if part is None:
            _logger.warning(
                "A file on thread %s is not sent to the agent: nobody else can fetch its URL.", turn.thread_id
            )
        else:
            yield part
