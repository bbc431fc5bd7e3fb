"""What is different for the next pod of workloads that name a class, a claim or a template that is another one, or
to which labels of a namespace matter that are others.

What runs stays as it is: a class or a template is read when a claim is made or allocated. So each workload is asked
with both clusters: if one of its pods had to be made anew, would it fit?
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from dray.allocator.reasons import Report
from dray.api.extended_resources import IMPLICIT
from dray.api.generated.apps import DaemonSet
from dray.api.generated.batch import Job
from dray.api.generated.core import Node, PodSpec
from dray.api.kinds import CLAIMS, CLASSES, TEMPLATES
from dray.api.meta import Object
from dray.api.pods import containers_of
from dray.api.references import ObjectKey, controller_of
from dray.api.resource import DeviceClass, ResourceClaim, ResourceClaimTemplate
from dray.scheduling.daemon_nodes import DaemonNodes, spec_for
from dray.snapshot.snapshot import Snapshot
from dray.what_if.missing import classes_of
from dray.what_if.namespace_changes import Relabelled
from dray.what_if.rollout import Bounds
from dray.what_if.workload_changes import Pair, Tried, try_pods
from dray.what_if.workloads import MAKERS, ActivePods, Maker, pod_of, template_of, title, wanted_pods

MAX_ASKED = 50
"""Workloads whose next pod is tried."""


class NextPod(Report, frozen=True, kw_only=True):
    """What becomes of the next pod of a workload. Null where nobody here can judge it."""

    workload: str
    names: tuple[str, ...]
    """What it names, directly or by way of a template, and is another one."""
    fitted_before: bool | None
    fits: bool | None
    why_not: str = ""
    victims: tuple[str, ...] = ()
    """Pods of lower priority that the scheduler makes go for it."""

    @property
    def loses(self) -> bool:
        """Whether it would have had a place, and has none, or only in that of others."""
        return bool(self.fitted_before) and (self.fits is False or bool(self.victims))


class Named(NamedTuple):
    """Workloads that name something that differs, with what; `skipped` counts those beyond the limit."""

    asked: dict[int, tuple[Maker, tuple[str, ...]]]
    skipped: int = 0


def find_named(differing: Mapping[ObjectKey, Pair], before: Snapshot, after: Snapshot) -> Named:
    """The workloads that stay as they are, and depend on classes, claims, templates or namespaces that do not."""
    others = {key: pair for key, pair in differing.items() if _differs(pair)}
    relabelled = Relabelled(differing.values(), after)
    if not others and not relabelled.pairs:
        return Named({})
    found: dict[int, tuple[Maker, tuple[str, ...]]] = {}
    for maker in after.objects(Object):
        if not isinstance(maker, MAKERS) or controller_of(maker) is not None or _is_over(maker):
            continue
        spec, namespace = template_of(maker).spec, maker.metadata.namespace
        keys = {*_names(spec, namespace, before), *_names(spec, namespace, after)} & others.keys()
        told = [f"{_kind(others[key])} {key.name}" for key in sorted(keys)]
        told += [f"Namespace {name}" for name in relabelled.concern(maker)]
        if told:
            found[id(maker)] = (maker, tuple(told))
    asked = dict(list(found.items())[:MAX_ASKED])
    return Named(asked, len(found) - len(asked))


def try_next(snapshot: Snapshot, named: Named) -> dict[int, Tried]:
    """Whether one more pod of each workload fits, in the place of one that it has, if it has any; and why not."""
    told: dict[int, Tried] = {}
    if not named.asked:
        return told
    pods = ActivePods(snapshot)
    for number, (maker, _) in named.asked.items():
        old = [pod for pod in pods.of(maker) if pod.spec.node_name][:1]
        spec = None
        if isinstance(maker, DaemonSet):
            node = old[0].spec.node_name if old else _first_node(maker, snapshot.objects(Node))
            spec = spec_for(maker, node)
        told[number] = try_pods(snapshot, [pod_of(maker, 0, spec)], old, Bounds(1, 0, 1))
    return told


def compare_next(named: Named, before: Mapping[int, Tried], after: Mapping[int, Tried]) -> Iterator[NextPod]:
    """What is told of each."""
    for number, (maker, names) in named.asked.items():
        told = after[number]
        yield NextPod(
            workload=title(maker),
            names=names,
            fitted_before=_fits(before[number]),
            fits=_fits(told),
            why_not=told.why_not,
            victims=told.victims,
        )


def _fits(tried: Tried) -> bool | None:
    return bool(tried.fitting) if tried.tried else None


def _differs(pair: Pair) -> bool:
    """Whether it is a class, claim or template of which another spec is read from now on."""
    here, there = pair
    known = (DeviceClass, ResourceClaim, ResourceClaimTemplate)
    if not isinstance(here or there, known):
        return False
    return getattr(here, "spec", None) != getattr(there, "spec", None)


def _is_over(maker: Maker) -> bool:
    return isinstance(maker, Job) and not wanted_pods(maker)


def _kind(pair: Pair) -> str:
    obj = pair[0] or pair[1]
    return obj.kind if obj is not None else ""


def _names(spec: PodSpec, namespace: str, snapshot: Snapshot) -> Iterator[ObjectKey]:
    """The classes, claims and templates that pods of a spec need."""
    for entry in spec.resource_claims:
        for kind, name in (
            (TEMPLATES, entry.resource_claim_template_name),
            (CLAIMS, entry.resource_claim_name),
        ):
            if not name:
                continue
            key = ObjectKey(kind.resource, namespace, name)
            yield key
            found = snapshot.get(*key)
            if isinstance(found, ResourceClaim):
                yield from (ObjectKey(CLASSES.resource, "", one) for one in classes_of(found.spec))
            elif isinstance(found, ResourceClaimTemplate):
                yield from (ObjectKey(CLASSES.resource, "", one) for one in classes_of(found.spec.spec))
    asked = {name for one in containers_of(spec) for name in one.resources.requests}
    asked |= {name for one in containers_of(spec) for name in one.resources.limits}
    extended = {name for name in asked if "/" in name}
    for one in snapshot.objects(DeviceClass) if extended else ():
        if extended & {f"{IMPLICIT}{one.metadata.name}", one.spec.extended_resource_name}:
            yield ObjectKey(CLASSES.resource, "", one.metadata.name)


def _first_node(daemon_set: DaemonSet, nodes: Iterable[Node]) -> str:
    judge = DaemonNodes(daemon_set).judge
    return next((node.metadata.name for node in nodes if judge(node).should_run), "")
