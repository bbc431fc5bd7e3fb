"""Pods with a RuntimeClass get its overhead and its nodes; there are none with a class that does not exist."""

from __future__ import annotations

from msgspec.structs import replace

from dray.api.generated.core import Pod
from dray.api.generated.node import RuntimeClass
from dray.api.kinds import RUNTIME_CLASSES
from dray.api.meta import Object
from dray.pod_admission import runtime_class
from dray.server import errors
from dray.server.admission.chain import Plugin
from dray.server.engine import Call, Engine


class PodRuntimeClass(Plugin):
    """Looks at new pods."""

    switch = "RuntimeClass"
    kinds = frozenset({"Pod"})
    parts = frozenset({""})

    def mutate(self, engine: Engine, call: Call, new: Object, old: Object | None) -> Object:
        """Completes a pod that names a class. Raises ApiError."""
        if old is not None or not isinstance(new, Pod) or not new.spec.runtime_class_name:
            return new
        try:
            return replace(new, spec=runtime_class.with_class(new.spec, _class_of(engine, call, new)))
        except runtime_class.Mismatch as problem:
            raise errors.forbidden(call.route.kind, new.metadata.name, str(problem)) from None

    def check(self, engine: Engine, call: Call, new: Object | None, old: Object | None) -> None:
        """Refuses overhead that is nobody's. Raises ApiError."""
        if old is not None or not isinstance(new, Pod):
            return
        if not new.spec.runtime_class_name and not new.spec.overhead:
            return
        found = _class_of(engine, call, new) if new.spec.runtime_class_name else None
        try:
            runtime_class.check_overhead(new.spec, found)
        except runtime_class.Mismatch as problem:
            raise errors.forbidden(call.route.kind, new.metadata.name, str(problem)) from None


def _class_of(engine: Engine, call: Call, pod: Pod) -> RuntimeClass:
    name = pod.spec.runtime_class_name or ""
    found = engine.get(RUNTIME_CLASSES.resource, "", name)
    if isinstance(found, RuntimeClass):
        return found
    raise errors.forbidden(call.route.kind, pod.metadata.name, f'pod rejected: RuntimeClass "{name}" not found')
