"""The manifests that users, admins and drivers of a simulation write."""

from __future__ import annotations

from typing import Any, Final

import builders
from controller_world import Manifest, manifest
from dray.api.nodes import SIMULATED
from dray.simulation import names

V1: Final = "resource.k8s.io/v1"
GPU, PARTS, LINK = "gpu.example.com", "parts.example.com", "link.example.com"
DRIVERS: Final = {"gpu": GPU, "parts": PARTS, "link": LINK}
BROKEN: Final = "example.com/broken"
"""The key of all device taints."""
MAINTENANCE: Final = "example.com/maintenance"
"""The key of the taint that admins put on nodes."""
RATE: Final = "dray.dev/evictions-per-second"
NODE_RATE: Final = 2
RATE_GROUP: Final = "rated-nodes"
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
GPUS_PER_NODE: Final = 3
EXTENDED: Final = "extended-"
PRIORITIES: Final = {"urgent": 1000, "polite": 1000, "low": -10}
"""Of pods that say how important they are; nobody goes for the polite ones."""
SPREAD, APART = "spread", "apart"
"""Labels of pods that stand as evenly on nodes as they can, and of those of which a node has one at most."""
PART_SIZES: Final = {"whole": 4, "half-0": 2, "half-1": 2, "quarter-0": 1, "quarter-1": 1}


def device_class(name: str, driver: str) -> Manifest:
    """All devices of a driver, which pods can also ask for as an extended resource."""
    return builders.device_class(name, f'device.driver == "{driver}"', extendedResourceName=resource(name))


def resource(class_name: str) -> str:
    """The extended resource that a class stands for."""
    return f"example.com/{class_name}"


def priority_class(name: str) -> Manifest:
    """How important pods are, and whether others go for them."""
    policy = "Never" if name == "polite" else "PreemptLowerPriority"
    return manifest("scheduling.k8s.io/v1", "PriorityClass", name, value=PRIORITIES[name], preemptionPolicy=policy)


def _toleration(seconds: int | None) -> Manifest:
    return builders.toleration(BROKEN, seconds)


def _request(class_name: str, **more: Any) -> Manifest:
    return {"requests": [builders.request(deviceClassName=class_name, **more)]}


WISHES: Final[dict[str, Manifest]] = {
    "gpu": _request("gpu"),
    "two": _request("gpu", count=2),
    "tolerant": _request("gpu", tolerations=[_toleration(None)]),
    "patient": _request("gpu", tolerations=[_toleration(20)]),
    "part": _request("parts"),
    "half": _request("parts", selectors=[{"cel": {"expression": f'device.attributes["{PARTS}"].units == 2'}}]),
    "link": _request("link", capacity={"requests": {"bandwidth": "4"}}),
}
"""What claims ask for, by the name of the template."""


def template(wish: str) -> Manifest:
    """A template of claims."""
    return manifest(V1, "ResourceClaimTemplate", wish, spec={"spec": {"devices": WISHES[wish]}})


def claim(name: str, wish: str) -> Manifest:
    """A claim that pods share."""
    return manifest(V1, "ResourceClaim", name, spec={"devices": WISHES[wish]})


def node(name: str) -> Manifest:
    """A node that the simulated kubelets run."""
    labels = {SIMULATED: "true", "kubernetes.io/hostname": name}
    return builders.node(name, labels=labels, resources={"cpu": "16", "memory": "64Gi", "pods": "110"})


def slices(node_name: str, generation: int = 1) -> list[Manifest]:
    """Everything that the drivers of a node publish: GPUs, parts of one that share its memory, and a link to share."""
    gpus = [{"name": f"gpu-{number}"} for number in range(GPUS_PER_NODE)]
    parts = [
        {
            "name": name,
            "attributes": {"units": {"int": units}},
            "consumesCounters": [{"counterSet": "card", "counters": {"memory": {"value": str(units)}}}],
        }
        for name, units in PART_SIZES.items()
    ]
    card = [{"name": "card", "counters": {"memory": {"value": "4"}}}]
    link = {"name": "link-0", "allowMultipleAllocations": True, "capacity": {"bandwidth": {"value": "10"}}}
    return [
        _slice(node_name, "gpu", generation, 1, devices=gpus),
        _slice(node_name, "parts", generation, 2, devices=parts),
        _slice(node_name, "parts", generation, 2, "card", sharedCounters=card),
        _slice(node_name, "link", generation, 1, devices=[link]),
    ]


