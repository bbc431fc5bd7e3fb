"""Who puts a cluster into a set, and who uses a set in a namespace: rights of their own, as on any hub of OCM.

Without them an agent could put its cluster into the set that somebody else's placements choose from.
"""

from __future__ import annotations

from typing import Final

from dray.api.cluster import ManagedCluster, ManagedClusterSetBinding
from dray.api.cluster.cluster_set import CLUSTER_SET_LABEL
from dray.api.meta import Object
from dray.server import errors
from dray.server.admission.chain import Plugin
from dray.server.engine import Call, Engine
from dray.server.indexes.stored_roles import StoredRoles
from dray.server.security.authorization import Attributes

GROUP: Final = "cluster.open-cluster-management.io"
JOIN: Final = "join"
BIND: Final = "bind"


class ClusterSets(Plugin):
    """Refuses to put a cluster into a set, or to take it out, for whoever may not create `managedclustersets/join` of
    that set; and to bind a set to a namespace for whoever may not create `managedclustersets/bind` of it.
    """

    kinds = frozenset({"ManagedCluster", "ManagedClusterSetBinding"})

    def __init__(self, roles: StoredRoles) -> None:
        self._roles = roles

    def check(self, engine: Engine, call: Call, new: Object | None, old: Object | None) -> None:
        """Who leaves a set needs the right to it as much as who comes."""
        if new is None or (before := _set_of(old)) == (after := _set_of(new)):
            return
        right = JOIN if isinstance(new, ManagedCluster) else BIND
        for name in (before, after):
            asked = Attributes("create", GROUP, "managedclustersets", right, "", name)
            if name and not self._roles.allowed(call.caller, asked).allowed:
                what = "put clusters into the set, or take them out of it" if right == JOIN else "bind the set"
                why = (
                    f"user {call.caller.user!r} may not {what} (create managedclustersets/{right} {name!r} in {GROUP})"
                )
                raise errors.forbidden(call.route.kind, new.metadata.name, why)


def _set_of(obj: Object | None) -> str:
    """The set that a cluster says it is in, or that a binding is of."""
    if isinstance(obj, ManagedCluster):
        return obj.metadata.labels.get(CLUSTER_SET_LABEL, "")
    return obj.spec.cluster_set if isinstance(obj, ManagedClusterSetBinding) else ""
