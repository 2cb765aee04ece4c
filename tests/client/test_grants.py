"""The caller's grants, as changes, without a socket."""

from __future__ import annotations

import pytest

from bubble.client.grants import GrantsChannel, GrantsReader
from bubble.protocol.errors import Conflict, Unauthenticated, Unavailable
from bubble.protocol.frames import GrantsChanged, GrantsSnapshot, GrantsSubscribe, GrantsUnsubscribe
from bubble.protocol.resources import Grant

pytestmark = pytest.mark.anyio


def grant(thread_id: str, role: str = "participant", *, since: int = 1) -> Grant:
    return Grant(
        thread_id=thread_id,
        principal_id="bot",
        role=role,
        granted_by="alice",
        created_at=f"2026-05-06T12:34:56.{since:03}Z",
    )


def line() -> tuple[GrantsChannel, GrantsReader]:
    channel, reader = GrantsChannel(touched=lambda _: None), GrantsReader()
    channel.attach(reader)
    assert channel.due() == GrantsSubscribe()
    return channel, reader


def told(reader: GrantsReader) -> list[tuple[str, str, str]]:
    changes = []
    while (change := reader.take()) is not None:
        changes.append((change.change, change.grant.thread_id, change.grant.role))
    return changes


async def test_the_snapshot_is_told_as_one_grant_after_the_other() -> None:
    channel, reader = line()
    channel.snapshot(GrantsSnapshot(grants=[grant("a"), grant("b", "owner")]))
    assert told(reader) == [("granted", "a", "participant"), ("granted", "b", "owner")]
    assert set(reader.grants) == {"a", "b"}


async def test_changes_are_told_as_they_come() -> None:
    channel, reader = line()
    channel.snapshot(GrantsSnapshot(grants=[grant("a")]))
    channel.changed(GrantsChanged(change="granted", grant=grant("b")))
    assert told(reader) == [("granted", "a", "participant"), ("granted", "b", "participant")]
    channel.changed(GrantsChanged(change="updated", grant=grant("a", "owner")))
    channel.changed(GrantsChanged(change="revoked", grant=grant("b")))
    assert told(reader) == [("updated", "a", "owner"), ("revoked", "b", "participant")]
    assert set(reader.grants) == {"a"}


async def test_after_a_reconnect_exactly_what_was_missed_is_told() -> None:
    channel, reader = line()
    channel.snapshot(GrantsSnapshot(grants=[grant("a"), grant("b"), grant("c")]))
    told(reader)
    channel.disconnected()
    assert channel.due() == GrantsSubscribe()
    channel.snapshot(GrantsSnapshot(grants=[grant("a"), grant("c", "owner"), grant("d")]))
    assert sorted(told(reader)) == [
        ("granted", "d", "participant"),
        ("revoked", "b", "participant"),
        ("updated", "c", "owner"),
    ]


async def test_a_grant_that_was_taken_and_given_again_meanwhile_is_told_as_both() -> None:
    channel, reader = line()
    channel.snapshot(GrantsSnapshot(grants=[grant("a", since=1)]))
    told(reader)
    channel.disconnected()
    assert channel.due() == GrantsSubscribe()
    channel.snapshot(GrantsSnapshot(grants=[grant("a", since=2)]))
    assert told(reader) == [("revoked", "a", "participant"), ("granted", "a", "participant")]


async def test_a_reader_that_does_not_read_costs_one_note_per_thread() -> None:
    channel, reader = line()
    channel.snapshot(GrantsSnapshot(grants=[]))
    for round_ in range(1_000):
        role = "owner" if round_ % 2 else "participant"
        channel.changed(GrantsChanged(change="granted" if round_ == 0 else "updated", grant=grant("a", role)))
    assert len(reader._differing) == 1
    assert told(reader) == [("granted", "a", "owner")]


async def test_a_second_reader_gets_the_state_at_once_and_the_last_one_leaving_unsubscribes() -> None:
    channel, first = line()
    channel.snapshot(GrantsSnapshot(grants=[grant("a")]))
    second = GrantsReader()
    channel.attach(second)
    assert told(second) == [("granted", "a", "participant")]
    assert channel.due() is None
    channel.detach(first)
    assert channel.due() is None
    channel.detach(second)
    assert channel.due() == GrantsUnsubscribe()
    assert channel.is_idle


async def test_a_change_of_an_old_feed_is_ignored_until_the_snapshot() -> None:
    channel, reader = line()
    channel.changed(GrantsChanged(change="granted", grant=grant("old")))
    assert told(reader) == []


async def test_only_a_passing_refusal_while_opening_is_worth_another_socket() -> None:
    channel, _ = line()
    assert channel.refused(Unavailable("later"))
    assert not channel.refused(Conflict("already"))
    channel.snapshot(GrantsSnapshot(grants=[]))
    assert not channel.refused(Unavailable("later"))


async def test_its_end_is_raised_after_what_was_still_to_tell() -> None:
    channel, reader = line()
    channel.snapshot(GrantsSnapshot(grants=[grant("a")]))
    channel.fail(Unauthenticated("no longer"))
    assert reader.take() is not None
    with pytest.raises(Unauthenticated, match="no longer"):
        reader.take()
