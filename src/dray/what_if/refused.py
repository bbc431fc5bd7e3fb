"""What of a change an API server would not let in, for what else is in the cluster. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from dray.api.generated.core import Namespace, Pod
from dray.api.generated.scheduling import PodGroup, PriorityClass
from dray.api.kinds import NAMESPACES, PRIORITY_CLASSES
from dray.api.references import full_name
from dray.pod_admission.priority import find_priority
from dray.snapshot.snapshot import Snapshot


def tell_refused(before: Snapshot, after: Snapshot) -> Iterator[str]:
    """A clause for each new object that is refused, with its field."""
    classes = tuple(after.objects(PriorityClass))
    for here, there in before.differing(after).values():
        if here is not None or there is None:
            continue
        name = f"{there.kind} {full_name(there)}"
        namespace = after.get(NAMESPACES.resource, "", there.metadata.namespace)
        if isinstance(namespace, Namespace) and namespace.metadata.deletion_timestamp is not None:
            yield f"{name}: metadata.namespace: {namespace.metadata.name} is being deleted"
        elif isinstance(there, Pod | PodGroup):
            yield from (f"{name}: spec.{why}" for why in _priority(after, there, classes))


def _priority(after: Snapshot, new: Pod | PodGroup, classes: tuple[PriorityClass, ...]) -> Iterator[str]:
    """Why its priority is none that it may have. A cluster has some classes; files may leave them all out."""
    spec = new.spec
    found = find_priority(
        spec.priority_class_name, lambda name: after.get(PRIORITY_CLASSES.resource, "", name), lambda: classes
    )
    if not classes:
        return
    if found is None:
        yield f"priorityClassName: there is no PriorityClass {spec.priority_class_name}"
    elif spec.priority not in (None, found.value):
        yield f"priority: its class says {found.value}, not {spec.priority}. Leave it out"
    elif spec.preemption_policy not in (None, found.policy):
        yield f"preemptionPolicy: its class says {found.policy}, not {spec.preemption_policy}. Leave it out"
