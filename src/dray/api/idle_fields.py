"""Fields that are stored and do nothing here, of kinds that act. Pure data, and who has set one.

Whoever writes such a field is told so in a `Warning`, and `docs/kinds.md` lists them. A test holds every field of every
kind that acts against this table and a list of those that act, so that a field that is new in Kubernetes cannot be
forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple, get_args

import msgspec
from msgspec.structs import FieldInfo

from dray.api.registry import Kind
from dray.api.sharing import remembered

EACH: Final = "[]"
"""Behind the name of a list: each of its items."""

_PRETENDED: Final = "volumes only pretend"
_SELECTORS: Final = {
    f"spec.resourceAttributes.{field}": "rights do not depend on selectors"
    for field in ("fieldSelector", "labelSelector")
}
_VOLUME_CLAIM: Final = dict.fromkeys(
    ("spec.dataSource", "spec.dataSourceRef", "spec.volumeAttributesClassName"), _PRETENDED
)


def _below(place: str, table: Mapping[str, str]) -> dict[str, str]:
    return {f"{place}.{path}": why for path, why in table.items()}


_POD: Final = {
    "spec.evictionResponders": "nobody is asked before a pod is evicted",
    **_below("spec.volumes[].ephemeral.volumeClaimTemplate", _VOLUME_CLAIM),
    "spec.volumes[].projected.sources[].podCertificate": "nobody signs certificates for pods",
}
_WORKLOAD: Final = _below("spec.template", _POD)
_JOB: Final = {
    **_WORKLOAD,
    "spec.scheduling": "no groups are made for jobs, and a job that asks for one is not started",
}

IDLE_FIELDS: Final[dict[str, dict[str, str]]] = {
    "nodes": dict.fromkeys(("spec.configSource", "spec.externalID"), "no node reads it any more"),
    "persistentvolumeclaims": _VOLUME_CLAIM,
    "persistentvolumes": {"spec.volumeAttributesClassName": _PRETENDED},
    "pods": _POD,
    "replicationcontrollers": _WORKLOAD,
    "daemonsets.apps": _WORKLOAD,
    "deployments.apps": _WORKLOAD,
    "replicasets.apps": _WORKLOAD,
    "statefulsets.apps": {**_WORKLOAD, **_below("spec.volumeClaimTemplates[]", _VOLUME_CLAIM)},
    "localsubjectaccessreviews.authorization.k8s.io": _SELECTORS,
    "selfsubjectaccessreviews.authorization.k8s.io": _SELECTORS,
    "subjectaccessreviews.authorization.k8s.io": _SELECTORS,
    "cronjobs.batch": _below("spec.jobTemplate", _JOB),
    "jobs.batch": _JOB,
    "storageclasses.storage.k8s.io": dict.fromkeys(("allowVolumeExpansion", "parameters"), _PRETENDED),
    "leases.coordination.k8s.io": dict.fromkeys(
        ("spec.preferredHolder", "spec.strategy"), "who leads is settled among those who want to"
    ),
    "managedclustersets.cluster.open-cluster-management.io": {
        "spec.managedNamespaces": "no namespaces are made on the clusters"
    },
    "placements.cluster.open-cluster-management.io": {
        "spec.scoreRateLimit": "decisions follow scores at once",
        "spec.spreadPolicy.spreadConstraints": "clusters are not spread over regions or zones",
    },
    "resourceslices.resource.k8s.io": {
        "spec.devices[].nodeAllocatableResources": "what devices take of their node is not counted"
    },
}
"""By the resource's name and the field's path: why it does nothing."""
LISTED_ONLY: Final = frozenset({"resourceslices.resource.k8s.io"})
"""Written by drivers, where nobody reads warnings, and answered as by Kubernetes: `docs/kinds.md` has their fields."""

_CONTAINER: Final = (
    "args command env envFrom image imagePullPolicy lifecycle livenessProbe readinessProbe resizePolicy "
    "restartPolicyRules startupProbe stdin stdinOnce terminationMessagePath terminationMessagePolicy tty "
    "volumeDevices volumeMounts workingDir"
)
_OLD_STORAGE: Final = (
    "awsElasticBlockStore azureDisk azureFile cephfs cinder csi fc flexVolume flocker gcePersistentDisk glusterfs "
    "hostPath iscsi nfs photonPersistentDisk portworxVolume quobyte rbd scaleIO storageos vsphereVolume"
)
OF_THE_NODE: Final[dict[str, frozenset[str]]] = {
    name: frozenset(fields.split())
    for name, fields in {
        "PodSpec": (
            "dnsConfig dnsPolicy enableServiceLinks hostAliases hostIPC hostPID hostUsers hostnameOverride "
            "imagePullSecrets os securityContext setHostnameAsFQDN shareProcessNamespace"
        ),
        "Container": f"{_CONTAINER} securityContext",
        "EphemeralContainer": f"{_CONTAINER} securityContext targetContainerName",
        "Volume": f"configMap downwardAPI emptyDir gitRepo image secret {_OLD_STORAGE}",
        "ProjectedVolumeSource": "defaultMode defaultUser",
        "VolumeProjection": "clusterTrustBundle configMap downwardAPI secret serviceAccountToken",
        "PersistentVolumeSpec": f"local mountOptions {_OLD_STORAGE}",
        "NodeSpec": "podCIDR podCIDRs podPreemptionPolicy",
        "RuntimeClass": "handler",
    }.items()
}
"""Fields for whoever runs the pod, by the type that has them: the server only judges them."""


def idle_fields(kind: Kind, obj: Any) -> list[str]:
    """What to tell whoever writes the object: fields that it sets and that do nothing here."""
    if kind.resource not in IDLE_FIELDS or kind.resource in LISTED_ONLY:
        return []
    if kind.resource == "pods":
        return list(_of_pods(obj.spec, kind))
    return [_told(path, why) for path, why, steps in _rows(kind) if _is_set(obj, steps)]


def learn(kind: Kind) -> None:
    """Finds out, once, what `idle_fields` has to look at."""
    if kind.resource in IDLE_FIELDS and kind.resource not in LISTED_ONLY:
        _rows(kind)


@remembered
def _of_pods(spec: Any, kind: Kind) -> tuple[str, ...]:
    """The same for a pod: many have one spec."""
    return tuple([_told(path, why) for path, why, steps in _rows(kind) if _is_set(spec, steps[1:])])


def _told(path: str, why: str) -> str:
    return f"{path} is stored and does nothing here: {why}"


class _Step(NamedTuple):
    """An attribute, and whether what follows is about each of its items."""

    attribute: str
    is_list: bool


def _is_set(value: Any, steps: tuple[_Step, ...]) -> bool:
    for position, (attribute, is_list) in enumerate(steps):
        value = getattr(value, attribute)
        if not value:
            return False
        if is_list:
            return any(_is_set(item, steps[position + 1 :]) for item in value)
    return True


@cache
def _rows(kind: Kind) -> list[tuple[str, str, tuple[_Step, ...]]]:
    return [(path, why, _steps(kind.hub, path)) for path, why in IDLE_FIELDS[kind.resource].items()]


def _steps(struct: type, path: str) -> tuple[_Step, ...]:
    """The path as attributes. Raises KeyError if there is no such field."""
    name, _, rest = path.partition(".")
    found = _fields(struct)[name.removesuffix(EACH)]
    step = _Step(found.name, name.endswith(EACH))
    if not rest:
        return (step,)
    (inner,) = structs_in(found.type)
    return (step, *_steps(inner, rest))


@cache
def _fields(struct: type) -> dict[str, FieldInfo]:
    """By their names in JSON. To find them out takes a millisecond and more, and every path begins with the same."""
    return {field.encode_name: field for field in msgspec.structs.fields(struct)}


def structs_in(annotation: Any) -> Iterator[type]:
    """The structs that a field of such a type can hold."""
    for argument in get_args(annotation):
        yield from structs_in(argument)
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        yield annotation
