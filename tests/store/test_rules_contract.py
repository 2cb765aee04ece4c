"""The small pure rules that every backend uses: chains of credentials, cursors, what `check` sees."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubble.protocol.errors import InvalidRequest
from bubble.protocol.events import encoded, sequence
from bubble.protocol.timestamps import format_ms
from bubble.store.admission import RunState
from bubble.store.checking import check_thread
from bubble.store.credentials import is_forgettable, state_of
from bubble.store.cursors import decode_cursor, encode_cursor, page_size
from bubble.store.records import Credential, CredentialState
from bubble.testing.store_suite.base import FIRST_MS, Event, a_finish, a_part, a_start

ONE = Credential(credential_id="one", kind="token", secret_hash=b"", principal_id="ann", created_ms=0)
EXPIRED = replace(ONE, expires_ms=FIRST_MS)
REVOKED = replace(ONE, revoked_ms=5)
SPENT = replace(ONE, kind="login", spent_ms=5)


@pytest.mark.parametrize(
    ("chain", "state"),
    [
        ([(ONE, False)], "valid"),
        ([(ONE, True)], "disabled"),
        ([(EXPIRED, False)], "expired"),
        ([(REVOKED, False)], "revoked"),
        ([(SPENT, False)], "spent"),
        ([(ONE, False), (EXPIRED, False)], "expired"),
        ([(ONE, False), (REVOKED, False)], "revoked"),
        ([(ONE, False), (ONE, True)], "disabled"),
        ([(ONE, False), (SPENT, False)], "valid"),
        ([(ONE, False), (replace(SPENT, expires_ms=1), False)], "valid"),
        ([(ONE, False), (replace(SPENT, revoked_ms=1), False)], "revoked"),
        ([(ONE, False), (SPENT, False), (REVOKED, False)], "revoked"),
        ([(EXPIRED, False), (REVOKED, True)], "expired"),
    ],
)
def test_a_credential_is_as_good_as_what_it_was_made_from(
    chain: list[tuple[Credential, bool]], state: CredentialState
) -> None:
    assert state_of(chain, now_ms=FIRST_MS) == state


def test_only_one_use_credentials_that_are_done_with_are_forgotten() -> None:
    ticket = replace(ONE, kind="ticket")
    forgotten = [SPENT, replace(ticket, expires_ms=1), replace(ticket, revoked_ms=1)]
    assert all(is_forgettable(one, now_ms=FIRST_MS) for one in forgotten)
    assert not any(is_forgettable(one, now_ms=FIRST_MS) for one in (ONE, EXPIRED, REVOKED, ticket))


@given(key=st.tuples(st.integers(-(2**53), 2**53), st.text(max_size=20)))
def test_a_cursor_is_the_sort_key_that_it_was_made_of_and_fits_into_a_url(key: tuple[int, str]) -> None:
    cursor = encode_cursor(*key)
    assert decode_cursor(cursor, tuple[int, str]) == key
    assert cursor.replace("-", "").replace("_", "").isalnum()


@pytest.mark.requirement("PR-3-04")
@pytest.mark.parametrize(
    "after",
    ["", "!", "é", "\x00", "a", "bm90IGpzb24", encode_cursor(7), encode_cursor("x", 7), encode_cursor(7, "x", 7)]
    + [encode_cursor(number, "x") for number in (2**63, -(2**63), 10**40)],
)
def test_what_is_no_cursor_of_the_list_is_refused(after: str) -> None:
    with pytest.raises(InvalidRequest, match="after"):
        decode_cursor(after, tuple[int, str])


@pytest.mark.requirement("PR-2-10", "PR-2-11")
def test_a_limit_is_clamped_above_and_refused_below() -> None:
    assert [page_size(limit) for limit in (1, 1_000, 1_001, 10**9)] == [1, 1_000, 1_000, 1_000]
    for limit in (0, -1):
        with pytest.raises(InvalidRequest, match="limit"):
            page_size(limit)


def stored(*events: Event) -> list[bytes]:
    return [
        sequence(encoded(event).text, seq=seq, created_at=format_ms(FIRST_MS + seq))
        for seq, event in enumerate(events, start=1)
    ]


LOG = stored(a_start(), a_part(), a_finish())
RUNS = {"run-1": RunState("ann", "finished")}


def test_a_healthy_thread_has_nothing_wrong() -> None:
    assert list(check_thread(LOG, head=3, last_ms=FIRST_MS + 3, runs=RUNS)) == []
    assert list(check_thread([], head=0, last_ms=0, runs={})) == []


@pytest.mark.parametrize(
    ("texts", "head", "last_ms", "runs", "wrong"),
    [
        (LOG[:2] + LOG[:1], 3, FIRST_MS + 1, RUNS, "seq 1 follows seq 2"),
        (LOG[::2], 3, FIRST_MS + 3, RUNS, "seq 3 follows seq 1"),
        (LOG[1:], 3, FIRST_MS + 3, {}, "seq 2 follows seq 0"),
        (LOG, 4, FIRST_MS + 3, RUNS, "the head is 4"),
        (LOG, 3, FIRST_MS, RUNS, "time"),
        (LOG, 3, FIRST_MS + 3, {}, 'run "run-1"'),
        (LOG, 3, FIRST_MS + 3, {"run-1": RunState("ann", "open")}, 'run "run-1"'),
        (LOG, 3, FIRST_MS + 3, {"run-1": RunState("bob", "finished")}, 'run "run-1"'),
        (LOG, 3, FIRST_MS + 3, RUNS | {"run-2": RunState("ann", "open")}, 'run "run-2"'),
        ([LOG[0], b"garbage", LOG[2]], 3, FIRST_MS + 3, RUNS, "cannot be read"),
        ([LOG[0], LOG[1].replace(b"2026", b"2025"), LOG[2]], 3, FIRST_MS + 3, RUNS, "backwards at seq 2"),
    ],
)
def test_each_kind_of_damage_is_told(
    texts: list[bytes], head: int, last_ms: int, runs: dict[str, RunState], wrong: str
) -> None:
    problems = list(check_thread(texts, head=head, last_ms=last_ms, runs=runs))
    assert any(wrong in problem for problem in problems)
