"""The fields that a field selector may name, per kind. Every kind has its name, and its namespace if it has one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dray.api.labels import FieldSelector
from dray.api.meta import Object
from dray.api.registry import RESOURCE_GROUP, Kind
from dray.custom.kinds import CustomKind
from dray.custom.paths import MISSING, look_up, steps_of
from dray.server import errors

Getter = Callable[[Any], str]


def _path(path: str) -> Getter:
    """Reads an attribute path; None on the way, and None at its end, count as empty."""
    steps = path.split(".")

    def get(obj: Any) -> str:
        for step in steps:
            obj = getattr(obj, step)
            if obj is None:
                return ""
        return str(obj).lower() if isinstance(obj, bool) else str(obj)

    return get


def _flag(path: str) -> Getter:
    get = _path(path)
    return lambda obj: get(obj) or "false"


def _paths(**paths: str) -> dict[str, Getter]:
    return {name.replace("__", "."): _path(path) for name, path in paths.items()}


_FIELDS: dict[tuple[str, str], dict[str, Getter]] = {
    (RESOURCE_GROUP, "ResourceSlice"): _paths(
        spec__nodeName="spec.node_name", spec__driver="spec.driver", spec__pool__name="spec.pool.name"
    ),
    ("", "Pod"): {
        **_paths(
            spec__nodeName="spec.node_name",
            spec__restartPolicy="spec.restart_policy",
            spec__schedulerName="spec.scheduler_name",
            spec__serviceAccountName="spec.service_account_name",
            status__phase="status.phase",
            status__nominatedNodeName="status.nominated_node_name",
            status__podIP="status.pod_ip",
        ),
        "spec.hostNetwork": _flag("spec.host_network"),
    },
    ("", "Node"): {"spec.unschedulable": _flag("spec.unschedulable")},
    ("", "Namespace"): _paths(status__phase="status.phase"),
    ("", "Secret"): _paths(type="type"),
    ("", "Event"): _paths(
        involvedObject__kind="involved_object.kind",
        involvedObject__namespace="involved_object.namespace",
        involvedObject__name="involved_object.name",
        involvedObject__uid="involved_object.uid",
        involvedObject__apiVersion="involved_object.api_version",
        involvedObject__resourceVersion="involved_object.resource_version",
        involvedObject__fieldPath="involved_object.field_path",
        reason="reason",
        reportingComponent="reporting_component",
        source="source.component",
        type="type",
    ),
    ("events.k8s.io", "Event"): _paths(
        regarding__kind="involved_object.kind",
        regarding__namespace="involved_object.namespace",
        regarding__name="involved_object.name",
        regarding__uid="involved_object.uid",
        regarding__apiVersion="involved_object.api_version",
        regarding__resourceVersion="involved_object.resource_version",
        regarding__fieldPath="involved_object.field_path",
        reason="reason",
        reportingController="reporting_component",
        type="type",
    ),
    ("", "ReplicationController"): _paths(status__replicas="status.replicas"),
    ("apps", "ReplicaSet"): _paths(status__replicas="status.replicas"),
    ("batch", "Job"): _paths(status__successful="status.succeeded"),
    ("", "Service"): _paths(spec__clusterIP="spec.cluster_ip", spec__type="spec.type"),
    ("certificates.k8s.io", "CertificateSigningRequest"): _paths(spec__signerName="spec.signer_name"),
    ("certificates.k8s.io", "ClusterTrustBundle"): _paths(spec__signerName="spec.signer_name"),
    ("certificates.k8s.io", "PodCertificateRequest"): _paths(
        spec__signerName="spec.signer_name", spec__nodeName="spec.node_name"
    ),
}
_NAME = {"metadata.name": _path("metadata.name")}
_NAMESPACE = {"metadata.namespace": _path("metadata.namespace")}


def _custom(path: str) -> Getter:
    steps = steps_of(path)

    def get(obj: Any) -> str:
        value = look_up(obj.content, steps)
        if value is MISSING or value is None:
            return ""
        return str(value).lower() if isinstance(value, bool) else str(value)

    return get


def _fields_of(kind: Kind) -> Mapping[str, Getter]:
    if isinstance(kind, CustomKind):
        own = {path.removeprefix("."): _custom(path) for path in kind.version.selectable}
        return {**_NAME, **(_NAMESPACE if kind.namespaced else {}), **own}
    own = _FIELDS.get((kind.group, kind.kind), {})
    # What has no namespace and no fields of its own may be asked for it all the same, as in Kubernetes: it is empty.
    return {**_NAME, **(_NAMESPACE if kind.namespaced or not own else {}), **own}


def matcher(kind: Kind, version: str, selector: FieldSelector) -> Callable[[Object], bool]:
    """A test for objects of a kind. Raises ApiError for a field that cannot be selected by."""
    fields = _fields_of(kind)
    for requirement in selector.requirements:
        if requirement.field not in fields:
            group_version = kind.api_version_of(version)
            message = f"field label not supported for {group_version}, Kind={kind.kind}: {requirement.field}"
            raise errors.bad_request(message)
    getters = {requirement.field: fields[requirement.field] for requirement in selector.requirements}

    def matches(obj: Object) -> bool:
        return selector.matches({field: get(obj) for field, get in getters.items()})

    return matches
