"""Nobody gives away rights that they do not have themselves."""

from __future__ import annotations

from dray.api.generated.rbac import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from dray.api.meta import Object
from dray.server import errors
from dray.server.admission.chain import Plugin
from dray.server.engine import Call, Engine
from dray.server.indexes.stored_roles import StoredRoles
from dray.server.security.escalation import check_binding_write, check_role_write


class Escalation(Plugin):
    """Refuses roles and bindings that would give more than their author has."""

    kinds = frozenset({"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"})

    def __init__(self, roles: StoredRoles) -> None:
        self._roles = roles

    def check(self, engine: Engine, call: Call, new: Object | None, old: Object | None) -> None:
        """Compares what a role or binding gives with what the caller may do."""
        if isinstance(new, Role | ClusterRole):
            before = old if isinstance(old, Role | ClusterRole) else None
            why = check_role_write(self._roles.rbac, call.caller, before, new)
        elif isinstance(new, RoleBinding | ClusterRoleBinding):
            bound = old if isinstance(old, RoleBinding | ClusterRoleBinding) else None
            why = check_binding_write(self._roles.rbac, call.caller, bound, new)
        else:
            return
        if why is not None:
            raise errors.forbidden(call.route.kind, new.metadata.name, why)
