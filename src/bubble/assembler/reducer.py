"""The AI SDK's fold of `UIMessageChunk`s into one `UIMessage`, at the cost of what each chunk adds.

*Theory of operation.* `_HANDLERS` has one method for each type of chunk. It checks what it needs, then changes the state, so that a chunk
that fails has changed nothing; it answers whether the original would emit a snapshot. The parts live in `Parts`: values that are never
changed in place, beside the few that still grow. A snapshot builds those that grew since the last one and shares all others.

Blocks of text and reasoning are active from their start to their end, or to `finish-step`; a step ends the blocks, never the tool calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, TypeAlias, cast

from msgspec import UNSET, UnsetType

from bubble.assembler.failure import ReducerError
from bubble.assembler.fields import DATA, Chunk, Part, is_truthy, optional_string, present, string
from bubble.assembler.metadata import Metadata
from bubble.assembler.parts import STEP_START, TOOL, DataSource, Parts, SourcedData
from bubble.assembler.plain import copied
from bubble.assembler.text import TextBlock
from bubble.assembler.tools import ToolCalls
from bubble.protocol.jsontext import JSONValue

__all__ = ["MessageReducer", "ReducerError"]

_Blocks: TypeAlias = dict[str, TextBlock]


def _tool(method: Callable[[ToolCalls, Chunk], None]) -> Callable[[MessageReducer, Chunk], bool]:
    def handle(self: MessageReducer, chunk: Chunk) -> bool:
        method(self._tools, chunk)
        return True

    return handle


class MessageReducer:
    """One message, made of chunks in order, as `readUIMessageStream` of npm `ai` 6 makes it.

    `message` is the message to go on with: an assistant's message is continued, of any other only the id is taken. It is copied.
    Payloads of chunks (`data`, `output`, …) become part of the message as they are: do not change them afterwards. Nothing that was
    handed out is ever changed by the reducer, and must not be by others, as snapshots share what did not change between them.
    """

    __slots__ = ("_blocks", "_emitted", "_fields", "_metadata", "_parts", "_reasoning", "_snapshot", "_tools")

    def __init__(self, message: Mapping[str, object] | None = None) -> None:
        """`InvalidRequest` (a `ReducerError`) where `message` has no list of objects as its `parts`."""
        self._emitted = False
        self._snapshot: Part | None = None
        self._begin({"id": "", "role": "assistant"})
        if message is not None:
            self._resume(cast("Part", copied(cast("JSONValue", dict(message)))))

    def apply(self, chunk: Mapping[str, object]) -> bool:
        """Takes the next chunk; True where the original would give a snapshot to its reader.

        Raises `ReducerError` where the original would throw, and where a field has a type that cannot be worked with. The message is
        then as it was. Chunks of unknown types change nothing, and neither does an `error` chunk.
        """
        chunk, kind = _typed(chunk)
        handler = self._HANDLERS.get(kind)
        if handler is None:
            if not kind.startswith(DATA):
                return False
            handler = MessageReducer._data
        emits = handler(self, chunk)
        self._snapshot = None
        self._emitted |= emits
        return emits

    def snapshot(self) -> dict[str, JSONValue] | None:
        """The message as plain JSON data; None before the first emission. The same object as the last time where nothing has changed."""
        if self._snapshot is None and self._emitted:
            self._snapshot = self._built()
        return self._snapshot

    # What follows is for those who put chunks of several speakers into several messages (`bubble.assembler.projection`).

    def parts(self) -> Sequence[Mapping[str, JSONValue]]:
        """The parts, also before the first emission. The sequence and all in it stay as they are."""
        return self._parts.all()

    @property
    def changed_part(self) -> int:
        """The place of the part that was added or changed last; -1 before the first."""
        return self._parts.changed

    @property
    def metadata(self) -> JSONValue | UnsetType:
        """The message's metadata; `UNSET` while it has none."""
        return self._metadata.look()

    def tool(self, tool_call_id: str) -> Mapping[str, JSONValue] | None:
        """The part that an outcome of this call would change: the first in the current step, else the last in the message.

        An input that has come in pieces is left out as long as nothing has completed it.
        """
        return self._tools.part(tool_call_id)

    def would_update(self, chunk: Mapping[str, object]) -> bool:
        """Whether a `tool-*` or `data-*` chunk would change a part that is there; False where it would make one, fail or do nothing."""
        chunk = cast("Chunk", chunk)
        kind = chunk.get("type")
        if not isinstance(kind, str):
            return False
        if kind.startswith(TOOL):
            return self._tools.would_update(chunk)
        return kind.startswith(DATA) and not is_truthy(chunk.get("transient")) and self._find_data(chunk) is not None

    def amend_tool(self, tool_call_id: str, **fields: JSONValue) -> None:
        """Replaces fields of the part that `tool` gives; `ReducerError` where there is none."""
        self._tools.amend(tool_call_id, fields)
        self._changed()

    def amend_last_part(self, **fields: JSONValue) -> None:
        """Replaces fields of the newest part; `ReducerError` where there is none."""
        if not len(self._parts):
            raise ReducerError("There is no part to amend.", chunk_type="none")
        index = len(self._parts) - 1
        self._parts.replace(index, {**self._parts.at(index), **fields})
        self._changed()

    def grow_data(self, kind: str, part_id: str, source: DataSource) -> None:
        """The first data part of this type and id shows what `source` gives, until a chunk replaces it. Say it again at each change."""
        index = self._parts.find_data(kind, part_id)
        if index is None:
            raise ReducerError(f'There is no {kind} part with ID "{part_id}".', chunk_type=kind, chunk_id=part_id)
        growing = self._parts.growing(index)
        if isinstance(growing, SourcedData) and growing.source is source:
            self._parts.touch(index)
        else:
            self._parts.grow(index, SourcedData(self._parts.at(index), source))
        self._changed()

    def _built(self) -> Part:
        message = self._fields.copy()
        if not isinstance(metadata := self._metadata.look(), UnsetType):
            message["metadata"] = metadata
        message["parts"] = cast("JSONValue", self._parts.all())
        return message

    def _changed(self) -> None:
        self._emitted = True
        self._snapshot = None

    def _begin(self, fields: Part) -> None:
        """A new message. `fields` are all but its metadata and parts."""
        self._fields = fields
        self._metadata = Metadata()
        self._parts = Parts()
        self._tools = ToolCalls(self._parts)
        self._blocks: _Blocks = {}
        self._reasoning: _Blocks = {}  # ids of its own

    def _resume(self, message: Part) -> None:
        if message.get("role") != "assistant":
            self._fields["id"] = "" if message.get("id") is None else message["id"]
            return
        parts = message.pop("parts", None)
        if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
            raise ReducerError("`parts` of a message must be a list of objects.", chunk_type="message")
        self._metadata = Metadata(message.pop("metadata", UNSET))
        self._fields = message
        for part in parts:
            self._parts.append(cast("Part", part))
        self._tools.resume()

    # One for each type of chunk: True where the original emits.

    def _start(self, chunk: Chunk) -> bool:
        message_id = optional_string(chunk, "messageId")
        if message_id is not None and message_id != self._fields.get("id"):
            self._begin({"id": message_id, "role": "assistant"})
        return self._merge(chunk) or message_id is not None

    def _merge(self, chunk: Chunk) -> bool:
        metadata = chunk.get("messageMetadata")
        if metadata is None:
            return False
        try:
            self._metadata.merge(metadata)
        except TypeError as error:
            raise ReducerError(str(error), chunk_type=str(chunk["type"])) from None
        return True

    def _start_step(self, chunk: Chunk) -> bool:  # noqa: ARG002 - one of the handlers
        self._parts.append({"type": STEP_START})
        return False

    def _finish_step(self, chunk: Chunk) -> bool:  # noqa: ARG002 - one of the handlers
        for blocks in (self._blocks, self._reasoning):
            for block in blocks.values():
                self._parts.settle(block.index)
            blocks.clear()
        return False

    def _text_start(self, chunk: Chunk) -> bool:
        self._start_block(self._blocks, chunk, {"type": "text"})
        return True

    def _reasoning_start(self, chunk: Chunk) -> bool:
        self._start_block(self._reasoning, chunk, {"type": "reasoning", "id": chunk.get("id")})
        return True

    def _start_block(self, blocks: _Blocks, chunk: Chunk, part: Part) -> None:
        block_id = string(chunk, "id")
        if (left := blocks.get(block_id)) is not None:  # it keeps the state that it has
            self._parts.settle(left.index)
        part |= {"text": "", "state": "streaming", **present(chunk, "providerMetadata")}
        block = blocks[block_id] = TextBlock(part, index=self._parts.append(part))
        self._parts.grow(block.index, block)

    def _text_delta(self, chunk: Chunk) -> bool:
        return self._extend(self._blocks, chunk)

    def _reasoning_delta(self, chunk: Chunk) -> bool:
        return self._extend(self._reasoning, chunk)

    def _extend(self, blocks: _Blocks, chunk: Chunk) -> bool:
        block = _block(blocks, chunk)
        block.append(string(chunk, "delta"))
        if (provider := chunk.get("providerMetadata")) is not None:
            block.amend(providerMetadata=provider)
        self._parts.touch(block.index)
        return True

    def _text_end(self, chunk: Chunk) -> bool:
        return self._end_block(self._blocks, chunk)

    def _reasoning_end(self, chunk: Chunk) -> bool:
        return self._end_block(self._reasoning, chunk)

    def _end_block(self, blocks: _Blocks, chunk: Chunk) -> bool:
        block = _block(blocks, chunk)
        block.amend(state="done")
        if (provider := chunk.get("providerMetadata")) is not None:
            block.amend(providerMetadata=provider)
        del blocks[string(chunk, "id")]
        self._parts.touch(block.index)
        self._parts.settle(block.index)
        return True

    def _file(self, chunk: Chunk) -> bool:
        part = {"type": "file", **present(chunk, "mediaType", "url")}
        if (provider := chunk.get("providerMetadata")) is not None:
            part["providerMetadata"] = provider
        self._parts.append(part)
        return True

    def _source_url(self, chunk: Chunk) -> bool:
        self._parts.append(present(chunk, "type", "sourceId", "url", "title", "providerMetadata"))
        return True

    def _source_document(self, chunk: Chunk) -> bool:
        names = ("type", "sourceId", "mediaType", "title", "filename", "providerMetadata")
        self._parts.append(present(chunk, *names))
        return True

    def _data(self, chunk: Chunk) -> bool:
        if is_truthy(chunk.get("transient")):
            return False
        index = self._find_data(chunk)
        if index is None:
            self._parts.append(dict(chunk))
        else:
            self._parts.replace(index, self._parts.at(index) | {"data": None} | present(chunk, "type", "data"))
        return True

    def _find_data(self, chunk: Chunk) -> int | None:
        part_id = optional_string(chunk, "id")
        return None if part_id is None else self._parts.find_data(string(chunk, "type"), part_id)

    _HANDLERS: ClassVar[Mapping[str, Callable[[MessageReducer, Chunk], bool]]] = {
        "start": _start,
        "finish": _merge,
        "message-metadata": _merge,
        "start-step": _start_step,
        "finish-step": _finish_step,
        "text-start": _text_start,
        "text-delta": _text_delta,
        "text-end": _text_end,
        "reasoning-start": _reasoning_start,
        "reasoning-delta": _reasoning_delta,
        "reasoning-end": _reasoning_end,
        "source-url": _source_url,
        "source-document": _source_document,
        "file": _file,
        "tool-input-start": _tool(ToolCalls.start_input),
        "tool-input-delta": _tool(ToolCalls.extend_input),
        "tool-input-available": _tool(ToolCalls.give_input),
        "tool-input-error": _tool(ToolCalls.refuse_input),
        "tool-approval-request": _tool(ToolCalls.request_approval),
        "tool-output-available": _tool(ToolCalls.give_output),
        "tool-output-error": _tool(ToolCalls.fail),
        "tool-output-denied": _tool(ToolCalls.deny),
    }


def _typed(chunk: Mapping[str, object]) -> tuple[Chunk, str]:
    try:
        kind = chunk.get("type")
    except AttributeError:
        raise ReducerError("A chunk must be an object.", chunk_type=type(chunk).__name__) from None
    if not isinstance(kind, str):
        raise ReducerError("`type` of a chunk must be a string.", chunk_type=type(kind).__name__)
    return cast("Chunk", chunk), kind


def _block(blocks: _Blocks, chunk: Chunk) -> TextBlock:
    block = blocks.get(block_id := string(chunk, "id"))
    if block is not None:
        return block
    kind = string(chunk, "type")
    what = kind.partition("-")[0]
    raise ReducerError(
        f'Received {kind} for missing {what} part with ID "{block_id}". '
        f'Ensure a "{what}-start" chunk is sent before any "{kind}" chunks.',
        chunk_type=kind,
        chunk_id=block_id,
    )
