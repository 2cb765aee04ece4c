"""From an issuer's subject to a principal: linked by an admin, or provisioned at first sight (protocol, section 4)."""

from __future__ import annotations

from bubble.auth.external_subjects import principal_id_of
from bubble.protocol.errors import Conflict
from bubble.protocol.jsontext import JSONValue
from bubble.protocol.resources import Principal
from bubble.store.base import BubbleStore
from bubble.store.records import NewPrincipal

__all__ = ["Provisioning"]


class Provisioning:
    """The principals behind the subjects of one issuer."""

    def __init__(self, store: BubbleStore, *, issuer: str, alias: str) -> None:
        self._store = store
        self._issuer = issuer
        self._alias = alias

    def reserves(self, principal_id: str) -> bool:
        """Whether the id belongs to this issuer's subjects, so that only an admin may give it to somebody."""
        return principal_id.startswith(f"{self._alias}:")

    async def link(self, subject: str, principal_id: str) -> None:
        """Lets the subject be that principal from now on. `Conflict` if it is another one already, `NotFound` for an unknown principal."""
        await self._store.link_identity(self._issuer, subject, principal_id)

    async def principal_of(self, subject: str, *, display_name: str) -> Principal | None:
        """The subject's principal, created where there was none.

        None where the id that it would get is somebody else's: being called alike is no proof of being the same, so an admin has to
        link them.
        """
        known = await self._store.find_identity(self._issuer, subject)
        return known or await self._provision(subject, display_name)

    async def _provision(self, subject: str, display_name: str) -> Principal | None:
        principal_id = principal_id_of(self._alias, subject)
        new = NewPrincipal(
            principal_id=principal_id,
            kind="user",
            display_name=display_name,
            metadata={"identity": self._mark(subject)},
        )
        try:
            principal = await self._store.create_principal(new)
        except Conflict:
            principal = await self._store.get_principal(principal_id)
            if not self._is_ours(principal, subject):
                return await self._store.find_identity(self._issuer, subject)
        return await self._linked(subject, principal)

    def _mark(self, subject: str) -> dict[str, JSONValue]:
        return {"issuer": self._issuer, "subject": subject}

    def _is_ours(self, principal: Principal, subject: str) -> bool:
        """Whether it was provisioned for this subject, by a request at the same moment or by one that was cut off before it could link."""
        metadata = principal.metadata
        return (
            principal.kind == "user" and isinstance(metadata, dict) and metadata.get("identity") == self._mark(subject)
        )

    async def _linked(self, subject: str, principal: Principal) -> Principal | None:
        try:
            await self.link(subject, principal.principal_id)
        except Conflict:  # an admin linked it elsewhere in the meantime
            return await self._store.find_identity(self._issuer, subject)
        return principal
