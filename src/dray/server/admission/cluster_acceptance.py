"""Who lets a cluster into the fleet: accepting or denying one is a right of its own, as on any hub of OCM."""

from __future__ import annotations

from dray.api.cluster import ManagedCluster
from dray.api.meta import Object
from dray.server import errors
from dray.server.admission.chain import Plugin
from dray.server.engine import Call, Engine
from dray.server.indexes.stored_roles import StoredRoles
from dray.server.security.authorization import Attributes

GROUP = "register.open-cluster-management.io"


class ClusterAcceptance(Plugin):
    """Refuses to change `spec.hubAcceptsClient` for whoever may not update `managedclusters/accept` in GROUP."""

    kinds = frozenset({"ManagedCluster"})

    def __init__(self, roles: StoredRoles) -> None:
        self._roles = roles

    def check(self, engine: Engine, call: Call, new: Object | None, old: Object | None) -> None:
        """A cluster that is new and not accepted is anybody's to create who may create clusters."""
        if not isinstance(new, ManagedCluster):
            return
        before = old.spec.hub_accepts_client if isinstance(old, ManagedCluster) else False
        if new.spec.hub_accepts_client == before:
            return
        asked = Attributes("update", GROUP, "managedclusters", "accept", "", new.metadata.name)
        if not self._roles.allowed(call.caller, asked).allowed:
            why = (
                f"user {call.caller.user!r} may not accept or deny clusters (update managedclusters/accept in {GROUP})"
            )
            raise errors.forbidden(call.route.kind, new.metadata.name, why)
