"""Warnings for API versions that Kubernetes is about to drop."""

from __future__ import annotations

from dray.api.registry import RESOURCE_GROUP
from dray.server.routes import Route

_SINCE = {"v1beta1": ("v1.35", "v1.38"), "v1beta2": ("v1.36", "v1.39")}
_KINDS = frozenset({"ResourceSlice", "ResourceClaim", "ResourceClaimTemplate", "DeviceClass"})


def warnings(route: Route) -> list[str]:
    """What a client should hear about the version that it uses."""
    kind = route.kind
    if kind.group != RESOURCE_GROUP or route.version not in _SINCE or kind.kind not in _KINDS:
        return []
    since, until = _SINCE[route.version]
    return [f"{route.api_version} {kind.kind} is deprecated in {since}+, unavailable in {until}+"]
