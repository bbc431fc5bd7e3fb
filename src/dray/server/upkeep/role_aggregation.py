"""Writes the rules of aggregated ClusterRoles into them, so that kubectl shows what they give.

Decisions do not depend on it: the authorizer puts aggregated roles together itself.
"""

from __future__ import annotations

from msgspec.structs import replace

from dray.api.generated.rbac import ClusterRole, RoleRef
from dray.api.kinds import CLUSTER_ROLES
from dray.process.clock import Clock
from dray.server.engine import Engine
from dray.server.errors import ApiError
from dray.server.indexes.stored_roles import RBAC_GROUP, StoredRoles
from dray.server.verbs.rewrites import rewrite
from dray.store import Closed, Slow, StorageError

RETRY_SECONDS = 5.0


async def aggregate_roles(engine: Engine, roles: StoredRoles) -> None:
    """Brings every aggregated role up to date. Raises StorageError."""
    stored: list[ClusterRole] = [record.obj for record in engine.store.list(CLUSTER_ROLES.resource).records]
    for role in stored:
        if role.aggregation_rule is not None:
            await _aggregate(engine, roles, role)


async def keep_aggregated(engine: Engine, roles: StoredRoles, clock: Clock) -> None:
    """Does so whenever a ClusterRole changes, until the store is closed."""
    while True:
        try:
            with engine.store.watch(CLUSTER_ROLES.resource, engine.store.revision) as watcher:
                await aggregate_roles(engine, roles)
                while await watcher.next():
                    await aggregate_roles(engine, roles)
        except Closed:
            return
        except Slow:
            continue
        except StorageError:  # a full disk, say; the roles count all the same
            await clock.sleep(RETRY_SECONDS)


async def _aggregate(engine: Engine, roles: StoredRoles, role: ClusterRole) -> None:
    reference = RoleRef(api_group=RBAC_GROUP, kind="ClusterRole", name=role.metadata.name)
    rules = roles.rbac.role_rules(reference, "")
    if rules is None or rules == role.rules:
        return

    def with_rules(found: ClusterRole) -> ClusterRole:
        return replace(found, rules=rules) if found.aggregation_rule is not None else found

    try:
        await rewrite(engine, CLUSTER_ROLES, "", role.metadata.name, with_rules)
    except ApiError:
        return  # gone meanwhile, or somebody else keeps writing it: its next change brings us back
