"""What every new pod gets: time on nodes that fail, and a priority; and what every new group of pods gets."""

from __future__ import annotations

from msgspec.structs import replace

from dray.api.generated.core import Pod, PodSpec, Toleration
from dray.api.generated.scheduling import PodGroup, PriorityClass
from dray.api.kinds import PRIORITY_CLASSES
from dray.api.meta import Object
from dray.api.nodes import NOT_READY, UNREACHABLE
from dray.api.pod_groups import FINALIZER
from dray.api.sharing import remembered
from dray.api.well_known import CLAIM_FINALIZER, VOLUME_FINALIZER
from dray.pod_admission import priority
from dray.server import errors
from dray.server.admission.chain import Plugin
from dray.server.engine import Call, Engine

SECONDS = 300
POLICY_GATE = "PodGroupPreemptionPolicy"
_WITH_PRIORITY = (Pod, PodGroup)

FINALIZERS = {
    "PodGroup": FINALIZER,
    "PersistentVolume": VOLUME_FINALIZER,
    "PersistentVolumeClaim": CLAIM_FINALIZER,
}


class PodTolerations(Plugin):
    """Pods stay for five minutes on nodes that are not ready or unreachable, unless they say otherwise."""

    kinds = frozenset({"Pod"})
    parts = frozenset({""})

    def mutate(self, engine: Engine, call: Call, new: Object, old: Object | None) -> Object:
        """Adds the two tolerations to a new pod that has none for these taints."""
        if old is not None or not isinstance(new, Pod):
            return new
        return replace(new, spec=_tolerating(new.spec))


@remembered
def _tolerating(spec: PodSpec) -> PodSpec:
    missing = [key for key in (NOT_READY, UNREACHABLE) if not any(_covers(t, key) for t in spec.tolerations)]
    if not missing:
        return spec
    added = tuple(
        Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=SECONDS) for key in missing
    )
    return replace(spec, tolerations=(*spec.tolerations, *added))


def _covers(toleration: Toleration, key: str) -> bool:
    return toleration.key in ("", key) and toleration.effect in ("", "NoExecute")


class Priority(Plugin):
    """The number behind the priority class of a pod or a PodGroup."""

    switch = "Priority"
    kinds = frozenset({"Pod", "PodGroup"})
    parts = frozenset({""})

    def mutate(self, engine: Engine, call: Call, new: Object, old: Object | None) -> Object:
        """Resolves the class of a new pod or group. Raises ApiError if there is no such class."""
        if old is not None or not isinstance(new, _WITH_PRIORITY):
            return new
        asked = new.spec.priority_class_name
        found = _priority(engine, asked)
        if found is None:
            why = f"no PriorityClass with name {asked} was found"
            raise errors.forbidden(call.route.kind, new.metadata.name, why)
        value, policy, name = found
        if new.spec.priority not in (None, value):
            raise _is_computed(call, new, f"integer value of priority ({new.spec.priority})", value)
        if new.spec.preemption_policy not in (None, policy):
            raise _is_computed(call, new, f"string value of PreemptionPolicy ({new.spec.preemption_policy})", policy)
        if isinstance(new, Pod):
            return replace(new, spec=_prioritised(new.spec, value, name, policy))
        has_policy = POLICY_GATE not in engine.disabled_gates
        spec = replace(
            new.spec, priority=value, priority_class_name=name, preemption_policy=policy if has_policy else None
        )
        return replace(new, spec=spec)


def _is_computed(call: Call, new: Object, given: str, computed: int | str) -> errors.ApiError:
    where = "pod" if isinstance(new, Pod) else "pod group"
    why = (
        f"the {given} must not be provided in {where} spec; "
        f"priority admission controller computed {computed} from the given PriorityClass name"
    )
    return errors.forbidden(call.route.kind, new.metadata.name, why)


def _priority(engine: Engine, asked: str) -> priority.Priority | None:
    """What the class of a name says, or the one for pods without a name. None if there is no such class."""
    if not asked and not engine.store.count(PRIORITY_CLASSES.resource):
        return priority.NO_CLASS

    def classes() -> list[PriorityClass]:
        return [record.obj for record in engine.store.list(PRIORITY_CLASSES.resource).records]

    return priority.find_priority(asked, lambda name: engine.get(PRIORITY_CLASSES.resource, "", name), classes)


@remembered
def _prioritised(spec: PodSpec, priority: int, name: str, policy: str) -> PodSpec:
    return replace(
        spec,
        priority=priority,
        priority_class_name=name,
        preemption_policy=spec.preemption_policy or policy,
    )


class Protection(Plugin):
    """PodGroups stay until none of their pods is left, volumes and their claims until nobody uses them."""

    kinds = frozenset(FINALIZERS)

    def mutate(self, engine: Engine, call: Call, new: Object, old: Object | None) -> Object:
        """Gives a new object the finalizer that its protection controller takes away."""
        finalizer = FINALIZERS[new.kind]
        if old is not None or finalizer in new.metadata.finalizers or call.route.subresource:
            return new
        return replace(new, metadata=replace(new.metadata, finalizers=(*new.metadata.finalizers, finalizer)))
