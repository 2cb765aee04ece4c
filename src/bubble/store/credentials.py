"""When a credential counts: by itself, by what it was made from, and by whose it is. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from bubble.protocol.errors import Conflict, NotFound
from bubble.store.records import Credential, CredentialState

__all__ = ["ONE_USE", "credential_not_found", "credential_taken", "is_forgettable", "state_of"]

ONE_USE = frozenset({"ticket", "login"})


def credential_not_found(credential_id: str) -> NotFound:
    """The answer for a credential that does not exist, or is not that principal's."""
    return NotFound(f'There is no credential "{credential_id}".')


def credential_taken(credential_id: str) -> Conflict:
    """The answer where the id, or the secret, belongs to a credential already."""
    return Conflict(f'The credential "{credential_id}" exists already.')


def state_of(chain: Iterable[tuple[Credential, bool]], *, now_ms: int) -> CredentialState:
    """The state of the first credential of `chain`; after it comes what it was made from, and so on up.

    Beside each stands whether its principal is disabled. An ancestor that ended ends what was made from it, except that a one-use one
    is spent by the very act of making something: once spent, neither that nor its expiry counts against its children.
    A backend refuses a credential whose parent it does not know and forgets none that others were made from, so chains do not break off.
    """
    for depth, (credential, disabled) in enumerate(chain):
        state = credential.state(now_ms=now_ms)
        if state == "spent" and depth > 0:
            state = "valid"
        if state != "valid":
            return state
        if disabled:
            return "disabled"
    return "valid"


def is_forgettable(credential: Credential, *, now_ms: int) -> bool:
    """Whether `purge` may drop a credential that nothing was made from: a one-use one that is spent, revoked or expired."""
    return credential.kind in ONE_USE and credential.state(now_ms=now_ms) != "valid"
