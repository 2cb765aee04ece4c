"""What the chunks of a voice do: the table of `projection`, as code.

Each function gives the message that holds the event from now on, or the anchor of one that is still to come; None where the event left no
trace. What the reducer refuses leaves none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from bubble.assembler.failure import ReducerError
from bubble.assembler.fields import DATA, Part, is_truthy, optional_string, string
from bubble.assembler.handlers import GrowingData, Grown, Reading, extension_chunk
from bubble.assembler.messages import FACTS
from bubble.assembler.reactions import Holder, Reaction, read_reaction
from bubble.assembler.runs import BlockKey, Call, DataPart, Voice
from bubble.assembler.segment import Segment
from bubble.assembler.settling import carry_out, uphold
from bubble.assembler.stage import Stage
from bubble.protocol.jsontext import JSONValue

__all__ = ["take_chunk", "take_reading"]

# Characters of streamed inputs that an author may have shown once more by going on with them in later steps.
_MOST_REPEATED: Final = 65_536


def take_chunk(stage: Stage, voice: Voice, chunk: Part) -> Holder | None:
    """Takes a chunk of the AI SDK."""
    kind = chunk.get("type")
    if not isinstance(kind, str):
        return None
    take = _CHUNKS.get(kind)
    if take is None:
        if not kind.startswith(DATA):
            return None
        take = _take_data
    try:
        return take(stage, voice, chunk)
    except ReducerError:
        return None


def take_reading(stage: Stage, voice: Voice, reading: Reading) -> Holder | None:
    """Takes what a native part stands for."""
    if (reaction := read_reaction(voice.author, reading.part)) is not None:
        _react(stage, reaction)
        return None
    if reading.grow is not None:
        return _take_growing(stage, voice, reading, reading.grow)
    holder: Holder | None = None
    for chunk in reading.chunks:
        holder = take_chunk(stage, voice, chunk) or holder
    return holder


def _take_growing(
    stage: Stage, voice: Voice, reading: Reading, grow: Callable[[JSONValue], GrowingData]
) -> Holder | None:
    [chunk] = reading.chunks
    kind, part_id = key = string(chunk, "type"), string(chunk, "id")
    shown = voice.data.get(key)
    growing = None if shown is None else shown.growing
    try:
        if growing is None:
            growing = Grown(grow(None if shown is None else shown.data))
            if shown is not None:  # what it took to begin is not taken again for each part that cannot be added
                shown.growing = growing
        growing.add(reading.part)
    except Exception:  # noqa: BLE001 - the batch is half folded, so nothing may come out; the part is shown as it is
        return take_chunk(stage, voice, extension_chunk(reading.part))
    if shown is None:
        if take_chunk(stage, voice, chunk | {"data": None}) is None:
            return None
        shown = voice.data[key]
        shown.growing = growing
    shown.segment.grow(kind, part_id, growing)
    return shown.segment


def _react(stage: Stage, reaction: Reaction) -> None:
    target = stage.places.find(reaction.target_seq)
    if target is not None:
        target.react(reaction)


def _begin_block(stage: Stage, voice: Voice, chunk: Part) -> Segment:
    segment = voice.blocks[_block_key(chunk)] = stage.speak(voice, chunk)
    voice.run.talking.add(voice)
    return segment


def _extend_block(stage: Stage, voice: Voice, chunk: Part) -> Segment | None:
    key = _block_key(chunk)
    segment = voice.blocks.get(key)
    if segment is None:
        return None
    delta = string(chunk, "delta")
    if not delta:
        segment.note(chunk)
    elif segment is stage.last or stage.is_by_run:
        segment.extend(chunk, delta)
    else:
        return _carry_over(stage, voice, key, chunk)
    return segment


def _carry_over(stage: Stage, voice: Voice, key: BlockKey, chunk: Part) -> Segment:
    kind, block_id = key
    segment = stage.speak(voice, {"type": f"{kind}-start", "id": block_id})
    segment.extend(chunk, string(chunk, "delta"))
    voice.blocks[key].note({"type": f"{kind}-end", "id": block_id})
    voice.blocks[key] = segment
    return segment


def _end_block(_: Stage, voice: Voice, chunk: Part) -> Segment | None:
    key = _block_key(chunk)
    segment = voice.blocks.get(key)
    if segment is not None:
        segment.note(chunk)
        del voice.blocks[key]
    return segment


def _end_step(_: Stage, voice: Voice, chunk: Part) -> Holder:
    for segment in set(voice.blocks.values()):
        segment.note(chunk)
    voice.blocks.clear()
    return voice.segment or voice.anchor


def _add_part(stage: Stage, voice: Voice, chunk: Part) -> Segment:
    return stage.speak(voice, chunk)


def _add_file(stage: Stage, voice: Voice, chunk: Part) -> Segment:
    segment = stage.speak(voice, chunk)
    filename = chunk.get("filename")
    if isinstance(filename, str):
        segment.reducer.amend_last_part(filename=filename)
    return segment


def _take_data(stage: Stage, voice: Voice, chunk: Part) -> Segment | None:
    kind, part_id = string(chunk, "type"), optional_string(chunk, "id")
    if kind in FACTS or is_truthy(chunk.get("transient")):
        return None
    if part_id is None:
        return stage.speak(voice, chunk)
    shown = voice.data.get((kind, part_id))
    if shown is None:
        segment = stage.speak(voice, chunk)
    else:
        segment = shown.segment
        segment.show(chunk)
    voice.data[kind, part_id] = DataPart(segment, chunk.get("data"))
    return segment


def _give_input(stage: Stage, voice: Voice, chunk: Part) -> Segment:
    call_id, run = string(chunk, "toolCallId"), voice.run
    call = voice.calls.get(call_id)
    # A call of an earlier step is another one, also where this step began in another message than that call's.
    if call is not None and call.step == voice.step and call.segment.reducer.would_update(chunk):
        call.segment.show(chunk)
        uphold(run, call_id, call)
        return call.segment
    call = voice.calls[call_id] = Call(stage.speak(voice, chunk), voice.author, voice.step)
    if run.add_call(call_id, call):
        for waiting in run.waiting.pop(call_id, ()):
            carry_out(stage, run, waiting)
    return call.segment


def _update_call(_: Stage, voice: Voice, chunk: Part) -> Segment | None:
    call_id = string(chunk, "toolCallId")
    call = voice.calls.get(call_id)
    if call is None:
        return None
    call.segment.show(chunk)
    uphold(voice.run, call_id, call)
    return call.segment


def _extend_input(stage: Stage, voice: Voice, chunk: Part) -> Segment | None:
    call, delta = voice.calls.get(string(chunk, "toolCallId")), string(chunk, "inputTextDelta")
    if call is None:
        return None
    if call.step != voice.step and not call.segment.reducer.would_update(chunk):
        # A later step shows all of the input so far once more, and so does each one after it.
        if voice.repeated + call.length > _MOST_REPEATED:
            return None
        voice.repeated += call.length
    call.length += len(delta)
    return _update_call(stage, voice, chunk)


def _begin_step(stage: Stage, voice: Voice, chunk: Part) -> Holder:
    voice.step += 1
    return _describe(stage, voice, chunk)


def _describe(_: Stage, voice: Voice, chunk: Part) -> Holder:
    if voice.segment is None:
        voice.pending.append(chunk)
        return voice.anchor
    voice.segment.describe(chunk)
    return voice.segment


def _fail(stage: Stage, voice: Voice, chunk: Part) -> Segment:
    return stage.fail(voice, string(chunk, "errorText"))


def _block_key(chunk: Part) -> BlockKey:
    return _BLOCKS[string(chunk, "type")], string(chunk, "id")


_BLOCKS: Final[Mapping[str, str]] = {
    f"{kind}-{step}": kind for kind in ("text", "reasoning") for step in ("start", "delta", "end")
}

_ChunkTaker: TypeAlias = "Callable[[Stage, Voice, Part], Holder | None]"
_CHUNKS: Final[Mapping[str, _ChunkTaker]] = {
    "start": _describe,
    "message-metadata": _describe,
    "finish": _describe,
    "error": _fail,
    "start-step": _begin_step,
    "finish-step": _end_step,
    "text-start": _begin_block,
    "text-delta": _extend_block,
    "text-end": _end_block,
    "reasoning-start": _begin_block,
    "reasoning-delta": _extend_block,
    "reasoning-end": _end_block,
    "file": _add_file,
    "source-url": _add_part,
    "source-document": _add_part,
    "tool-input-start": _give_input,
    "tool-input-available": _give_input,
    "tool-input-error": _give_input,
    "tool-input-delta": _extend_input,
    "tool-approval-request": _update_call,
    "tool-output-available": _update_call,
    "tool-output-error": _update_call,
    "tool-output-denied": _update_call,
}
