"""What a person sends: one message, as one run of kind `user_input`, appended whole or not at all (spec 4, "Outbound user messages")."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TypeAlias

from bubble.assembler import Assembler, EventPart
from bubble.client.events import EventLog
from bubble.client.files import file_chunk
from bubble.client.sizes import Sizes, pieces
from bubble.protocol.errors import InvalidRequest
from bubble.protocol.events import EncodedEvent, MessagePart, RunFinished, RunStarted, encoded, raw
from bubble.protocol.identifiers import new_id
from bubble.protocol.jsontext import JSONValue

__all__ = ["AttachedFile", "Outbound", "SentMessage"]

AttachedFile: TypeAlias = "str | PathLike[str] | tuple[str, bytes, str | None]"
"""A URL, a path (as a `pathlib.Path`), or `(filename, bytes, media type)`; None as the media type tells it from the name."""


# Bytes around the events of a batch.
_AROUND = len(b'{"events":[]}')


@dataclass(frozen=True, slots=True, kw_only=True)
class SentMessage:
    """Where a message is in the log. Assembled, its id is the `run_id`."""

    run_id: str
    started_seq: int
    finished_seq: int


class Outbound:
    """Makes messages into events and appends them."""

    def __init__(
        self,
        *,
        principal_id: Callable[[], Awaitable[str]],
        events: EventLog,
        sizes: Sizes,
        assembler: Callable[[], Awaitable[Assembler]],
    ) -> None:
        self._principal_id = principal_id
        self._events = events
        self._sizes = sizes
        self._assembler = assembler

    async def send(
        self,
        thread_id: str,
        text: str,
        *,
        files: Sequence[AttachedFile],
        message: Mapping[str, object] | None,
        idempotency_key: str | None,
    ) -> SentMessage:
        """Sends what is given of `text`, `files` and the parts of a UI message, in this order."""
        _check_arguments(text, files)
        author, run_id = await self._principal_id(), _run_id(idempotency_key)
        parts = [
            MessagePart(principal_id=author, run_id=run_id, part=raw(part.part), version=part.version)
            async for part in self._parts(text, files, message)
        ]
        if not parts:
            raise InvalidRequest("There is nothing to send: neither text nor files.")
        events = [
            encoded(RunStarted(principal_id=author, run_id=run_id, kind="user_input")),
            *map(encoded, parts),
            encoded(RunFinished(principal_id=author, run_id=run_id, outcome="success")),
        ]
        await self._check(events)
        stored = await self._events.append_many(thread_id, events, idempotency_key=idempotency_key)
        return SentMessage(run_id=run_id, started_seq=stored[0].seq, finished_seq=stored[-1].seq)

    async def _parts(
        self, text: str, files: Sequence[AttachedFile], message: Mapping[str, object] | None
    ) -> AsyncIterator[EventPart]:
        for chunk in _text_chunks(text) if text else ():
            yield EventPart("ai-sdk-v6", chunk)
        for index, file in enumerate(files):
            yield EventPart("ai-sdk-v6", await self._file(index, file))
        for part in await (await self._assembler()).encode(message) if message is not None else ():
            for piece in _split(part):
                yield piece

    async def _file(self, index: int, file: AttachedFile) -> dict[str, JSONValue]:
        if isinstance(file, str | PathLike):
            return await file_chunk(file, sizes=self._sizes)
        if not _is_named_file(file):
            raise InvalidRequest(f"`files[{index}]` must be a URL, a path, or `(filename, bytes, media type)`.")
        filename, data, media_type = file
        return await file_chunk(data, media_type=media_type, filename=filename, sizes=self._sizes)

    async def _check(self, events: Sequence[EncodedEvent]) -> None:
        for event in events:
            await self._sizes.check_event(event.text, what="A part of the message")
        await self._sizes.check_batch(len(events), sum(len(event.text) + 1 for event in events) + _AROUND)


def _check_arguments(text: object, files: object) -> None:
    if not isinstance(text, str):
        raise InvalidRequest("`text` must be a string.")
    if isinstance(files, str | bytes) or not isinstance(files, Sequence):
        raise InvalidRequest("`files` must be a list of files.")


def _is_named_file(file: object) -> bool:
    if not (isinstance(file, tuple) and len(file) == 3):
        return False
    filename, data, media_type = file
    return isinstance(filename, str) and isinstance(data, bytes) and isinstance(media_type, str | None)


def _text_chunks(text: str) -> Sequence[dict[str, JSONValue]]:
    deltas: list[dict[str, JSONValue]] = [
        {"type": "text-delta", "id": "text-1", "delta": piece} for piece in pieces(text)
    ]
    return [{"type": "text-start", "id": "text-1"}, *deltas, {"type": "text-end", "id": "text-1"}]


def _split(part: EventPart) -> Iterator[EventPart]:
    # A long text is one delta where it comes from, and may be more than an event holds.
    delta = part.part.get("delta")
    if part.version != "ai-sdk-v6" or not isinstance(delta, str):
        yield part
        return
    for piece in pieces(delta):
        yield EventPart(part.version, {**part.part, "delta": piece})


def _run_id(idempotency_key: str | None) -> str:
    # Sent again under the same key, the message must be the same to the byte.
    return (
        new_id()
        if idempotency_key is None
        else hashlib.sha256(idempotency_key.encode(errors="surrogatepass")).hexdigest()[:32]
    )
