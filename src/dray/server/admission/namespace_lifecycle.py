"""Objects are created only in namespaces that exist and stay; the namespaces that everything needs are kept."""

from __future__ import annotations

from dray.api.generated.core import Namespace
from dray.api.meta import Object
from dray.server import errors
from dray.server.admission.chain import Plugin
from dray.server.engine import Call, Engine
from dray.server.namespaces import check_stays

KEPT = frozenset({"default", "kube-system", "kube-public"})


class KeptNamespaces(Plugin):
    """Refuses the deletion of the namespaces in KEPT."""

    kinds = frozenset({"Namespace"})

    def check(self, engine: Engine, call: Call, new: Object | None, old: Object | None) -> None:
        """Looks at what is deleted. Raises ApiError."""
        if new is None and isinstance(old, Namespace) and old.metadata.name in KEPT:
            raise errors.forbidden(call.route.kind, old.metadata.name, "this namespace may not be deleted")


class NamespaceLifecycle(Plugin):
    """Refuses creates in missing or terminating namespaces."""

    def mutate(self, engine: Engine, call: Call, new: Object, old: Object | None) -> Object:
        """Before anything else is checked, so that a missing namespace is what the client hears of."""
        if old is None and call.route.namespace:
            check_stays(engine, call, new.metadata.name)
        return new
