"""Random small clusters with everything that decides about pods, and pods that come to them one after the other.

A number is a state: drawn from it alone, so that one that shows a fault can be looked at again.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

import builders
from allocation_strategies import EXPRESSIONS, TAINTS, TOLERATIONS
from builders import Manifest

DRIVER = builders.DRIVER
ZONES = ("a", "b")
APPS = ("web", "db")
NODE_TAINTS = (
    {"key": "team", "value": "x", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
    {"key": "team", "value": "x", "effect": "PreferNoSchedule"},
)
EXTENDED = "example.com/gpu"


class Newcomer(NamedTuple):
    """A pod that comes, with claims that were made for it."""

    pod: Manifest
    claims: tuple[Manifest, ...]


class State(NamedTuple):
    """What is there, and who comes then."""

    objects: tuple[Manifest, ...]
    newcomers: tuple[Newcomer, ...]


def draw_state(number: int) -> State:
    """The state of a number."""
    chance = Random(number)
    nodes = [f"node-{index}" for index in range(chance.randint(1, 4))]
    objects = [*in_any_order(number, [_node(chance, name) for name in nodes])]
    objects += [*_classes(chance), *_slices(chance, nodes)]
    if chance.random() < 0.2:
        objects.append(_rule(chance))
    if chance.random() < 0.15:
        objects.append(builders.slice_patch("patch", {f"{DRIVER}/a": {"int": chance.randint(0, 2)}}, driver=DRIVER))
    objects.append(builders.manifest("scheduling.k8s.io/v1", "PriorityClass", "high", "", value=10))
    return State(tuple(objects), tuple(_newcomer(chance, index, nodes) for index in range(chance.randint(2, 6))))


def in_any_order(number: int, nodes: list[Manifest]) -> list[Manifest]:
    """Nodes do not join a cluster in the order of their names."""
    return Random(f"order of nodes {number}").sample(nodes, len(nodes))


def _node(chance: Random, name: str) -> Manifest:
    labels = {"kubernetes.io/hostname": name}
    if chance.random() < 0.9:
        labels["zone"] = chance.choice(ZONES)
    spec: Manifest = {}
    if chance.random() < 0.2:
        spec["taints"] = [chance.choice(NODE_TAINTS)]
    if chance.random() < 0.1:
        spec["unschedulable"] = True
    amounts = {"cpu": str(chance.choice((1, 2, 8))), "memory": "8Gi", "pods": str(chance.choice((1, 3, 20)))}
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    return builders.node(name, labels=labels, resources=amounts, status=ready, **spec)


def _classes(chance: Random) -> Iterator[Manifest]:
    extended = {"extendedResourceName": EXTENDED} if chance.random() < 0.3 else {}
    yield builders.device_class("gpu", EXPRESSIONS[0], **extended)
    yield builders.device_class("any")


def _slices(chance: Random, nodes: list[str]) -> Iterator[Manifest]:
    for number in range(chance.randint(1, 4)):
        place: Manifest = {"nodeName": chance.choice(nodes)}
        if chance.random() < 0.15:
            place = {"allNodes": True}
        elif chance.random() < 0.15:
            zone = [{"key": "zone", "operator": "In", "values": [chance.choice(ZONES)]}]
            place = {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": zone}]}}
        counters = chance.random() < 0.25
        devices = [_device(chance, f"d{number}{index}", counters=counters) for index in range(chance.randint(1, 4))]
        count = 1 + counters + (chance.random() < 0.05)
        about: Manifest = {"pool": f"p{number}", "count": count, **place}
        yield builders.resource_slice(f"s{number}", *devices, **about)
        if counters:
            amounts = {"m": {"value": str(chance.randint(1, 5))}}
            sets = [{"name": "cs", "counters": amounts}]
            yield builders.resource_slice(f"s{number}-counters", sharedCounters=sets, **about)


def _device(chance: Random, name: str, *, counters: bool) -> Manifest:
    attributes: Manifest = {}
    if chance.random() < 0.9:
        attributes["a"] = chance.choice((0, 1, 1, 2))
    if chance.random() < 0.85:
        attributes["b"] = chance.choice("xy")
    more: Manifest = {}
    if chance.random() < 0.15:
        more["taints"] = [chance.choice(TAINTS)]
    if chance.random() < 0.15:
        more |= {"allowMultipleAllocations": True, "capacity": {"m": {"value": "5"}}}
    if counters and chance.random() < 0.8:
        amounts = {"m": {"value": str(chance.randint(0, 3))}}
        more["consumesCounters"] = [{"counterSet": "cs", "counters": amounts}]
    return builders.device(name, attributes, **more)


def _rule(chance: Random) -> Manifest:
    selector = chance.choice(({"driver": DRIVER}, {"driver": DRIVER, "pool": "p0"}, {"pool": "p1", "device": "d10"}))
    return builders.taint_rule("rule", selector, builders.taint("k", "NoSchedule", value="v"))


def _newcomer(chance: Random, number: int, nodes: list[str]) -> Newcomer:
    claims = [_claim(chance, f"c{number}-{index}") for index in range(chance.choice((0, 1, 1, 1, 2)))]
    spec: Manifest = {}
    if chance.random() < 0.15:
        spec["nodeSelector"] = {"zone": chance.choice(ZONES)}
    if chance.random() < 0.1:
        names = [{"key": "metadata.name", "operator": "In", "values": [chance.choice(nodes)]}]
        terms = {"nodeSelectorTerms": [{"matchFields": names}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    elif chance.random() < 0.15:
        company = [{"topologyKey": chance.choice(("zone", "kubernetes.io/hostname")), "labelSelector": _apps(chance)}]
        kind = chance.choice(("podAffinity", "podAntiAffinity"))
        spec["affinity"] = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": company}}
    if chance.random() < 0.1:
        constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        spec["topologySpreadConstraints"] = [{**constraint, "labelSelector": _apps(chance)}]
    if chance.random() < 0.2:
        spec["tolerations"] = [{"key": "team", "operator": "Exists"}]
    if chance.random() < 0.2:
        spec["priorityClassName"] = "high"
    if chance.random() < 0.15:
        amounts = {EXTENDED: str(chance.choice((1, 1, 2)))}
        spec["containers"] = [builders.container(resources={"requests": amounts, "limits": amounts})]
    if chance.random() < 0.05:
        spec["schedulingGates"] = [{"name": "example.com/wait"}]
    if chance.random() < 0.1:
        spec["containers"] = [builders.container(ports=[{"containerPort": 80, "hostPort": 80}])]
    uses = [builders.pod_claim(one["metadata"]["name"], claim=one["metadata"]["name"]) for one in claims]
    meta = {"labels": {"app": chance.choice(APPS)}}
    cpu = chance.choice(("", "", "500m", "1", "3"))
    return Newcomer(builders.pod(f"pod-{number}", cpu=cpu, claims=uses, meta=meta, **spec), tuple(claims))


def _apps(chance: Random) -> Manifest:
    return {"matchLabels": {"app": chance.choice(APPS)}}


def _claim(chance: Random, name: str) -> Manifest:
    requests = [_request(chance, f"r{index}") for index in range(chance.choice((1, 1, 2)))]
    more: Manifest = {}
    if chance.random() < 0.2:
        more["constraints"] = [{"matchAttribute": f"{DRIVER}/{chance.choice('ab')}"}]
    return builders.claim(name, *requests, **more)


def _request(chance: Random, name: str) -> Manifest:
    if chance.random() < 0.15:
        options = [{"name": f"s{index}", **_asked(chance)} for index in range(2)]
        return {"name": name, "firstAvailable": options}
    return {"name": name, "exactly": _asked(chance)}


def _asked(chance: Random) -> Manifest:
    wanted: dict[str, Any] = {
        "deviceClassName": chance.choice(("gpu", "gpu", "any", "none" if chance.random() < 0.1 else "any"))
    }
    if chance.random() < 0.1:
        wanted["allocationMode"] = "All"
    else:
        wanted |= {"allocationMode": "ExactCount", "count": chance.choice((1, 1, 1, 2, 3))}
    if chance.random() < 0.3:
        wanted["selectors"] = builders.cel(chance.choice(EXPRESSIONS[:4]))  # the fourth fails where b is missing
    if chance.random() < 0.2:
        wanted["tolerations"] = [chance.choice(TOLERATIONS)]
    return wanted
