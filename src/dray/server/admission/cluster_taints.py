"""Whether a cluster can be reached is the hub's to say: its agent may not touch the two taints for it (OCM-32)."""

from __future__ import annotations

from dray.api.cluster import ManagedCluster
from dray.api.cluster.managed_cluster import AGENT_ACCOUNT, AUTOMATIC_TAINTS
from dray.api.meta import Object
from dray.server import errors
from dray.server.admission.chain import Plugin
from dray.server.engine import Call, Engine

AGENTS = "system:open-cluster-management"


class ClusterTaints(Plugin):
    """Refuses that an agent adds, changes or removes the taints in AUTOMATIC_TAINTS."""

    kinds = frozenset({"ManagedCluster"})

    def check(self, engine: Engine, call: Call, new: Object | None, old: Object | None) -> None:
        """Compares the protected taints before and after."""
        if not isinstance(new, ManagedCluster) or not _is_agent(call):
            return
        before = _protected(old) if isinstance(old, ManagedCluster) else set()
        changed = sorted({taint[0] for taint in before ^ _protected(new)})
        if changed:
            why = f"agents may not add, change or remove the taint {', '.join(changed)}"
            raise errors.forbidden(call.route.kind, new.metadata.name, why)


def _is_agent(call: Call) -> bool:
    if call.caller.user.startswith("system:serviceaccount:") and call.caller.user.endswith(f":{AGENT_ACCOUNT}"):
        return True
    return any(group == AGENTS or group.startswith(f"{AGENTS}:") for group in call.caller.groups)


def _protected(cluster: ManagedCluster) -> set[tuple[str, str, str]]:
    return {(taint.key, taint.value, taint.effect) for taint in cluster.spec.taints if taint.key in AUTOMATIC_TAINTS}
