"""The public store suite itself: it works in somebody else's project, and it finds a store that breaks a promise."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

A_STORE = """
from bubble.store.memory import MemoryStore
from bubble.testing.store_suite import *

{fault}

class TestTheirStore({areas}):
    async def create_store(self, *, clock, run_integrity):
        return Faulty(clock=clock, run_integrity=run_integrity)
"""

HEALTHY = "class Faulty(MemoryStore): ..."

FAULTS = {
    "an event is lost on the way back": (
        "PagePromises",
        """
class Faulty(MemoryStore):
    async def read(self, thread_id, **query):
        return (await super().read(thread_id, **query))[:-1]
""",
    ),
    "time runs backwards": (
        "EventPromises",
        """
class Faulty(MemoryStore):
    def submit(self, command):
        thread = self._state.threads.get(command.thread_id)
        if thread is not None:
            thread.last_ms = 0
        super().submit(command)
""",
    ),
    "a batch is stored in part": (
        "EventPromises",
        """
import msgspec
class Faulty(MemoryStore):
    def submit(self, command):
        for event in command.events:
            super().submit(msgspec.structs.replace(command, events=[event]))
""",
    ),
    "a key is forgotten": (
        "IdempotencyPromises",
        """
import msgspec
class Faulty(MemoryStore):
    def submit(self, command):
        super().submit(msgspec.structs.replace(command, idempotency=None))
""",
    ),
    "a guard is not asked": (
        "AuthorshipPromises",
        """
import msgspec
class Faulty(MemoryStore):
    def submit(self, command):
        super().submit(msgspec.structs.replace(command, guard=None))
""",
    ),
    "the outcome is told from within submit": (
        "NoticePromises",
        """
class Faulty(MemoryStore):
    def submit(self, command):
        super().submit(command)
        self._outbox._flush()
        for listener in list(self._outbox._listeners.values()):
            listener([])
""",
    ),
    "a deleted id is given again": (
        "DeletionPromises",
        """
class Faulty(MemoryStore):
    async def delete_thread(self, thread_id, *, guard=None):
        await super().delete_thread(thread_id, guard=guard)
        self._state.retired.clear()
""",
    ),
    "the last owner leaves": (
        "GrantPromises",
        """
class Faulty(MemoryStore):
    async def remove_grant(self, thread_id, principal_id, *, by, guard=None):
        thread = self._state.threads.get(thread_id)
        if thread is not None and principal_id in thread.grants:
            del thread.grants[principal_id]
""",
    ),
    "a ticket is good twice": (
        "CredentialPromises",
        """
class Faulty(MemoryStore):
    async def consume_credential(self, kind, secret_hash):
        return await self.find_credential(kind, secret_hash)
""",
    ),
    "a lost run is finished under its principal's eyes": (
        "LostRunPromises",
        """
class Faulty(MemoryStore):
    async def renew_presence(self, node, principal_ids, *, valid_ms): ...
""",
    ),
    "a subscription skips the backlog": (
        "SubscriptionPromises",
        """
class Faulty(MemoryStore):
    async def subscribe(self, thread_id, on_event, *, from_seq=1, filter=None):
        head = (await self.position(thread_id)).head
        return await super().subscribe(thread_id, on_event, from_seq=head + 1, filter=filter)
""",
    ),
}


def run(pytester: pytest.Pytester, areas: str, fault: str) -> pytest.RunResult:
    # Waiting for what a faulty store never does ends sooner here than it would for a person.
    quick = "from bubble.testing.store_suite import base\nbase.PATIENCE_SECONDS = 0.2\n"
    pytester.makepyfile(quick + A_STORE.format(areas=areas, fault=fault))
    return pytester.runpytest_inprocess("-q", "-W", "error", "--strict-markers", "-p", "no:cacheprovider")


def test_a_backend_of_another_project_is_tested_by_one_class(pytester: pytest.Pytester) -> None:
    outcomes = run(pytester, "AuthorshipPromises, CursorPromises", HEALTHY).parseoutcomes()
    assert set(outcomes) == {"passed"}
    assert outcomes["passed"] > 20


@pytest.mark.parametrize("fault", FAULTS)
def test_a_store_that_breaks_a_promise_fails(pytester: pytest.Pytester, fault: str) -> None:
    outcomes = run(pytester, *FAULTS[fault]).parseoutcomes()
    assert outcomes.get("failed", 0) > 0
    assert outcomes.get("errors", 0) == 0
