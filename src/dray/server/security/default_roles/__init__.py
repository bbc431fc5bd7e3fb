"""The roles and bindings that a server starts with, as objects to store.

    user_roles        cluster-admin, admin, edit, view, and what everybody may do
    node_roles        nodes and device drivers
    component_roles   scheduler and controllers, each with what it needs and no more
    cluster_roles     the controllers of a hub, and the agents of its clusters
    manager_roles     the further controllers of a real kube-controller-manager
    reconcile         brings stored defaults up to date after an upgrade

Pure data. Namespaced objects among them are in `kube-system`.
"""

from functools import cache

from dray.server.security.default_roles import cluster_roles, component_roles, manager_roles, node_roles, user_roles
from dray.server.security.rbac import Stored


@cache
def default_objects() -> tuple[Stored, ...]:
    """Every default role and binding, roles before the bindings that refer to them."""
    modules = (user_roles, node_roles, component_roles, cluster_roles, manager_roles)
    objects = [obj for module in modules for obj in module.OBJECTS]
    return tuple(sorted(objects, key=lambda obj: obj.kind.endswith("Binding")))
