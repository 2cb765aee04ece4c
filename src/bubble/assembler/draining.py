"""What an agent is to be told next: the finished runs of others, as one text (spec 5, "What gets forwarded")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bubble.assembler.messages import BubbleMessage
from bubble.assembler.records import FinishRecord, PartRecord, Record, StartRecord, read_record
from bubble.assembler.retained import GivenEvent, keep
from bubble.assembler.text import GrowingText

if TYPE_CHECKING:
    from bubble.assembler.assembler import Assembler

__all__ = ["DrainFile", "DrainPayload", "extract_drain_payload"]


@dataclass(frozen=True, slots=True)
class DrainFile:
    """A file that somebody added: its URL (often a `data:` one), its media type, and its name where it has one."""

    url: str
    media_type: str
    filename: str | None = None


@dataclass(frozen=True, slots=True)
class DrainPayload:
    """What others said in runs that are over.

    `text` is that of the runs `run_ids`, in the order in which they appear in the log, with a blank line between those that have any;
    `files` are theirs, in order. `through_seq` is the last event that was looked at (0 for none). Other runs stay with the caller.
    """

    text: str
    files: tuple[DrainFile, ...]
    run_ids: tuple[str, ...]
    through_seq: int


async def extract_drain_payload(
    events: Sequence[GivenEvent], *, own_principal_id: str, assembler: Assembler
) -> DrainPayload:
    """The payload of the runs in `events` that others started and that are finished.

    What `own_principal_id` says itself is left out, in every run. Raises as `Assembler.assemble` does.
    """
    snapshot = await assembler.assemble(events, grouping="run")
    records = [record for _, text in keep(events) if (record := read_record(text)) is not None]
    run_ids = _foreign_and_finished(snapshot.messages, records, own_principal_id)
    texts = {run_id: GrowingText() for run_id in run_ids}
    files: list[DrainFile] = []
    for run_id, chunk in _chunks_of_others(records, own_principal_id):
        if run_id in texts:
            _collect(chunk, texts[run_id], files)
    said = filter(None, (text.text() for text in texts.values()))
    return DrainPayload("\n\n".join(said), tuple(files), run_ids, snapshot.head_seq)


def _foreign_and_finished(
    messages: Sequence[BubbleMessage], records: Sequence[Record], own_principal_id: str
) -> tuple[str, ...]:
    # The messages tell; of a run that has none, because nothing visible was said in it, its events do.
    starters: dict[str, str] = {}
    finished: set[str] = set()
    for message in messages:
        bubble = message["metadata"]["bubble"]
        if "runId" in bubble:
            starters.setdefault(bubble["runId"], bubble["principalId"])
            if bubble["status"] == "finished":
                finished.add(bubble["runId"])
    for record in records:
        if isinstance(record, StartRecord):
            starters[record.run_id] = record.principal_id
        elif isinstance(record, PartRecord):
            starters.setdefault(record.run_id, record.principal_id)
        elif isinstance(record, FinishRecord):
            finished.add(record.run_id)
    in_order = dict.fromkeys(record.run_id for record in records if isinstance(record, StartRecord | PartRecord))
    return tuple(run for run in in_order if run in finished and starters[run] != own_principal_id)


def _chunks_of_others(records: Sequence[Record], own_principal_id: str) -> Iterator[tuple[str, dict[str, object]]]:
    for record in records:
        if isinstance(record, PartRecord) and record.version == "ai-sdk-v6" and record.principal_id != own_principal_id:
            yield record.run_id, dict(record.part)


def _collect(chunk: dict[str, object], text: GrowingText, files: list[DrainFile]) -> None:
    if chunk.get("type") == "text-delta" and isinstance(delta := chunk.get("delta"), str):
        text.append(delta)
    elif chunk.get("type") == "file":
        url, media_type, filename = chunk.get("url"), chunk.get("mediaType"), chunk.get("filename")
        if isinstance(url, str) and isinstance(media_type, str):
            files.append(DrainFile(url, media_type, filename if isinstance(filename, str) else None))
