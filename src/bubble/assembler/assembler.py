"""The configured entry point (spec 4): part handlers in, assemblers for any number of threads out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bubble.assembler.encoding import EventPart, encode_message
from bubble.assembler.handlers import Handlers, PartHandler
from bubble.assembler.messages import Grouping, RoleOf, default_role
from bubble.assembler.retained import GivenEvent
from bubble.assembler.thread import ThreadAssembler, ThreadSnapshot

__all__ = ["Assembler", "create_assembler"]


class Assembler:
    """Immutable. What it opens is independent of it and of each other."""

    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers

    def open(self, *, grouping: Grouping = "speaker", role_of: RoleOf = default_role) -> ThreadAssembler:
        """A new assembler for one thread; `close()` it in the end.

        `grouping` says when a message ends: `speaker` with its author's turn, `run` with its run. `role_of` chooses the role of each
        message; it must give the same answer for the same speaker. `ValueError` for another grouping.
        """
        return ThreadAssembler(handlers=self._handlers, grouping=grouping, role_of=role_of)

    async def reopen(self, thread: ThreadAssembler) -> ThreadAssembler:
        """A new assembler for the same thread: with the events, the grouping and the cleared seq of `thread`, and the handlers of this one.

        For who has an assembler of a later revision, and keeps what was shown: messages that are equal are the same objects. `thread`
        stays open, as it was. Raises whatever a part handler raises.
        """
        return await thread.read_by(self._handlers)

    async def assemble(
        self, events: Iterable[GivenEvent], *, grouping: Grouping = "speaker", role_of: RoleOf = default_role
    ) -> ThreadSnapshot:
        """The snapshot of a thread that consists of these events, in ascending order. Raises as `ThreadAssembler.apply` does."""
        thread = self.open(grouping=grouping, role_of=role_of)
        try:
            await thread.apply(events)
            return await thread.snapshot()
        finally:
            await thread.close()

    async def encode(self, message: Mapping[str, object]) -> list[EventPart]:
        """The event parts that assemble to the parts of `message`; `InvalidRequest` naming the part that cannot be said."""
        return await encode_message(message, self._handlers)


def create_assembler(*, part_handlers: Iterable[PartHandler] = ()) -> Assembler:
    """An assembler that knows the core's events and native kinds and those of `part_handlers`.

    `ValueError` where two handlers have the same kind, or one has a kind of the core.
    """
    return Assembler(Handlers(part_handlers))
