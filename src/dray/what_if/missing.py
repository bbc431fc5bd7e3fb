"""What pods and what makes them refer to, and that is not there: claims, templates, volume claims, groups. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

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
from dray.api.resource import ResourceClaim, ResourceClaimTemplate
from dray.snapshot.snapshot import Snapshot
from dray.what_if.workloads import MAKERS, Maker, template_of

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
        if pod.metadata.deletion_timestamp is None and pod.status.phase in ("", PENDING):
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
