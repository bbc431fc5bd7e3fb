"""What a control plane for devices must do, whoever it is made of; each scenario has a namespace and driver of its own.

There is no kubelet: a pod counts as running where it is bound, and one that is told to go is gone when it is deleted
without grace.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from patience import eventually
from peer_processes import ApiServer

Body = dict[str, Any]
_numbers = itertools.count(1)
RESOURCE = "/apis/resource.k8s.io/v1"


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
            self._add_node(node)

    def _add_node(self, name: str) -> None:
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


def pod_gets_a_device_from_a_template(world: World) -> None:
    world.template("t")
    world.pod("p", template="t")
    node = world.bound("p")
    (claim,) = world.get("resourceclaims", root=RESOURCE)["items"]
    assert claim["metadata"]["ownerReferences"][0]["name"] == "p"
    assert claim["status"]["allocation"]["devices"]["results"][0]["pool"] == node
    assert claim["status"]["reservedFor"][0]["name"] == "p"


def devices_are_given_once(world: World) -> None:
    world.template("t", count=2)
    for name in "abc":
        world.pod(name, template="t")
    eventually(lambda: sum(bool(world.node_of(name)) for name in "abc") == 2)
    waiting = next(name for name in "abc" if not world.node_of(name))
    world.refused(waiting)


def a_released_device_is_given_again(world: World) -> None:
    world.template("t", count=2)
    for name in "abc":
        world.pod(name, template="t")
    eventually(lambda: sum(bool(world.node_of(name)) for name in "abc") == 2)
    waiting = next(name for name in "abc" if not world.node_of(name))
    world.kill(next(name for name in "abc" if name != waiting))
    world.bound(waiting)


def a_selector_finds_its_device(world: World) -> None:
    world.claim("c", f'device.attributes["{world.driver}"].model == "m1"')
    world.pod("p", claim="c")
    world.bound("p")
    assert [device for _, device in world.devices_of("c")] == ["gpu-1"]


def a_selector_that_nothing_matches_keeps_a_pod_waiting(world: World) -> None:
    world.claim("c", f'device.attributes["{world.driver}"].index > 7')
    world.pod("p", claim="c")
    assert "cannot allocate all claims" in world.refused("p")


def pods_share_a_claim(world: World) -> None:
    world.claim("c")
    world.pod("a", claim="c")
    world.pod("b", claim="c")
    assert world.bound("a") == world.bound("b")
    claim = eventually(lambda: world.get("resourceclaims", "c", RESOURCE))
    assert {one["name"] for one in claim["status"]["reservedFor"]} == {"a", "b"}


def a_claim_is_free_after_its_pods(world: World) -> None:
    world.claim("c")
    world.pod("p", claim="c")
    world.bound("p")
    world.kill("p")
    eventually(lambda: not world.devices_of("c"), "the claim was not deallocated")


def claims_of_gone_pods_go(world: World) -> None:
    world.template("t")
    world.pod("p", template="t")
    world.bound("p")
    world.kill("p")
    eventually(lambda: not world.get("resourceclaims", root=RESOURCE)["items"], "the claim is still there")


def a_rule_keeps_pods_away(world: World) -> None:
    rule = world.rule("NoSchedule", pool=world.nodes[0])
    world.claim("c", count=2)
    world.pod("p", claim="c")
    assert world.bound("p") == world.nodes[1]
    world.claim("d", count=2)
    world.pod("q", claim="d")
    world.refused("q")
    world.server.ask("DELETE", rule)
    assert world.bound("q") == world.nodes[0]


def a_rule_evicts(world: World) -> None:
    world.claim("c")
    world.pod("p", claim="c")
    ((pool, device),) = [pair for _ in [world.bound("p")] for pair in world.devices_of("c")]
    world.rule("NoExecute", pool=pool, device=device)
    eventually(lambda: world.leaving("p"), "the pod was not evicted")


def tolerating_pods_stay(world: World) -> None:
    # The effect is named: kube-controller-manager evicts where a toleration has none, although it stands for all.
    toleration = {"operator": "Exists", "key": "example.com/broken", "effect": "NoExecute"}
    exactly = {"deviceClassName": world.name, "allocationMode": "ExactCount", "count": 1, "tolerations": [toleration]}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    path = f"{RESOURCE}/namespaces/{world.name}/resourceclaims"
    world.create(path, "resource.k8s.io/v1", "ResourceClaim", "calm", spec)
    world.claim("c")
    world.pod("stays", claim="calm")
    world.pod("goes", claim="c")
    world.bound("stays")
    world.bound("goes")
    world.rule("NoExecute")
    eventually(lambda: world.leaving("goes"), "the pod was not evicted")
    assert not world.leaving("stays")


def a_tainted_node_is_emptied(world: World) -> None:
    world.pod("p")
    node = world.bound("p")
    taint = {"key": "example.com/out", "effect": "NoExecute"}
    world.merge(f"/api/v1/nodes/{node}", {"spec": {"taints": [taint]}})
    eventually(lambda: world.leaving("p"), "the pod was not evicted")
    world.pod("q")
    assert world.bound("q") != node


def a_cordoned_node_gets_nothing(world: World) -> None:
    world.merge(f"/api/v1/nodes/{world.nodes[0]}", {"spec": {"unschedulable": True}})
    world.template("t", count=2)
    world.pod("p", template="t")
    assert world.bound("p") == world.nodes[1]
    world.pod("q", template="t")
    world.refused("q")


def the_first_alternative_that_fits_is_taken(world: World) -> None:
    def alternative(name: str, count: int) -> Body:
        return {"name": name, "deviceClassName": world.name, "allocationMode": "ExactCount", "count": count}

    request = {"name": "r", "firstAvailable": [alternative("many", 3), alternative("two", 2)]}
    path = f"{RESOURCE}/namespaces/{world.name}/resourceclaims"
    world.create(path, "resource.k8s.io/v1", "ResourceClaim", "c", {"devices": {"requests": [request]}})
    world.pod("p", claim="c")
    world.bound("p")
    assert len(world.devices_of("c")) == 2


def a_deployment_gets_pods_with_devices(world: World) -> None:
    world.template("t")
    labels = {"app": "x"}
    pod = {
        "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "c"}]}}],
        "nodeSelector": {"world": world.name},
        "resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}],
    }
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": 4, "selector": {"matchLabels": labels}, "template": template}
    world.create(f"/apis/apps/v1/namespaces/{world.name}/deployments", "apps/v1", "Deployment", "d", spec)

    def placed() -> bool:
        return sum(bool(one["spec"].get("nodeName")) for one in world.get("pods")["items"]) == 4

    eventually(placed, "not all pods have nodes")
    taken = [
        (result["pool"], result["device"])
        for claim in world.get("resourceclaims", root=RESOURCE)["items"]
        for result in claim["status"]["allocation"]["devices"]["results"]
    ]
    assert len(set(taken)) == 4


def a_job_gets_a_pod(world: World) -> None:
    world.template("t")
    pod = {
        "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "c"}]}}],
        "nodeSelector": {"world": world.name},
        "restartPolicy": "Never",
        "resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}],
    }
    spec = {"template": {"spec": pod}}
    world.create(f"/apis/batch/v1/namespaces/{world.name}/jobs", "batch/v1", "Job", "j", spec)
    eventually(lambda: any(one["spec"].get("nodeName") for one in world.get("pods")["items"]), "no pod has a node")


def a_namespace_is_emptied(world: World) -> None:
    world.template("t")
    world.claim("c")
    world.server.ask("DELETE", f"/api/v1/namespaces/{world.name}")
    eventually(lambda: world.server.ask("GET", f"/api/v1/namespaces/{world.name}") is None, "it is still there")


def gated_pods_wait(world: World) -> None:
    world.claim("c")
    world.pod("p", claim="c", schedulingGates=[{"name": "example.com/later"}])
    world.claim("d")
    world.pod("q", claim="d")
    world.bound("q")
    assert not world.node_of("p")
    world.merge(f"/api/v1/namespaces/{world.name}/pods/p", {"spec": {"schedulingGates": []}})
    world.bound("p")


def scenarios() -> Iterator[Callable[[World], None]]:
    """All of them, in the order in which they are written."""
    for found in list(globals().values()):
        if callable(found) and getattr(found, "__annotations__", {}).get("world") == "World":
            yield found
