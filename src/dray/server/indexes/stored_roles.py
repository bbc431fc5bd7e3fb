"""Who may do what, by the roles and bindings in the store as they are now.

A role counts from the moment its write is acknowledged: every question first reads what has changed.
"""

from __future__ import annotations

from functools import partial

from dray.api import registry
from dray.api.generated.rbac import PolicyRule
from dray.api.meta import Object
from dray.api.registry import RBAC_GROUP
from dray.server.indexes.followed import Followed
from dray.server.indexes.pod_index import PodIndex, node_of
from dray.server.security.authorization import Attributes, Decision
from dray.server.security.driver_restriction import check_driver_read
from dray.server.security.identity import Identity
from dray.server.security.node_reads import check_node_read
from dray.server.security.rbac import Rbac, Stored
from dray.store import Key, Store


class StoredRoles:
    """The authorizer of a server: RBAC, and for nodes and drivers on nodes the limits on what they read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._progress = store.progress
        self._revision = -1
        self._rbac = Rbac()
        self.pods_on_node = PodIndex(store, node_of)
        """Pods by their node."""
        kinds = [kind for kind in registry.kinds() if kind.group == RBAC_GROUP]
        self._followed = [Followed(store, kind.resource, partial(self._apply, kind.kind)) for kind in kinds]

    @property
    def rbac(self) -> Rbac:
        """The roles and bindings, up to date. Raises Closed when the store is."""
        revision = self._progress.revision
        if revision != self._revision:
            for followed in self._followed:
                followed.catch_up()
            self._revision = revision
        return self._rbac

    @property
    def generation(self) -> int:
        """Grows with every change of a role or binding."""
        return self.rbac.generation

    def allowed(self, identity: Identity, attributes: Attributes) -> Decision:
        """Whether the identity may do this."""
        rbac = self.rbac
        decision = rbac.allowed(identity, attributes)
        if not decision.allowed:
            return decision
        why = check_node_read(identity, attributes, self.pods_on_node, self._find)
        if why is None and identity.extra:

            def may(asked: Attributes) -> bool:
                return rbac.allowed(identity, asked).allowed

            why = check_driver_read(identity, attributes, self.pods_on_node, self._find, may)
        return decision if why is None else Decision(False, why)

    def rules_for(self, identity: Identity, namespace: str) -> tuple[PolicyRule, ...]:
        """Everything the identity may do in a namespace (empty: at the cluster scope)."""
        return self.rbac.rules_for(identity, namespace)

    def missing_permissions(
        self, identity: Identity, rules: tuple[PolicyRule, ...], namespace: str = ""
    ) -> tuple[PolicyRule, ...]:
        """What of `rules` the identity may not do itself."""
        return self.rbac.missing_permissions(identity, rules, namespace)

    def _find(self, resource: str, namespace: str, name: str) -> Object | None:
        record = self._store.get(Key(resource, namespace, name))
        return None if record is None else record.obj

    def close(self) -> None:
        """Lets go of the store."""
        for followed in self._followed:
            followed.close()
        self.pods_on_node.close()

    def _apply(self, kind: str, key: Key, obj: Stored | None) -> None:
        self._rbac.apply(kind, key.namespace, key.name, obj)
