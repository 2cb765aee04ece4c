"""The table of roles, row by row, and the guard that carries it into a transaction (protocol, section 5)."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from bubble.auth.identity import Identity
from bubble.auth.policy import BUILTIN_ROLES, CAPABILITIES, DEPLOYMENT_CAPABILITIES, IdentityGuard, Policy
from bubble.protocol.errors import BubbleError, Forbidden, NotFound, thread_not_found
from bubble.protocol.events import APPENDABLE_TYPES, SERVER_EMITTED_TYPES
from bubble.protocol.resources import DeploymentRole, Principal, PrincipalKind

APPENDS = {f"events.{kind}" for kind in APPENDABLE_TYPES}
READS = {"events.subscribe", "thread.read", "cursor.write", "grants.leave"}
TABLE = {
    None: set[str](),
    "observer": READS,
    "participant": READS | APPENDS,
    "owner": READS | APPENDS | {"thread.update", "thread.delete", "grants.manage", "runs.finish_any"},
}
EVERYTHING = TABLE["owner"] | {"threads.create", "threads.name", "principals.manage", "events.impersonate"}


def identity(
    *,
    kind: PrincipalKind = "user",
    role: DeploymentRole = "user",
    capabilities: Iterable[str] | None = None,
    threads: Iterable[str] | None = None,
) -> Identity:
    principal = Principal(
        principal_id="ann",
        kind=kind,
        display_name="Ann",
        created_at="2026-05-06T12:34:56.789Z",
        deployment_role=role,
    )
    return Identity(
        principal=principal,
        source="token",
        capabilities=None if capabilities is None else frozenset(capabilities),
        threads=None if threads is None else frozenset(threads),
    )


def guard(
    *,
    role: DeploymentRole = "user",
    capabilities: Iterable[str] | None = None,
    threads: Iterable[str] | None = None,
) -> IdentityGuard:
    return Policy().guard(identity(role=role, capabilities=capabilities, threads=threads))


def may(one: IdentityGuard, role: str | None, *, thread_id: str = "t", join_policy: str = "invite") -> set[str]:
    """The capabilities that `require` lets through."""
    allowed = set()
    for capability in (*EVERYTHING, "grants.join"):
        try:
            one.require(capability, thread_id=thread_id, role=role, join_policy=join_policy)
        except BubbleError:
            continue
        allowed.add(capability)
    return allowed


def refusal(
    one: IdentityGuard, capability: str, role: str | None, *, thread_id: str = "t", join_policy: str = "invite"
) -> type[BubbleError]:
    with pytest.raises(BubbleError) as caught:
        one.require(capability, thread_id=thread_id, role=role, join_policy=join_policy)
    return type(caught.value)


@pytest.mark.requirement("PR-5-01", "PR-5-03", "PR-5-04", "PR-5-05")
@pytest.mark.parametrize("role", TABLE)
def test_a_role_carries_exactly_its_row_of_the_table(role: str | None) -> None:
    assert may(guard(), role) == TABLE[role]
    assert {one for one in EVERYTHING if guard().has(one, thread_id="t", role=role)} == TABLE[role]


def test_the_published_tables_are_that_table() -> None:
    assert {name: set(row) for name, row in BUILTIN_ROLES.items()} == {
        name: row for name, row in TABLE.items() if name is not None
    }
    assert EVERYTHING == CAPABILITIES
    assert EVERYTHING - TABLE["owner"] == DEPLOYMENT_CAPABILITIES


@pytest.mark.parametrize("kind", sorted(SERVER_EMITTED_TYPES))
def test_what_the_server_emits_is_nobodys_to_append(kind: str) -> None:
    for one in (guard(), guard(role="admin")):
        assert refusal(one, f"events.{kind}", "owner") is Forbidden


@pytest.mark.requirement("PR-5-07")
@pytest.mark.parametrize("role", TABLE)
def test_an_admin_has_every_capability_everywhere(role: str | None) -> None:
    assert may(guard(role="admin"), role) == EVERYTHING


@pytest.mark.requirement("PR-5-06", "PR-5-07")
@pytest.mark.parametrize(
    ("kind", "role", "expected"),
    [
        ("user", "user", {"threads.create"}),
        ("bot", "user", set()),
        ("system", "user", set()),
        ("user", "admin", DEPLOYMENT_CAPABILITIES),
        ("bot", "admin", DEPLOYMENT_CAPABILITIES),
    ],
)
def test_what_a_principal_may_do_in_the_deployment(
    kind: PrincipalKind, role: DeploymentRole, expected: set[str]
) -> None:
    policy, one = Policy(), identity(kind=kind, role=role)
    assert policy.deployment_capabilities(one) == expected
    for capability in DEPLOYMENT_CAPABILITIES:
        if capability in expected:
            policy.require_deployment(one, capability)
        else:
            with pytest.raises(Forbidden, match=rf'"ann" lacks "{capability}"'):
                policy.require_deployment(one, capability)


@pytest.mark.requirement("PR-4-11", "PR-4-34")
def test_a_narrowed_identity_may_do_in_the_deployment_what_it_is_narrowed_to() -> None:
    policy = Policy()
    assert policy.deployment_capabilities(identity(role="admin", capabilities=["threads.name"])) == {"threads.name"}
    assert policy.deployment_capabilities(identity(capabilities=["principals.manage", "thread.read"])) == set()


@pytest.mark.requirement("PR-5-09", "PR-3-07")
@pytest.mark.parametrize("capability", sorted(EVERYTHING))
def test_without_any_capability_everything_is_not_found_in_the_words_of_an_unknown_thread(capability: str) -> None:
    for role in (None, "role-that-was-removed"):
        with pytest.raises(NotFound) as caught:
            guard().require(capability, thread_id="t", role=role, join_policy="invite")
        assert caught.value.message == thread_not_found("t").message


@pytest.mark.requirement("PR-5-10", "WS-34")
@pytest.mark.parametrize("capability", ["events.subscribe", "thread.read"])
def test_a_denial_of_reading_or_subscribing_is_not_found_whoever_asks(capability: str) -> None:
    for role in TABLE:
        for join_policy in ("invite", "open"):
            one = guard(capabilities=["cursor.write"])
            assert refusal(one, capability, role, join_policy=join_policy) is NotFound
    writer = Policy.with_custom_roles({"writer": ["events.message_part"]}).guard(identity())
    assert refusal(writer, capability, "writer") is NotFound


@pytest.mark.requirement("PR-5-11", "PR-3-06", "WS-45")
def test_any_other_missing_capability_is_forbidden_with_the_message_of_the_page() -> None:
    with pytest.raises(Forbidden) as caught:
        guard().require("events.message_part", thread_id="thread-1", role="observer", join_policy="invite")
    assert caught.value.message == 'Principal "ann" lacks "events.message_part" on thread "thread-1".'


@pytest.mark.requirement("PR-5-11", "PR-4-11")
@pytest.mark.parametrize(("deployment", "role"), [("user", "participant"), ("admin", None)])
def test_who_lacks_something_by_the_narrowing_of_the_token_alone_is_told_so(
    deployment: DeploymentRole, role: str | None
) -> None:
    one = guard(role=deployment, capabilities=["thread.read"])
    with pytest.raises(Forbidden) as caught:
        one.require("events.message_part", thread_id="thread-1", role=role, join_policy="invite")
    assert caught.value.message == (
        'Principal "ann" has "events.message_part" on thread "thread-1", but not with this token, which is narrowed.'
    )
    with pytest.raises(Forbidden, match=r'has "grants.join" on thread "t", but not with this token'):
        guard(capabilities=["thread.read"]).require("grants.join", thread_id="t", role=None, join_policy="open")
    with pytest.raises(Forbidden, match=r'"ann" lacks "grants.manage" on thread "t"'):
        guard(capabilities=["thread.read"]).require("grants.manage", thread_id="t", role="observer", join_policy="open")


@pytest.mark.requirement("PR-5-06", "PR-4-11", "PR-4-12")
@pytest.mark.parametrize("one", [identity(capabilities=["thread.read"]), identity(threads=["t"])])
def test_who_lacks_something_in_the_deployment_by_the_narrowing_alone_is_told_so(one: Identity) -> None:
    policy = Policy()
    with pytest.raises(Forbidden) as caught:
        policy.require_deployment(one, "threads.create")
    assert caught.value.message == 'Principal "ann" has "threads.create", but not with this token, which is narrowed.'
    with pytest.raises(Forbidden, match=r'"ann" lacks "threads.name"'):
        policy.require_deployment(one, "threads.name")


@pytest.mark.requirement("PR-5-15", "PR-5-14")
def test_on_an_open_thread_an_outsider_may_read_and_join_and_that_is_all() -> None:
    assert may(guard(), None, join_policy="open") == {"thread.read", "grants.join"}
    assert may(guard(), None, join_policy="invite") == set()
    assert refusal(guard(), "events.message_part", None, join_policy="open") is Forbidden
    assert refusal(guard(), "grants.manage", None, join_policy="open") is Forbidden


@pytest.mark.requirement("PR-5-15")
@pytest.mark.parametrize("role", ["observer", "participant", "owner"])
def test_an_open_thread_takes_nothing_from_a_role(role: str) -> None:
    assert may(guard(), role, join_policy="open") == TABLE[role] | {"grants.join"}


@pytest.mark.requirement("PR-4-11")
@pytest.mark.parametrize("role", TABLE)
@pytest.mark.parametrize("deployment", ["user", "admin"])
def test_a_bearer_narrowed_to_capabilities_has_no_others(role: str | None, deployment: DeploymentRole) -> None:
    narrow = {"thread.read", "events.message_part", "grants.manage"}
    carried = EVERYTHING if deployment == "admin" else TABLE[role]
    assert may(guard(role=deployment, capabilities=narrow), role) == carried & narrow
    assert may(guard(role=deployment, capabilities=[]), role) == set()


@pytest.mark.requirement("PR-4-11")
def test_a_bearer_narrowed_away_from_reading_does_not_read_an_open_thread_either() -> None:
    assert may(guard(capabilities=["cursor.write"]), None, join_policy="open") == set()


@pytest.mark.requirement("PR-4-12")
@pytest.mark.parametrize("deployment", ["user", "admin"])
@pytest.mark.parametrize("join_policy", ["invite", "open"])
def test_a_bearer_narrowed_to_threads_does_not_know_of_others(deployment: DeploymentRole, join_policy: str) -> None:
    one = guard(role=deployment, threads=["t"])
    assert may(one, "owner") >= TABLE["owner"]
    assert may(one, "owner", thread_id="u", join_policy=join_policy) == set()
    for capability in EVERYTHING:
        assert refusal(one, capability, "owner", thread_id="u", join_policy=join_policy) is NotFound
        assert not one.has(capability, thread_id="u", role="owner")


@pytest.mark.requirement("PR-5-07")
def test_an_admin_whose_bearer_is_narrowed_is_forbidden_rather_than_blind() -> None:
    assert refusal(guard(role="admin", capabilities=["thread.read"]), "thread.delete", None) is Forbidden


@pytest.mark.requirement("PR-5-09", "PR-4-11")
@pytest.mark.parametrize("deployment", ["user", "admin"])
@pytest.mark.parametrize("capabilities", [[], ["threads.create"], ["principals.manage"]])
def test_a_bearer_narrowed_away_from_everything_on_a_thread_does_not_learn_of_it(
    deployment: DeploymentRole, capabilities: list[str]
) -> None:
    for join_policy in ("invite", "open"):
        one = guard(role=deployment, capabilities=capabilities)
        for capability in TABLE["owner"]:
            assert refusal(one, capability, "owner", join_policy=join_policy) is NotFound


@pytest.mark.requirement("PR-5-08")
def test_a_custom_role_carries_what_it_was_declared_with() -> None:
    policy = Policy.with_custom_roles({"reviewer": ["thread.read", "events.subscribe", "events.tool_call_approval"]})
    one = policy.guard(identity())
    assert may(one, "reviewer") == {"thread.read", "events.subscribe", "events.tool_call_approval"}
    assert may(one, "owner") == TABLE["owner"]
    assert policy.role_appends("reviewer")


@pytest.mark.requirement("PR-5-08")
@pytest.mark.parametrize(
    ("roles", "word"),
    [
        ({"owner": ["thread.read"]}, "owner"),
        ({"x": ["thread.raed"]}, "thread.raed"),
        ({"x": ["threads.name"]}, "threads.name"),
        ({"x": ["events.impersonate"]}, "events.impersonate"),
        ({"x": ["events.participant_joined"]}, "events.participant_joined"),
    ],
)
def test_a_custom_role_that_cannot_be_is_named(roles: dict[str, list[str]], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        Policy.with_custom_roles(roles)


@pytest.mark.requirement("PR-5-22")
def test_which_roles_can_append() -> None:
    policy = Policy.with_custom_roles({"reader": ["thread.read"], "empty": []})
    assert {name: policy.role_appends(name) for name in policy.roles} == {
        "observer": False,
        "participant": True,
        "owner": True,
        "reader": False,
        "empty": False,
    }
    assert not policy.role_appends("nobody")


@pytest.mark.requirement("PR-5-09")
def test_a_role_without_any_capability_shows_nothing() -> None:
    one = Policy.with_custom_roles({"empty": []}).guard(identity())
    assert refusal(one, "cursor.write", "empty") is NotFound


def test_a_guard_says_who_asks() -> None:
    one = Policy().guard(identity(kind="bot"))
    assert (one.principal_id, one.kind) == ("ann", "bot")
