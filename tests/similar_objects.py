"""Pods and slices that differ in little, as those of one cluster do."""

from __future__ import annotations

from typing import Any


def pod(number: int) -> dict[str, Any]:
    tolerations = [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 300}]
    requests = {"cpu": "100m", "memory": "100Mi"}
    container = {"name": "main", "image": "pause", "resources": {"requests": requests}}
    owned = {"manager": "kubectl", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:a": {}}}}
    metadata = {"name": f"pod-{number}", "uid": f"uid-{number}", "managedFields": [owned]}
    spec = {"nodeName": f"node-{number}", "containers": [container], "tolerations": tolerations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def slice_(number: int) -> dict[str, Any]:
    devices = [
        {
            "name": f"gpu-{index}",
            "attributes": {"uuid": {"string": f"{number}-{index}"}, "model": {"string": "A100"}},
            "capacity": {"memory": {"value": "80Gi"}},
        }
        for index in range(4)
    ]
    pool = {"name": f"node-{number}", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": f"node-{number}", "pool": pool, "devices": devices}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec}
