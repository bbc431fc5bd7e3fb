"""What pods and what makes them refer to, and that is not there: claims, templates, volume claims, groups. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from dray.allocator.reasons import Report
from dray.api.extended_resources import IMPLICIT
from dray.api.generated.apps import StatefulSet
from dray.api.generated.batch import CronJob
from dray.api.generated.core import PersistentVolumeClaim, Pod, PodSpec
from dray.api.generated.scheduling import PodGroup
from dray.api.kinds import CLAIMS, POD_GROUPS, TEMPLATES, VOLUME_CLAIMS
from dray.api.meta import Object
from dray.api.pod_claims import lacks_claim, recorded_claims
from dray.api.pods import PENDING
from dray.api.references import controller_of
from dray.api.registry import Kind
from dray.api.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlicePatch
from dray.api.resource.claim import ResourceClaimSpec
from dray.snapshot.snapshot import Snapshot
from dray.what_if.workload_changes import Pair
from dray.what_if.workloads import MAKERS, Maker, template_of, title

REFERRED: dict[type[Object], tuple[Kind, str]] = {
    ResourceClaim: (CLAIMS, "UnknownClaim"),
    ResourceClaimTemplate: (TEMPLATES, "UnknownTemplate"),
    PersistentVolumeClaim: (VOLUME_CLAIMS, "UnknownVolumeClaim"),
    PodGroup: (POD_GROUPS, "UnknownGroup"),
}
"""What pods may refer to, and what is said if it is not there."""


class Missing(NamedTuple):
    """Something that is not there, and who refers to it first, at a field; `others` refer to it, too."""

    owner: Object
    field: str
    kind: type[Object]
    name: str
    others: int

    @property
    def reason(self) -> str:
        """In a word."""
        return REFERRED[self.kind][1]

    @property
    def message(self) -> str:
        """In a clause."""
        more = f"; {self.others} more refer{'s' if self.others == 1 else ''} to it" if self.others else ""
        return f"there is no {self.kind.__name__} {self.name!r} in namespace {self.owner.metadata.namespace}{more}"


class _Reference(NamedTuple):
    field: str
    kind: type[Object]
    name: str


class Orphaned(Report, frozen=True, kw_only=True):
    """Who still refers to an object that goes."""

    gone: str
    """`DeviceClass gpu`."""
    referred_by: tuple[str, ...]
    """`ResourceClaimTemplate ml/one`."""


def find_orphaned(pairs: Iterable[Pair], after: Snapshot) -> Iterator[Orphaned]:
    """Who still refers to what is there before and not after, be it that nothing can be said of their pods."""
    gone = [here for here, there in pairs if here is not None and there is None]
    wanted = {(one.metadata.namespace, type(one), one.metadata.name) for one in gone if type(one) in REFERRED}
    classes = [one for one in gone if isinstance(one, DeviceClass)]
    wanted |= {("", DeviceClass, one.metadata.name) for one in classes}
    if not wanted:
        return
    there = {one.spec.extended_resource_name for one in after.objects(DeviceClass)}
    meant = {
        one.spec.extended_resource_name: one.metadata.name
        for one in classes
        if one.spec.extended_resource_name and one.spec.extended_resource_name not in there
    }
    meant |= {f"{IMPLICIT}{one.metadata.name}": one.metadata.name for one in classes}
    found: dict[tuple[str, type[Object], str], dict[str, None]] = {}
    for owner, reference in chain(_all_references(after), _to_classes(after, meant)):
        namespace = "" if reference.kind is DeviceClass else owner.metadata.namespace
        key = (namespace, reference.kind, reference.name)
        if key in wanted:
            found.setdefault(key, {})[title(owner)] = None
    for (namespace, kind, name), owners in found.items():
        place = f"{namespace}/{name}" if namespace else name
        yield Orphaned(gone=f"{kind.__name__} {place}", referred_by=tuple(owners))


def _to_classes(snapshot: Snapshot, meant: Mapping[str, str]) -> Iterator[tuple[Object, _Reference]]:
    """Claims without devices, templates, rules, patches, and who asks for resources for which a class stands."""
    for claim in snapshot.objects(ResourceClaim):
        if claim.status.allocation is None and claim.metadata.deletion_timestamp is None:
            yield from ((claim, _Reference("spec", DeviceClass, name)) for name in classes_of(claim.spec))
    for template in snapshot.objects(ResourceClaimTemplate):
        yield from ((template, _Reference("spec.spec", DeviceClass, name)) for name in classes_of(template.spec.spec))
    for rule in snapshot.objects(DeviceTaintRule):
        selector = rule.spec.device_selector
        if selector is not None and selector.device_class_name:
            yield rule, _Reference("spec.deviceSelector", DeviceClass, selector.device_class_name)
    for patch in snapshot.objects(ResourceSlicePatch):
        if (criteria := patch.spec.devices.filter) is not None and criteria.device_class_name:
            yield patch, _Reference("spec.devices.filter", DeviceClass, criteria.device_class_name)
    for owner, spec in _specs(snapshot) if meant else ():
        for container in (*spec.containers, *spec.init_containers):
            asked = (*container.resources.requests, *container.resources.limits)
            yield from ((owner, _Reference("spec", DeviceClass, meant[name])) for name in asked if name in meant)


def classes_of(spec: ResourceClaimSpec) -> Iterator[str]:
    """The names of the classes that its requests and their alternatives ask for."""
    for request in spec.devices.requests:
        for option in (*([request.exactly] if request.exactly is not None else ()), *request.first_available):
            yield option.device_class_name


def _specs(snapshot: Snapshot) -> Iterator[tuple[Object, PodSpec]]:
    """What makes pods, and pods that have not started."""
    for maker in snapshot.objects(Object):
        if isinstance(maker, MAKERS) and controller_of(maker) is None:
            yield maker, template_of(maker).spec
    for pod in snapshot.objects(Pod):
        if _waits(pod):
            yield pod, pod.spec


def _waits(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is None and pod.status.phase in ("", PENDING)


def find_missing(snapshot: Snapshot, known: Collection[type[Object]]) -> Iterator[Missing]:
    """What is not there, of kinds of which everything is `known`; workloads refer to it before their pods do."""
    found: dict[tuple[str, type[Object], str], list[tuple[Object, str]]] = {}
    for owner, reference in _all_references(snapshot):
        namespace = owner.metadata.namespace
        kind = REFERRED[reference.kind][0]
        if reference.kind in known and snapshot.get(kind.resource, namespace, reference.name) is None:
            found.setdefault((namespace, reference.kind, reference.name), []).append((owner, reference.field))
    for (_, missing, name), referring in found.items():
        (owner, field), others = referring[0], {id(one) for one, _ in referring}
        yield Missing(owner, field, missing, name, len(others) - 1)


def _all_references(snapshot: Snapshot) -> Iterator[tuple[Object, _Reference]]:
    for maker in snapshot.objects(Object):
        if isinstance(maker, MAKERS) and controller_of(maker) is None:
            yield from ((maker, one) for one in _of_maker(maker))
    for group in snapshot.objects(PodGroup):
        for index, entry in enumerate(group.spec.resource_claims):
            path = f"spec.resourceClaims[{index}]"
            yield from ((group, one) for one in _of_entry(path, entry.resource_claim_name, None))
            yield from ((group, one) for one in _of_entry(path, None, entry.resource_claim_template_name))
    for pod in snapshot.objects(Pod):
        if _waits(pod):
            yield from ((pod, one) for one in _of_pod(pod, snapshot))


def _of_maker(maker: Maker) -> Iterator[_Reference]:
    path = "spec.jobTemplate.spec.template.spec" if isinstance(maker, CronJob) else "spec.template.spec"
    made = maker.spec.volume_claim_templates if isinstance(maker, StatefulSet) else ()
    yield from _of_spec(template_of(maker).spec, path, {one.metadata.name for one in made})


def _of_pod(pod: Pod, snapshot: Snapshot) -> Iterator[_Reference]:
    """Without the templates of claims that are made already."""
    recorded, namespace = recorded_claims(pod), pod.metadata.namespace

    def find(name: str) -> ResourceClaim | None:
        claim = snapshot.get(CLAIMS.resource, namespace, name)
        return claim if isinstance(claim, ResourceClaim) else None

    made = {
        f"spec.resourceClaims[{index}].resourceClaimTemplateName"
        for index, entry in enumerate(pod.spec.resource_claims)
        if not lacks_claim(entry, recorded, find)
    }
    yield from (one for one in _of_spec(pod.spec, "spec") if one.field not in made)


def _of_spec(spec: PodSpec, path: str, own: Collection[str] = ()) -> Iterator[_Reference]:
    """`own` are volumes whose claims are made for each pod."""
    for index, entry in enumerate(spec.resource_claims):
        place = f"{path}.resourceClaims[{index}]"
        yield from _of_entry(place, entry.resource_claim_name, entry.resource_claim_template_name)
    for index, volume in enumerate(spec.volumes):
        if volume.persistent_volume_claim is not None and volume.name not in own:
            field = f"{path}.volumes[{index}].persistentVolumeClaim.claimName"
            yield _Reference(field, PersistentVolumeClaim, volume.persistent_volume_claim.claim_name)
    group = spec.scheduling_group
    if group is not None and group.pod_group_name:
        yield _Reference(f"{path}.schedulingGroup.podGroupName", PodGroup, group.pod_group_name)


def _of_entry(path: str, claim: str | None, template: str | None) -> Iterator[_Reference]:
    if claim:
        yield _Reference(f"{path}.resourceClaimName", ResourceClaim, claim)
    if template:
        yield _Reference(f"{path}.resourceClaimTemplateName", ResourceClaimTemplate, template)
