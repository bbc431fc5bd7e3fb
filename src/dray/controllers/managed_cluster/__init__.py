"""Registration on the hub: a cluster that is accepted gets its namespace, its agent's rights and its lease there.

    spec.hubAcceptsClient ─▶ namespace, ServiceAccount, roles, lease ─▶ condition HubAccepted
    lease (renewed by the agent) ─▶ condition Available ─▶ taint unavailable or unreachable

Here state is mapped to conditions and taints; placements do the evicting (OCM-33). `acceptance` and
`dray.placement.plan_availability` are pure, `controller` is the shell.
"""

from dray.controllers.managed_cluster.controller import ManagedClusterController

__all__ = ["ManagedClusterController"]
