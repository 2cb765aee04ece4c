"""What a run says, in the words of the AI SDK: text, reasoning, tool calls, files, sources, data, and Bubble's own parts beside them.

One block of text or reasoning is open at a time. Whatever shows in the message after it ends it; what changes something that is there
already (the outcome of a tool, data by its id, metadata) leaves it open.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Literal, TypeAlias

from msgspec import UNSET, Raw, UnsetType

from bubble.client.files import FileSource, file_chunk
from bubble.client.sizes import Sizes, pieces
from bubble.client.tool_calls import CallServices, InputEncoding, ToolCall, ToolInput, is_streamed
from bubble.protocol.errors import InvalidRequest
from bubble.protocol.events import PartVersion
from bubble.protocol.identifiers import check_tool_call_id, new_id
from bubble.protocol.parts import EMPTY

__all__ = ["ArtifactOp", "Speech"]

ArtifactOp: TypeAlias = Literal["create", "append", "replace", "delete"]
BlockKind: TypeAlias = Literal["text", "reasoning"]
ProviderMetadata: TypeAlias = Mapping[str, Mapping[str, object]]

_DATA = "data-"


class Speech(ABC):
    """The methods that say something. They wait only while much is on the way.

    All of them raise `Conflict` after the end of the run, `InvalidRequest` for what is no JSON, `PayloadTooLarge` for what does not fit
    into an event, and whatever appending raised meanwhile. A chunk that is refused at once is not said, and the run can go on.
    """

    def __init__(self, *, sizes: Sizes) -> None:
        self._sizes = sizes
        self._block: tuple[BlockKind, str] | None = None
        self._blocks: Counter[BlockKind] = Counter()
        self._shown: set[tuple[str, str]] = set()
        self._said_error = False

    @abstractmethod
    async def _say(self, chunk: Mapping[str, object] | Raw, *, version: PartVersion = "ai-sdk-v6") -> None:
        """Puts one chunk on its way."""

    @abstractmethod
    def _call_services(self) -> CallServices:
        """What a tool call needs."""

    # --- text -------------------------------------------------------------------------------------------------------------------

    async def text(self, delta: str, *, provider_metadata: ProviderMetadata | None = None) -> None:
        """Says a piece of text. Pieces in a row are one text part of the message."""
        await self._continue("text", delta, provider_metadata)

    async def reasoning(self, delta: str, *, provider_metadata: ProviderMetadata | None = None) -> None:
        """Says a piece of what the model thinks before it answers. Pieces in a row are one reasoning part."""
        await self._continue("reasoning", delta, provider_metadata)

    async def end_block(self) -> None:
        """Ends the open text or reasoning, so that what comes next is a part of its own."""
        if self._block is not None:
            (kind, ended), self._block = self._block, None
            await self._say({"type": f"{kind}-end", "id": ended})

    async def _continue(self, kind: BlockKind, delta: str, provider_metadata: ProviderMetadata | None) -> None:
        if not isinstance(delta, str):
            raise InvalidRequest("`delta` must be a string.")
        if self._block is None or self._block[0] != kind:
            await self.end_block()
            self._blocks[kind] += 1
            self._block = (kind, f"{kind}-{self._blocks[kind]}")
            await self._say({"type": f"{kind}-start", "id": self._block[1]})
        more = _given(providerMetadata=provider_metadata)
        for piece in pieces(delta):
            await self._say({"type": f"{kind}-delta", "id": self._block[1], "delta": piece, **more})

    # --- tools ------------------------------------------------------------------------------------------------------------------

    async def tool_call(
        self,
        name: str,
        input: ToolInput | UnsetType = UNSET,  # noqa: A002 - a word of the spec
        *,
        tool_call_id: str | None = None,
        title: str | None = None,
        dynamic: bool = False,
        provider_executed: bool = False,
        provider_metadata: ProviderMetadata | None = None,
        input_encoding: InputEncoding = "json",
    ) -> ToolCall:
        """Calls a tool. `input` is the whole input, or an iterator (async or plain) of the pieces of its JSON text, which are shown as
        they come; without it the caller says the pieces (`ToolCall.input_delta`, `input_available`).

        `tool_call_id` is the model's own id where it has one. `dynamic` is for tools that are not known beforehand, `provider_executed`
        for those that the model's provider runs, `input_encoding` "text" for an input that is no JSON.
        """
        call = ToolCall(
            self._call_services(),
            tool_call_id=new_id() if tool_call_id is None else check_tool_call_id(tool_call_id, path="tool_call_id"),
            name=name,
            common=_given(
                title=title,
                dynamic=dynamic or None,
                providerExecuted=provider_executed or None,
                providerMetadata=provider_metadata,
            ),
            input_encoding=input_encoding,
        )
        await self.end_block()
        if input is UNSET:
            await call.begin_input()
        elif is_streamed(input):
            await call.begin_input()
            await call.stream_input(input)
        else:
            await call.input_available(input)
        return call

    # --- files, sources, data ---------------------------------------------------------------------------------------------------

    async def file(self, source: FileSource, *, media_type: str | None = None, filename: str | None = None) -> None:
        """Shows a file: by its URL (a string), or whole within the event, from bytes or a `pathlib.Path` that is read here.

        `media_type` and `filename` are told from the path or the URL where they can be. An event holds a file of up to about 760 KB by
        default; for a larger one, `PayloadTooLarge`. Raises `OSError` where a path cannot be read.
        """
        await self._show(await file_chunk(source, media_type=media_type, filename=filename, sizes=self._sizes))

    async def source(self, url: str, *, title: str | None = None, source_id: str | None = None) -> None:
        """Names a page that the answer rests on (`source-url`)."""
        await self._show(
            {"type": "source-url", "sourceId": source_id or new_id(), "url": url, **_given(title=title)},
        )

    async def source_document(
        self, title: str, *, media_type: str, filename: str | None = None, source_id: str | None = None
    ) -> None:
        """Names a document that the answer rests on."""
        members = {"sourceId": source_id or new_id(), "mediaType": media_type, "title": title}
        await self._show({"type": "source-document", **members, **_given(filename=filename)})

    async def data(self, name: str, data: object, *, id: str | None = None, transient: bool = False) -> None:
        """Says data of the application's own kind, the part `data-<name>`. Said again with the same `id`, it replaces what was there.

        Transient data is for those who listen now; it does not become part of the message.
        """
        if not name or name.startswith(_DATA):
            raise InvalidRequest('`name` goes without "data-", which is put before it.')
        chunk = {"type": _DATA + name, "data": data, **_given(id=id, transient=transient or None)}
        if transient:
            await self._say(chunk)
        else:
            await self._show(chunk, key=None if id is None else (_DATA + name, id))

    async def artifact(
        self,
        artifact_id: str,
        *,
        op: ArtifactOp = "create",
        name: str | None = None,
        media_type: str | None = None,
        text: str | None = None,
        data: object | UnsetType = UNSET,
        url: str | None = None,
    ) -> None:
        """Makes something that lasts beside the conversation, or changes it: the bundled extension `artifacts`, one part per `artifact_id`.

        Its content is one of `text`, `data` and `url`. `append` adds text, `replace` puts other content in its place, `delete` takes none.
        """
        content = _given(text=text, url=url) | ({} if data is UNSET else {"data": data})
        if len(content) > 1 or (content and op == "delete") or (op == "append" and text is None):
            raise InvalidRequest(
                "An artifact has one of `text`, `data` and `url`; `append` takes text, `delete` nothing."
            )
        about = {"kind": "artifact", "artifactId": artifact_id, "op": op, **_given(name=name, mediaType=media_type)}
        await self._show({**about, **content}, key=("artifact", artifact_id), version="bubble-v1")

    async def event(self, name: str, data: object | UnsetType = UNSET, *, id: str | None = None) -> None:
        """Says something beside the message, by name: the native part `agent_event`. `empty` (nothing to say) has no data."""
        if not name or (name == EMPTY and data is not UNSET):
            raise InvalidRequest("`name` must be given, and the agent event `empty` has no data.")
        part = {"kind": "agent_event", "name": name, **_given(id=id)}
        key = None if id is None else ("agent_event", id)
        await self._show(part if data is UNSET else {**part, "data": data}, key=key, version="bubble-v1")

    # --- steps, metadata, errors, anything else ---------------------------------------------------------------------------------

    @asynccontextmanager
    async def step(self) -> AsyncIterator[None]:
        """One turn of the model with its tools, as a block of code. An exception leaves the step unfinished."""
        await self.start_step()
        yield
        await self.finish_step()

    async def start_step(self) -> None:
        """Begins a step."""
        await self._show({"type": "start-step"})

    async def finish_step(self) -> None:
        """Ends a step."""
        await self._show({"type": "finish-step"})

    async def metadata(self, metadata: Mapping[str, object]) -> None:
        """Adds to the message's metadata (`message-metadata`): objects are merged, other values replaced. `bubble` is the log's own."""
        await self._say({"type": "message-metadata", "messageMetadata": dict(metadata)})

    async def error(self, text: str) -> None:
        """Says that something went wrong. The run then ends as `failed`, unless `finish` is told another outcome."""
        await self._show({"type": "error", "errorText": text})
        self._said_error = True

    async def part(self, chunk: Mapping[str, object] | Raw, *, version: PartVersion = "ai-sdk-v6") -> None:
        """Says one chunk of the vocabulary `version`, whatever it is; a `Raw` goes out with the bytes it has."""
        await self.end_block()
        await self._say(chunk, version=version)

    async def _show(
        self, chunk: Mapping[str, object], *, key: tuple[str, str] | None = None, version: PartVersion = "ai-sdk-v6"
    ) -> None:
        if key is None or key not in self._shown:
            await self.end_block()
        await self._say(chunk, version=version)
        if key is not None:
            self._shown.add(key)


def _given(**members: object | None) -> dict[str, object]:
    return {name: value for name, value in members.items() if value is not None}
