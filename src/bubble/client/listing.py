"""Lists that come in pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Generic, Protocol, TypeVar

__all__ = ["Listing"]


class _HasNext(Protocol):
    @property
    def next_after(self) -> str | None: ...


Page = TypeVar("Page", bound=_HasNext)
Item = TypeVar("Item")


class Listing(Generic[Page, Item]):
    """A list on the server: `async for` gives every item, fetching page after page; `await listing.page(after=...)` gives one page."""

    def __init__(self, fetch: Callable[[str | None], Awaitable[Page]], items: Callable[[Page], Sequence[Item]]) -> None:
        self._fetch = fetch
        self._items = items

    async def page(self, *, after: str | None = None) -> Page:
        """The page that begins after the cursor `after`, a previous page's `next_after`; None for the first one."""
        return await self._fetch(after)

    async def __aiter__(self) -> AsyncIterator[Item]:
        after: str | None = None
        while True:
            page = await self._fetch(after)
            for item in self._items(page):
                yield item
            after = page.next_after
            if after is None:
                return
