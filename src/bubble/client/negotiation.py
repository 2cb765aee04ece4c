"""Which extensions this client and its server have in common, and the assemblers that follow from it (spec 4, "Negotiated providers").

Before the first negotiation has settled nothing is known to be common, so an assembler has the core's handlers only: a part of any other
kind is shown whole, as `data-bubble-extension`. A negotiation that fails settles nothing, and what was settled before stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack

from bubble.assembler import Assembler, create_assembler
from bubble.client.answers import ProtocolInfo
from bubble.extensions import Extension, installed_extensions

__all__ = ["AssemblerProvider", "Extensions"]


class AssemblerProvider:
    """`BubbleConnection.assembler`: makes assemblers with the part handlers that both sides have."""

    def __init__(self) -> None:
        self._settled: tuple[Extension, ...] | None = None
        self._revision = 0
        self._listeners: dict[object, Callable[[], None]] = {}

    @property
    def ready(self) -> bool:
        """Whether a negotiation has settled."""
        return self._settled is not None

    @property
    def revision(self) -> int:
        """Rises by one whenever a later negotiation settles on another set than the one before; 0 at first."""
        return self._revision

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Calls `listener` whenever `revision` has risen, so that it makes itself a fresh assembler. Gives what ends that."""
        key = object()
        self._listeners[key] = listener

        def unsubscribe() -> None:
            self._listeners.pop(key, None)

        return unsubscribe

    def create(self) -> Assembler:
        """A new assembler with what is settled now; the core's handlers only while nothing is. `ValueError` where handlers collide."""
        return create_assembler(
            part_handlers=[handler for extension in self._settled or () for handler in extension.part_handlers]
        )

    def settle(self, extensions: Sequence[Extension]) -> None:
        """What both sides have. An exception of a listener is raised here, after all of them were called."""
        before, self._settled = self._settled, tuple(extensions)
        if before is None or _named(before) == _named(extensions):
            return
        self._revision += 1
        with ExitStack() as calls:  # calls every one, also where one fails, the last that was pushed first
            for listener in reversed(self._listeners.values()):
                calls.callback(listener)


class Extensions:
    """`BubbleConnection.extensions`."""

    def __init__(self, ask: Callable[[], Awaitable[ProtocolInfo]], provider: AssemblerProvider) -> None:
        self._ask = ask
        self._provider = provider
        self._negotiating = asyncio.Lock()

    async def negotiate(self) -> Sequence[Extension]:
        """Asks the server for its extensions and settles on those that are installed here too, in the same version.

        Ask again after the server was replaced. Raises what asking raises.
        """
        async with self._negotiating:  # the answer to the later question counts
            theirs = {(each.name, each.version) for each in (await self._ask()).extensions}
            common = [each for each in installed_extensions() if (each.name, each.version) in theirs]
            self._provider.settle(common)
            return common


def _named(extensions: Sequence[Extension]) -> frozenset[tuple[str, int]]:
    return frozenset((each.name, each.version) for each in extensions)
