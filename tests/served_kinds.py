"""The kinds that Kubernetes ships and dray serves, in all their versions."""

from __future__ import annotations

from dray.api import registry

OWN = {registry.CLUSTER_GROUP, registry.DRAY_GROUP}
NOT_SHIPPED = {"ResourceSlicePatch"}

TYPED = {
    (kind.api_version_of(version), kind.kind)
    for kind in registry.kinds()
    if kind.group not in OWN and kind.kind not in NOT_SHIPPED
    for version in kind.versions
}
"""Pairs of apiVersion and kind."""
