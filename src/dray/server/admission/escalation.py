"""Nobody gives away rights that they do not have themselves."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from dray.api.generated.rbac import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from dray.api.meta import Object
from dray.server import errors
from dray.server.admission.chain import Plugin
from dray.server.engine import Call, Engine
from dray.server.indexes.stored_roles import StoredRoles
from dray.server.security.escalation import Question, check_binding_write, check_role_write


class Escalation(Plugin):
    """Refuses roles and bindings that would give more than their author has."""

    kinds = frozenset({"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"})

    def __init__(self, roles: StoredRoles) -> None:
        self._roles = roles

    def check(
        self, engine: Engine, call: Call, new: Object | None, old: Object | None
    ) -> Coroutine[Any, Any, None] | None:
        """Compares what a role or binding gives with what the caller may do."""
        found: Question | str | None
        if isinstance(new, Role | ClusterRole):
            before = old if isinstance(old, Role | ClusterRole) else None
            found = check_role_write(self._roles.rbac, call.caller, before, new)
        elif isinstance(new, RoleBinding | ClusterRoleBinding):
            bound = old if isinstance(old, RoleBinding | ClusterRoleBinding) else None
            found = check_binding_write(self._roles.rbac, call.caller, bound, new)
        else:
            return None
        if isinstance(found, Question) and found.is_long:
            return self._check_beside(engine, call, new.metadata.name, found)
        _refuse(call, new.metadata.name, found.refusal() if isinstance(found, Question) else found)
        return None

    async def _check_beside(self, engine: Engine, call: Call, name: str, question: Question) -> None:
        _refuse(call, name, await engine.beside(call, question.refusal))


def _refuse(call: Call, name: str, why: str | None) -> None:
    """Raises ApiError if there is a reason."""
    if why is not None:
        raise errors.forbidden(call.route.kind, name, why)
