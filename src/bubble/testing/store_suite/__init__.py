"""The promises of a `BubbleStore` as tests. A backend that passes them can stand under the server.

    class TestMyStore(StoreSuite):
        async def create_store(self, *, clock, run_integrity):
            return await MyStore.open(clock=clock, run_integrity=run_integrity)

That is all; pytest and anyio's plugin collect and run them. `StoreSuite` is every area together, and each area is a class of its own,
for a backend that is being written.
"""

from __future__ import annotations

import pytest

# Before they are imported, so that a failed assertion shows its values here as it does in a test file.
for _area in (
    "base",
    "events",
    "grants",
    "idempotency",
    "importing",
    "lifecycle",
    "people",
    "runs",
    "subscriptions",
    "threads",
):
    pytest.register_assert_rewrite(f"{__name__}.{_area}")

from bubble.testing.store_suite.base import ManualClock, Notices, StoreCase  # noqa: E402
from bubble.testing.store_suite.events import EventPromises, PagePromises  # noqa: E402
from bubble.testing.store_suite.grants import GrantPromises, OpenThreadPromises  # noqa: E402
from bubble.testing.store_suite.idempotency import IdempotencyPromises  # noqa: E402
from bubble.testing.store_suite.importing import ImportPromises  # noqa: E402
from bubble.testing.store_suite.lifecycle import AuthorshipPromises, LifecyclePromises  # noqa: E402
from bubble.testing.store_suite.people import CredentialPromises, PrincipalPromises  # noqa: E402
from bubble.testing.store_suite.runs import CursorPromises, LostRunPromises, RunPromises  # noqa: E402
from bubble.testing.store_suite.subscriptions import NoticePromises, SubscriptionPromises  # noqa: E402
from bubble.testing.store_suite.threads import DeletionPromises, ThreadListPromises, ThreadPromises  # noqa: E402

__all__ = [
    "AuthorshipPromises",
    "CredentialPromises",
    "CursorPromises",
    "DeletionPromises",
    "EventPromises",
    "GrantPromises",
    "IdempotencyPromises",
    "ImportPromises",
    "LifecyclePromises",
    "LostRunPromises",
    "ManualClock",
    "NoticePromises",
    "Notices",
    "OpenThreadPromises",
    "PagePromises",
    "PrincipalPromises",
    "RunPromises",
    "StoreCase",
    "StoreSuite",
    "SubscriptionPromises",
    "ThreadListPromises",
    "ThreadPromises",
]


class StoreSuite(
    EventPromises,
    PagePromises,
    LifecyclePromises,
    AuthorshipPromises,
    IdempotencyPromises,
    ThreadPromises,
    ThreadListPromises,
    DeletionPromises,
    GrantPromises,
    OpenThreadPromises,
    RunPromises,
    LostRunPromises,
    CursorPromises,
    PrincipalPromises,
    CredentialPromises,
    SubscriptionPromises,
    NoticePromises,
    ImportPromises,
):
    """Every promise of the contract."""
