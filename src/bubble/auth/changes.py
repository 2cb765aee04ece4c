"""Whether what was learnt of a credential may have changed since."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bubble.store.base import BubbleStore
from bubble.store.notices import CredentialsChanged, Notice

__all__ = ["Changes"]


class Changes:
    """Counts what the store tells of tokens, sessions and principals.

    Who keeps an answer keeps `count` as it was *before* asking beside it: the answer is good as long as the two agree. So an answer that a
    revocation overtook on its way is never taken for a fresh one.
    """

    def __init__(self) -> None:
        self.count = 0
        self._unlisten: Callable[[], None] | None = None

    @property
    def is_listening(self) -> bool:
        """Whether changes are heard of; without that nothing may be kept."""
        return self._unlisten is not None

    def listen(self, store: BubbleStore) -> None:
        """Begins to count."""
        if self._unlisten is None:
            self.count += 1
            self._unlisten = store.listen(self._heard)

    def stop(self) -> None:
        """Ends it. Idempotent."""
        if self._unlisten is not None:
            self._unlisten()
            self._unlisten = None

    def note(self) -> None:
        """Counts a change that this process just made, without waiting until the store tells of it."""
        self.count += 1

    def _heard(self, notices: Sequence[Notice]) -> None:
        for notice in notices:
            if type(notice) is CredentialsChanged:
                self.note()
