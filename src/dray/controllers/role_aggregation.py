"""Writes the rules of aggregated ClusterRoles into them: the sum of those that they choose by label.

Kubernetes' API server decides by what is written; dray's puts such roles together itself, and people read it here.
"""

from __future__ import annotations

from typing import ClassVar, Final

from msgspec.structs import replace

from dray.api.aggregated_roles import aggregate
from dray.api.generated.rbac import ClusterRole
from dray.api.kinds import CLUSTER_ROLES
from dray.controllers.context import Context
from dray.controllers.queue_controller import QueueController

ALL: Final = ""
"""The key for every aggregated role: many roles may change before they are looked at."""


class RoleAggregationController(QueueController[str]):
    """Looks at all aggregated roles when any role changes."""

    name: ClassVar[str] = "clusterrole-aggregation-controller"

    def __init__(self, context: Context) -> None:
        self._roles = context.informers.of(CLUSTER_ROLES, ClusterRole)
        super().__init__(context, self._roles)
        self._roles.on_change(lambda _old, _new: self.queue.add(ALL))

    async def reconcile(self, key: str) -> None:
        """Raises ApiError or OSError."""
        if key == ALL:
            for each in self._roles:
                if each.aggregation_rule is not None:
                    self.queue.add(each.metadata.name)
            return
        role = self._roles.get("", key)
        if role is None or role.aggregation_rule is None:
            return
        rules = aggregate(key, {each.metadata.name: each for each in self._roles})
        if rules != role.rules:
            await self._client.update(replace(role, rules=rules))
