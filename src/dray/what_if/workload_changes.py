"""What is different for the pods of workloads: how many more, fewer or new ones there are, and whether these fit.

Deployments, ReplicaSets, StatefulSets and Jobs that differ, or that lose pods: these are made from the template and
scheduled in memory, one after the other, next to those that are there; where all are made anew, those make way as the
workload says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from dray.allocator.reasons import Report
from dray.api.generated.apps import Deployment, StatefulSet
from dray.api.generated.core import Pod
from dray.api.meta import Object
from dray.api.references import ObjectKey, ObjectName, controller_of, full_name
from dray.scheduling.judgeable import cannot_judge
from dray.scheduling.text import tell_pod
from dray.snapshot.pending_pods import pending_pods
from dray.snapshot.snapshot import Snapshot
from dray.what_if.newcomers import Newcomers
from dray.what_if.rollout import Bounds, Rollout, bounds_of
from dray.what_if.workloads import TAKES, WORKLOADS, ActivePods, Workload, is_of, owner_of, pod_of, title, wanted_pods

MAX_TRIED = 100
"""Pods of one workload for which a place is looked for."""


class WorkloadChange(Report, frozen=True, kw_only=True):
    """A workload whose pods are others than before."""

    workload: str
    pods: int
    """How many it has now."""
    wanted: int
    replaced: bool = False
    """Its template is another one, so that its pods are made anew, but for those that are `kept`."""
    kept: int = 0
    """Pods of a StatefulSet below its partition stay as they are."""
    fitting: int = 0
    """How many of those that are to be made find a place."""
    tried: int = 0
    why_not: str = ""
    """Why the first that finds none does not."""
    victims: tuple[str, ...] = ()
    """Pods of lower priority that the scheduler makes go for new ones."""
    comes_to: tuple[str, ...] = ()
    """Of a DaemonSet: the nodes that get a pod which they did not have."""
    goes_from: tuple[str, ...] = ()
    """Of a DaemonSet: the nodes whose pod goes."""

    @property
    def loses(self) -> bool:
        """Whether somebody loses something by it: a pod goes, or one that is wanted finds no place."""
        return self.wanted < self.pods or self.fitting < self.tried or bool(self.goes_from or self.victims)


class Tried(NamedTuple):
    """How many pods were tried, how many found a place, why the first of the others did not, and who went for them."""

    tried: int = 0
    fitting: int = 0
    why_not: str = ""
    victims: tuple[str, ...] = ()


Pair = tuple[Object | None, Object | None]


def compare_workloads(differing: dict[ObjectKey, Pair], before: Snapshot, after: Snapshot) -> Iterator[WorkloadChange]:
    """Workloads that are new, gone, want other pods than they have, or have to make some anew that are gone."""
    gone = {(one.kind, ObjectName.of(one)) for one, left in differing.values() if one is not None and left is None}
    concerned = {id(pair[1] or pair[0]): pair for pair in differing.values() if _is_own(pair, gone)}
    concerned |= {id(one): (one, one) for one in _touched(differing.values(), after)}
    if not concerned:
        return
    pods, then = ActivePods(before), ActivePods(after)
    for here, there in concerned.values():
        old = here if isinstance(here, WORKLOADS) else None
        if isinstance(there, WORKLOADS):
            yield from _change(old, there, then.of(there), after)
        elif old is not None and (had := pods.of(old)):
            yield WorkloadChange(workload=title(old), pods=len(had), wanted=0)


def _is_own(pair: Pair, gone: Collection[tuple[str, ObjectName]]) -> bool:
    """Whether it is a workload that says itself what it wants, and does not go with what manages it."""
    here, there = pair
    if there is not None or not isinstance(here, WORKLOADS):
        return isinstance(there, WORKLOADS)
    manager = controller_of(here)
    return manager is None or (manager.kind, ObjectName(here.metadata.namespace, manager.name)) not in gone


def _touched(differing: Iterable[Pair], after: Snapshot) -> Iterator[Workload]:
    """Workloads that stay as they are, but for pods that are gone, or labelled as theirs or as somebody else's."""
    pods = [(here, there) for here, there in differing if isinstance(here, Pod) and _leaves(here, there)]
    makers = [one for one in after.objects(Object) if isinstance(one, WORKLOADS)] if pods else []
    for here, there in pods:
        owner = owner_of(here, after, makers)
        if isinstance(owner, WORKLOADS) and not (isinstance(there, Pod) and is_of(there, owner)):
            yield owner
        if isinstance(there, Pod):
            yield from (one for one in makers if isinstance(one, TAKES) and is_of(there, one) and one is not owner)


