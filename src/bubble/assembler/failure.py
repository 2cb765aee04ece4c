"""What the reducer raises."""

from __future__ import annotations

from bubble.protocol.errors import InvalidRequest

__all__ = ["ReducerError"]


class ReducerError(InvalidRequest):
    """A chunk that cannot be applied to the message as it stands. The message is as it was before.

    `chunk_type` is the type of the chunk, or `tool-invocation` where the tool call that an outcome is for is not there; `chunk_id` is the
    id of the block or the call that was looked for, or None where the failure is not about one. Texts are those of the AI SDK's reducer.
    """

    def __init__(self, message: str, *, chunk_type: str, chunk_id: str | None = None) -> None:
        super().__init__(message)
        self.chunk_type = chunk_type
        self.chunk_id = chunk_id
