"""A program of its own that works with kr8s: kr8s keeps connections open until its process ends."""

from __future__ import annotations

import sys
from typing import Any

import kr8s
from kr8s.objects import ConfigMap, new_class

CLAIM_SPEC = {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": "gpu"}}]}}


def main(kubeconfig: str, namespace: str) -> None:
    """Creates, reads, patches, watches and deletes; fails with an AssertionError."""
    api: Any = kr8s.api(kubeconfig=kubeconfig, namespace=namespace)
    settings = ConfigMap({"metadata": {"name": "settings", "namespace": namespace}, "data": {"k": "1"}}, api=api)
    settings.create()
    settings.patch({"data": {"k": "2"}})
    assert [found.data["k"] for found in api.get("configmaps", "settings", namespace=namespace)] == ["2"]
    settings.label(app="x")
    assert [found.name for found in api.get("cm", namespace=namespace, label_selector="app=x")] == ["settings"]
    for event, found in api.watch("configmaps", namespace=namespace, label_selector="app=x"):
        assert (event, found.name) == ("ADDED", "settings")
        break
    settings.delete()
    settings.wait("delete", timeout=120)
    assert not settings.exists()

    claims = new_class("ResourceClaim", "resource.k8s.io/v1", namespaced=True)
    claims({"metadata": {"name": "c", "namespace": namespace}, "spec": CLAIM_SPEC}, api=api).create()
    (claim,) = api.get("resourceclaims.resource.k8s.io", namespace=namespace)
    assert claim.spec.devices.requests[0].exactly.count == 1


if __name__ == "__main__":
    main(*sys.argv[1:])