def _leaves(here: Pod, there: Object | None) -> bool:
    return there is None or there.metadata.labels != here.metadata.labels


def _change(old: Workload | None, new: Workload, there_are: list[Pod], after: Snapshot) -> Iterator[WorkloadChange]:
    wanted = wanted_pods(new)
    replaced = old is not None and old.spec.template != new.spec.template and _makes_anew(new)
    leave = [pod for pod in there_are if not _is_kept(pod, new)] if replaced else []
    replaced, stay = bool(leave), len(there_are) - len(leave)
    missing = max(wanted - stay, 0)
    if not missing and wanted == len(there_are):
        return
    count = min(missing, MAX_TRIED)
    bounds = bounds_of(new, missing) if leave else Bounds(count)
    told = try_pods(after, [pod_of(new, number) for number in range(count)], leave, bounds)
    yield WorkloadChange(
        workload=title(new),
        pods=len(there_are),
        wanted=wanted,
        replaced=replaced,
        kept=stay if replaced else 0,
        fitting=told.fitting,
        tried=told.tried,
        why_not=told.why_not,
        victims=told.victims,
    )


def _makes_anew(workload: Workload) -> bool:
    """Whether pods that are there make way when the template is another one; else they stay as they are."""
    if isinstance(workload, Deployment):
        return not workload.spec.paused
    return isinstance(workload, StatefulSet) and workload.spec.update_strategy.type != "OnDelete"


def _is_kept(pod: Pod, workload: Workload) -> bool:
    """Whether a StatefulSet leaves a pod as it is although its template is another one: below the partition."""
    update = workload.spec.update_strategy.rolling_update if isinstance(workload, StatefulSet) else None
    ordinal = pod.metadata.name.removeprefix(f"{workload.metadata.name}-")
    if not isinstance(workload, StatefulSet) or update is None or not ordinal.isdecimal():
        return False
    first = workload.spec.ordinals.start if workload.spec.ordinals is not None else 0
    return int(ordinal) < (first or 0) + (update.partition or 0)


def try_pods(snapshot: Snapshot, made: Sequence[Pod], old: Sequence[Pod], bounds: Bounds) -> Tried:
    """Whether new pods fit, while old ones go for them as the bounds say."""
    names = {full_name(pod) for pod in made}
    waiting = pending_pods(snapshot.with_typed(made), asks_quotas=False)
    problem = next((why for name, why in waiting.problems.items() if name in names), None)
    if problem is not None:
        return Tried(len(made), 0, tell_pod(problem))
    with snapshot.rehearsal() as rehearsal:
        rehearsal.expect([pod for pod in waiting.pods if full_name(pod) in names], waiting.claims)
        volumes = rehearsal.cluster.volumes
        unknown = next((why for pod in rehearsal.pending if (why := cannot_judge(pod, volumes)) is not None), None)
        if unknown is not None:
            return Tried(why_not=f"cannot be judged: {tell_pod(unknown)}")
        rollout = Rollout(rehearsal, old, rehearsal.pending, bounds, Newcomers(snapshot))
        rollout.play()
        return Tried(len(made), rollout.fitting, rollout.why_not, tuple(rollout.victims))