def _slice(node_name: str, what: str, generation: int, count: int, suffix: str = "", **content: Any) -> Manifest:
    about: Manifest = {"driver": DRIVERS[what], "pool": node_name, "generation": generation, "count": count}
    return builders.resource_slice(f"{node_name}-{what}{suffix}", nodeName=node_name, **about, **content)


def pod_spec(wish: str, claim_name: str, patience: int | None) -> Manifest:
    """A pod with a claim of its own from a template, or with one that it shares. `patience`: with tainted nodes.

    A wish for `EXTENDED` and a number: that many GPUs, as an extended resource.
    """
    amounts = {resource("gpu"): wish.removeprefix(EXTENDED)} if wish.startswith(EXTENDED) and not claim_name else {}
    resources = {"requests": {"cpu": "100m", **amounts}, "limits": amounts}
    spec: Manifest = {
        "containers": [{"name": "main", "image": "busybox", "resources": resources}],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 5,
    }
    if claim_name:
        spec["resourceClaims"] = [{"name": "c", "resourceClaimName": claim_name}]
    elif wish and not amounts:
        spec["resourceClaims"] = [{"name": "c", "resourceClaimTemplateName": wish}]
    if patience is not None:
        spec["tolerations"] = [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": patience}]
    return spec


def company(app: str) -> Manifest:
    """What a pod with a label says about where others with it stand."""
    about = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}
    if app == SPREAD:
        return {"topologySpreadConstraints": [{**about, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]}
    if app == APART:
        return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [about]}}}
    return {}


def priority(name: str) -> Manifest:
    """How important a pod or a gang is; it does not say if the name is empty."""
    return {"priorityClassName": name} if name else {}


def pod(name: str, spec: Manifest, run_seconds: int | None, app: str = "single") -> Manifest:
    """A pod that ends by itself after so many seconds, if at all."""
    annotations = {} if run_seconds is None else {names.RUN_SECONDS: str(run_seconds)}
    return manifest("v1", "Pod", name, meta={"annotations": annotations, "labels": {"app": app}}, spec=spec)


def gang(name: str, size: int, run_seconds: int | None, importance: str, *, whole: bool) -> list[Manifest]:
    """A group and its pods, with a GPU each, that run together or not at all; whether they leave together, too.

    Broken devices drive off no pods of a gang that leaves as a whole: only others that are more important do.
    """
    policy = {"gang": {"minCount": size}}
    spec = {"schedulingPolicy": policy, "disruptionMode": {"all" if whole else "single": {}}, **priority(importance)}
    member = {
        **pod_spec("tolerant" if whole else "gpu", "", 30),
        **priority(importance),
        "schedulingGroup": {"podGroupName": name},
    }
    return [
        manifest("scheduling.k8s.io/v1beta1", "PodGroup", name, spec=spec),
        *(pod(f"{name}-{number}", member, run_seconds) for number in range(size)),
    ]


def replica_set(replicas: int) -> Manifest:
    """Pods that are replaced when they go, each with a device."""
    template_ = {"metadata": {"labels": {"app": "web"}}, "spec": {**pod_spec("gpu", "", 30), "restartPolicy": "Always"}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template_}
    return manifest("apps/v1", "ReplicaSet", "web", spec=spec)


def rule(name: str, effect: str, rate: int | None, **selector: str) -> Manifest:
    """A rule that taints devices that are named."""
    return builders.taint_rule(name, dict(selector), builders.taint(BROKEN, effect, evictionsPerSecond=rate))
