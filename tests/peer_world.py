"""A corner of a cluster for one scenario: a namespace, nodes and devices of its own, and those who act there.

There is no kubelet: a pod counts as running where it is bound, and one that is told to go is gone when it is deleted
without grace.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from patience import eventually
from peer_processes import ApiServer

Body = dict[str, Any]
_numbers = itertools.count(1)
RESOURCE = "/apis/resource.k8s.io/v1"


def with_image(name: str) -> Body:
    """A patch of a workload: its pods have another image."""
    return {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": name}]}}}}


class World:
    """A namespace and two nodes with two devices each, of a driver that nobody else has."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        number = next(_numbers)
        self.name = f"s{number}"
        self.driver = f"d{number}.example.com"
        self.nodes = [f"{self.name}-a", f"{self.name}-b"]
        self.create("/api/v1/namespaces", "v1", "Namespace", self.name)
        selector = {"cel": {"expression": f'device.driver == "{self.driver}"'}}
        self.create(
            f"{RESOURCE}/deviceclasses", "resource.k8s.io/v1", "DeviceClass", self.name, {"selectors": [selector]}
        )
        for node in self.nodes:
            self.add_node(node)

    def add_node(self, name: str) -> None:
        labels = {"kubernetes.io/hostname": name, "world": self.name}
        self.create("/api/v1/nodes", "v1", "Node", name, labels=labels)
        status = {
            "capacity": {"cpu": "8", "memory": "16Gi", "pods": "110"},
            "allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "x", "message": ""}],
        }
        self.merge(f"/api/v1/nodes/{name}/status", {"status": status})
        # Kubernetes' admission taints new nodes until somebody says that they are ready.
        self.merge(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
        devices = [
            {"name": f"gpu-{index}", "attributes": {"index": {"int": index}, "model": {"string": f"m{index}"}}}
            for index in (0, 1)
        ]
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": self.driver, "nodeName": name, "pool": pool, "devices": devices}
        self.create(f"{RESOURCE}/resourceslices", "resource.k8s.io/v1", "ResourceSlice", name, spec)

    def create(self, path: str, version: str, kind: str, name: str, spec: Body | None = None, **meta: Any) -> Any:
        body: Body = {"apiVersion": version, "kind": kind, "metadata": {"name": name, **meta}}
        return self.server.ask("POST", path, body | ({"spec": spec} if spec is not None else {}))

    def merge(self, path: str, patch: Body) -> Any:
        return self.server.ask("PATCH", path, patch, "application/merge-patch+json")

    def template(self, name: str, *expressions: str, count: int = 1) -> None:
        self._claim_like("ResourceClaimTemplate", "resourceclaimtemplates", name, expressions, count)

    def claim(self, name: str, *expressions: str, count: int = 1) -> None:
        self._claim_like("ResourceClaim", "resourceclaims", name, expressions, count)

    def _claim_like(self, kind: str, plural: str, name: str, expressions: tuple[str, ...], count: int) -> None:
        exactly: Body = {"deviceClassName": self.name, "allocationMode": "ExactCount", "count": count}
        if expressions:
            exactly["selectors"] = [{"cel": {"expression": one}} for one in expressions]
        spec: Body = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
        path = f"{RESOURCE}/namespaces/{self.name}/{plural}"
        self.create(path, "resource.k8s.io/v1", kind, name, {"spec": spec} if kind.endswith("Template") else spec)

    def pod(self, name: str, *, template: str = "", claim: str = "", **more: Any) -> None:
        spec: Body = {
            "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "c"}]}}],
            "nodeSelector": {"world": self.name},
            "terminationGracePeriodSeconds": 1,
            "resourceClaims": [
                {"name": "c", **({"resourceClaimTemplateName": template} if template else {"resourceClaimName": claim})}
            ],
        }
        if not template and not claim:
            del spec["resourceClaims"]
            spec["containers"] = [{"name": "c", "image": "i"}]
        self.create(f"/api/v1/namespaces/{self.name}/pods", "v1", "Pod", name, spec | more)

    def get(self, plural: str, name: str = "", root: str = "/api/v1") -> Any:
        return self.server.ask("GET", f"{root}/namespaces/{self.name}/{plural}" + (f"/{name}" if name else ""))

    def node_of(self, pod: str) -> str:
        found = self.get("pods", pod)
        return str((found or {}).get("spec", {}).get("nodeName", ""))

    def bound(self, pod: str) -> str:
        return eventually(lambda: self.node_of(pod), f"{pod} was not scheduled")

    def refused(self, pod: str) -> str:
        """What the scheduler says of a pod that it has looked at and not placed."""

        def look() -> str:
            conditions = (self.get("pods", pod) or {}).get("status", {}).get("conditions", ())
            return next((one.get("message", "") for one in conditions if one["reason"] == "Unschedulable"), "")

        return eventually(look, f"{pod} was not refused")

    def devices_of(self, claim: str) -> list[tuple[str, str]]:
        found = self.get("resourceclaims", claim, RESOURCE)
        results = ((found or {}).get("status", {}).get("allocation") or {}).get("devices", {}).get("results", ())
        return [(one["pool"], one["device"]) for one in results]

    def leaving(self, pod: str) -> bool:
        found = self.get("pods", pod)
        return found is None or "deletionTimestamp" in found["metadata"]

    def kill(self, pod: str) -> None:
        """The pod goes at once, as if its node had ended it."""
        options = {"gracePeriodSeconds": 0}
        self.server.ask("DELETE", f"/api/v1/namespaces/{self.name}/pods/{pod}", options)

    def rule(self, effect: str, **selector: str) -> str:
        taint = {"key": "example.com/broken", "effect": effect}
        spec = {"deviceSelector": {"driver": self.driver, **selector}, "taint": taint}
        self.create(f"{RESOURCE}/devicetaintrules", "resource.k8s.io/v1", "DeviceTaintRule", self.name, spec)
        return f"{RESOURCE}/devicetaintrules/{self.name}"

    def refuse(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> str:
        """What the server says against a request that it must refuse, with its code."""
        try:
            self.server.ask(method, path, body, content_type)
        except AssertionError as error:
            return str(error).partition(f"{path}: ")[2]
        raise AssertionError(f"{method} {path} was not refused")

    def spec(self, *, template: str = "", **more: Any) -> Body:
        """What a pod of a workload is, on the nodes of this world."""
        container: Body = {"name": "c", "image": "i"}
        spec: Body = {"nodeSelector": {"world": self.name}, "terminationGracePeriodSeconds": 1}
        if template:
            container["resources"] = {"claims": [{"name": "c"}]}
            spec["resourceClaims"] = [{"name": "c", "resourceClaimTemplateName": template}]
        return {"containers": [container], **spec, **more}

    def workload(self, kind: str, spec: Body, pod: Body | None = None, name: str = "w") -> str:
        """Makes a workload whose pods have the label app=NAME; its path."""
        group = "batch" if kind == "Job" else "apps"
        wanted = {**spec, "template": {"metadata": {"labels": {"app": name}}, "spec": pod or self.spec()}}
        if kind != "Job":
            wanted["selector"] = {"matchLabels": {"app": name}}
        path = f"/apis/{group}/v1/namespaces/{self.name}/{kind.lower()}s"
        self.create(path, f"{group}/v1", kind, name, wanted)
        return f"{path}/{name}"

    def live(self, app: str = "w") -> list[Any]:
        """The pods of an app that are not on their way out."""
        found = self.get("pods")["items"]
        labelled = [one for one in found if one["metadata"].get("labels", {}).get("app") == app]
        return [one for one in labelled if "deletionTimestamp" not in one["metadata"]]

    def live_names(self, app: str = "w") -> list[str]:
        """What they are called, in order."""
        return sorted(one["metadata"]["name"] for one in self.live(app))

    def at_work(self, look: Callable[[], Any], what: str, phase: str = "Running") -> Any:
        """What is found while nodes do what kubelets do: pods that have a node run, or end, and those told to go go."""

        def work() -> Any:
            for one in self.get("pods")["items"]:
                name = one["metadata"]["name"]
                if "deletionTimestamp" in one["metadata"]:
                    self.kill(name)
                elif one["spec"].get("nodeName") and one["status"].get("phase") != phase:
                    self.report(name, phase)
            return look()

        return eventually(work, what)

    def report(self, pod: str, phase: str) -> None:
        """Its node says how a pod is."""
        ready = "True" if phase == "Running" else "False"
        moment = "2026-01-01T00:00:00Z"
        conditions = [
            {"type": kind, "status": ready, "lastTransitionTime": moment} for kind in ("Ready", "ContainersReady")
        ]
        address = f"10.9.{sum(self.name.encode()) % 250}.{sum(pod.encode()) % 250 + 1}"
        status = {"phase": phase, "conditions": conditions, "podIP": address, "podIPs": [{"ip": address}]}
        path = f"/api/v1/namespaces/{self.name}/pods/{pod}/status"
        self.server.ask("PATCH", path, {"status": status}, "application/strategic-merge-patch+json")

    def condition(self, path: str, kind: str) -> bool:
        """Whether a condition of an object is true."""
        conditions = ((self.server.ask("GET", path) or {}).get("status") or {}).get("conditions") or ()
        return any(one["type"] == kind and one["status"] == "True" for one in conditions)
