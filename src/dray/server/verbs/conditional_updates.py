"""Kinds that are only replaced by who says which version of the object they have seen.

Most kinds take an update without a resourceVersion as meant for whatever is there. Custom resources and a number of
others do not, because nobody should overwrite what they have not seen.
"""

from __future__ import annotations

from dray.api.field import invalid
from dray.api.meta import Object, StatusCause, StatusDetails
from dray.api.registry import CLUSTER_GROUP, DRAY_GROUP, RESOURCE_GROUP
from dray.server.errors import ApiError
from dray.server.routes import Route

_GROUPS = frozenset(
    (
        CLUSTER_GROUP,  # custom resources, where they come from
        DRAY_GROUP,
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "coordination.k8s.io",
        "node.k8s.io",
        "policy",
        "storagemigration.k8s.io",
    )
)
_KINDS = frozenset(
    (
        "CSIDriver",
        "CSINode",
        "CSIStorageCapacity",
        "ClusterTrustBundle",
        "PodCertificateRequest",
        "ResourcePoolStatusRequest",
        "VolumeAttachment",
    )
)
_OLD_RULES = frozenset(("v1beta2", "v1alpha3"))
"""Versions of DeviceTaintRule that came before its condition."""


def is_conditional(route: Route) -> bool:
    """Whether an update through a route must name the version that it replaces."""
    kind = route.kind
    if kind.group == RESOURCE_GROUP and kind.kind == "DeviceTaintRule":
        return route.version not in _OLD_RULES
    return kind.is_custom or kind.group in _GROUPS or kind.kind in _KINDS


def check(route: Route, obj: Object) -> None:
    """Raises ApiError if an update names no version and must."""
    if obj.metadata.resource_version or not is_conditional(route):
        return
    kind = route.kind
    problem = invalid("metadata.resourceVersion", 0, "must be specified for an update")
    cause = StatusCause(reason=problem.reason, message=problem.message, field=problem.field)
    details = StatusDetails(name=route.name, group=kind.group, kind=kind.plural, causes=(cause,))
    raise ApiError(422, "Invalid", f'{kind.resource} "{route.name}" is invalid: {problem}', details)
