"""The numbered pods of a StatefulSet: their names, labels and volumes. Pure."""

from __future__ import annotations

import re
from typing import Final

from msgspec.structs import replace

from dray.api.generated.apps import StatefulSet
from dray.api.generated.core import PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume
from dray.api.meta import OwnerReference
from dray.controllers.pod_templates import pod_from
from dray.controllers.revision_history import HASH
from dray.controllers.stateful_set.volume_claims import claim_name

POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX: Final = "apps.kubernetes.io/pod-index"
_NUMBERED: Final = re.compile(r"(.*)-([0-9]{1,10})", re.DOTALL)


def ordinal_of(stateful_set: StatefulSet, pod: Pod) -> int | None:
    """The number of a pod; None if its name is not one of the set's."""
    found = _NUMBERED.fullmatch(pod.metadata.name)
    if found is None or found[1] != stateful_set.metadata.name:
        return None
    return int(found[2])


def set_name(owner: OwnerReference) -> str:
    """The set that an owner of a volume claim is, or may be a pod of; empty if it is neither."""
    if owner.kind == "StatefulSet":
        return owner.name
    found = _NUMBERED.fullmatch(owner.name) if owner.kind == "Pod" else None
    return found[1] if found is not None else ""


def ordinals(stateful_set: StatefulSet) -> range:
    """The numbers of the pods that there should be."""
    spec = stateful_set.spec
    start = spec.ordinals.start if spec.ordinals is not None else 0
    return range(start, start + (1 if spec.replicas is None else spec.replicas))


def revision_of(pod: Pod) -> str:
    """The name of the revision that a pod was made from."""
    return pod.metadata.labels.get(HASH, "")


def member(stateful_set: StatefulSet, ordinal: int, template: PodTemplateSpec, revision: str) -> Pod:
    """The pod of a number, from the template of a revision."""
    pod = pod_from(stateful_set, template)
    name = f"{stateful_set.metadata.name}-{ordinal}"
    labels = {**pod.metadata.labels, HASH: revision, **identity(name, ordinal)}
    spec = replace(
        pod.spec, hostname=name, subdomain=stateful_set.spec.service_name, volumes=_volumes(stateful_set, pod, ordinal)
    )
    return replace(pod, metadata=replace(pod.metadata, name=name, labels=labels), spec=spec)


def identity(name: str, ordinal: int) -> dict[str, str]:
    """The labels that tell a pod's name and number."""
    return {POD_NAME: name, POD_INDEX: str(ordinal)}


def _volumes(stateful_set: StatefulSet, pod: Pod, ordinal: int) -> tuple[Volume, ...]:
    """The volumes of the template, those of claim templates first and instead of others of their names."""
    claimed = {
        one.metadata.name: Volume(
            name=one.metadata.name,
            persistent_volume_claim=PersistentVolumeClaimVolumeSource(
                claim_name=claim_name(stateful_set, one, ordinal)
            ),
        )
        for one in stateful_set.spec.volume_claim_templates
    }
    return (*claimed.values(), *(one for one in pod.spec.volumes if one.name not in claimed))
