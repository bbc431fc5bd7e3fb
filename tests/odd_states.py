"""Random clusters in odd states, and what happens in them: pods come, and what is there changes under those that wait.

More than in `verdict_states`: pools of several nodes that share counters, several generations, two drivers with one
pool name, devices that bind to nodes, capacity by policies, admin access, constraints of all kinds, claims that are
shared or being deleted, holders that nobody uses, volumes, gangs, other schedulers, nodes that come, go and are
cordoned.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

import builders
from allocation_strategies import DRIVERS, EXPRESSIONS, POLICIES, TAINTS, TOLERATIONS
from builders import Manifest
from verdict_states import Newcomer, in_any_order

RACK = "rack"
RACKS = ("r1", "r2")
GONE = "node-gone"
"""A node that slices mention and that is not there."""
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


class Change(NamedTuple):
    """Something else that happens: an object comes (or comes again, changed), is patched, or goes."""

    what: Manifest
    patch: Manifest | None = None
    goes: bool = False


class OddState(NamedTuple):
    """What is there, and what happens then."""

    objects: tuple[Manifest, ...]
    steps: tuple[Newcomer | Change, ...]


def draw_odd_state(number: int) -> OddState:
    """The state of a number."""
    return Drawing(number).draw()


class Drawing:
    """What is drawn one after the other."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.chance = Random(number)
        self.nodes = [f"node-{index}" for index in range(self.chance.randint(1, 4))]
        self.slices: list[Manifest] = []
        self.claims: list[Manifest] = []
        self.volume_claims: list[str] = []
        self.gang = self.one_in(4)

    def one_in(self, many: float) -> bool:
        return self.chance.random() < 1 / many

    def draw(self) -> OddState:
        objects = in_any_order(self.number, [self._node(name) for name in self.nodes])
        objects += self._classes()
        for number in range(self.chance.randint(1, 3)):
            self.slices += self._pool(number)
        objects += self.slices
        objects += self._rules()
        objects += self._volumes()
        objects += [_priority_class("high", 10), _priority_class("patient", 5, preemptionPolicy="Never")]
        if self.gang:
            policy = {"gang": {"minCount": self.chance.choice((2, 2, 3))}}
            objects.append(
                builders.manifest(
                    "scheduling.k8s.io/v1beta1", "PodGroup", "gang", spec={"schedulingPolicy": policy, "priority": 0}
                )
            )
        objects += self._holders()
        steps: list[Newcomer | Change] = []
        for index in range(self.chance.randint(2, 6)):
            steps.append(self._newcomer(index))
            if self.one_in(2.5):
                steps.append(self._change())
        return OddState(tuple(objects), tuple(steps))

    # What is there

    def _node(self, name: str) -> Manifest:
        chance = self.chance
        labels = {"kubernetes.io/hostname": name}
        if not self.one_in(8):
            labels[RACK] = chance.choice(RACKS)
        spec: Manifest = {}
        ready = "True"
        if self.one_in(10):
            spec["taints"], ready = [NOT_READY], "False"
        elif self.one_in(8):
            spec["taints"] = [{"key": "team", "value": "x", "effect": chance.choice(("NoSchedule", "NoExecute"))}]
        if self.one_in(12):
            spec["unschedulable"] = True
        amounts = {"cpu": chance.choice(("1", "2", "8")), "memory": "8Gi", "pods": chance.choice(("1", "3", "20"))}
        status = {"conditions": [{"type": "Ready", "status": ready}]}
        return builders.node(name, labels=labels, resources=amounts, status=status, **spec)

    def _classes(self) -> Iterator[Manifest]:
        extended = {"extendedResourceName": "example.com/gpu"} if self.one_in(4) else {}
        yield builders.device_class("gpu", EXPRESSIONS[0], **extended)
        yield builders.device_class("any")

    def _pool(self, number: int) -> Iterator[Manifest]:
        """Slices of a pool, with counters for all of them, perhaps with an older or a half-published generation."""
        chance = self.chance
        driver = chance.choice(DRIVERS)
        pool = "same" if self.one_in(3) else f"p{number}"
        counters = self.one_in(3)
        generation = chance.choice((1, 1, 2))
        parts = chance.choice((1, 1, 2, 3))
        count = parts + counters + self.one_in(15)
        about: Manifest = {"driver": driver, "pool": pool, "generation": generation, "count": count}
        for part in range(parts):
            devices = [
                self._device(f"d{number}{part}{index}", counters) for index in range(chance.choice((0, 1, 2, 4)))
            ]
            yield self._slice(f"s{number}-{part}", devices, about)
        if counters:
            amounts = {"m": {"value": str(chance.randint(1, 6))}, "n": {"value": "3"}}
            sets = [{"name": "cs", "counters": amounts}]
            yield builders.resource_slice(f"s{number}-counters", sharedCounters=sets, allNodes=True, **about)
        if self.one_in(6):
            stale = {**about, "generation": generation - 1 or 9, "count": chance.choice((1, 2))}
            devices = [self._device(f"d{number}0{index}", counters=False) for index in range(2)]
            yield self._slice(f"s{number}-other", devices, stale)

    def _slice(self, name: str, devices: list[Manifest], about: Manifest) -> Manifest:
        kind = self.chance.choice(("name", "name", "name", "all", "selector", "device"))
        if kind == "device":
            listed = [{**device, **self._place()} for device in devices]
            return builders.resource_slice(name, *listed, perDeviceNodeSelection=True, **about)
        place = {"name": self._node_name, "all": _everywhere, "selector": self._selector}[kind]()
        return builders.resource_slice(name, *devices, **about, **place)

    def _place(self) -> Manifest:
        return self.chance.choice((self._node_name, self._node_name, _everywhere, self._selector))()

    def _node_name(self) -> Manifest:
        return {"nodeName": GONE if self.one_in(12) else self.chance.choice(self.nodes)}

    def _selector(self) -> Manifest:
        need = [{"key": RACK, "operator": "In", "values": [self.chance.choice(RACKS)]}]
        return {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": need}]}}

    def _device(self, name: str, counters: bool) -> Manifest:
        chance = self.chance
        attributes: Manifest = {}
        if not self.one_in(8):
            attributes["a"] = chance.choice((0, 1, 1, 2))
        if not self.one_in(6):
            attributes["b"] = chance.choice("xy")
        more: Manifest = {}
        if self.one_in(8):
            more["taints"] = [chance.choice(TAINTS)]
        if self.one_in(3):
            policy = chance.choice(POLICIES)
            more["capacity"] = {"m": {"value": "5"} | ({"requestPolicy": policy} if policy else {})}
        if self.one_in(4):
            more["allowMultipleAllocations"] = True
        if counters and not self.one_in(5):
            amounts = {"m": {"value": str(chance.randint(0, 3))}}
            if self.one_in(3):
                amounts["n"] = {"value": str(chance.randint(1, 2))}
            more["consumesCounters"] = [{"counterSet": "cs", "counters": amounts}]
        if self.one_in(10):
            more["bindsToNode"] = True
        if not more.get("allowMultipleAllocations") and "capacity" in more:
            more["capacity"]["m"].pop("requestPolicy", None)
        return builders.device(name, attributes, **more)

    def _rules(self) -> Iterator[Manifest]:
        for number in range(self.chance.choice((0, 0, 1, 2))):
            yield self._rule(f"rule-{number}")
        if self.one_in(5):
            yield self._patch()

    def _rule(self, name: str) -> Manifest:
        selectors: tuple[Manifest, ...] = (
            {"driver": self.chance.choice(DRIVERS)},
            {"pool": "same"},
            {"driver": DRIVERS[0], "pool": "p0"},
            {"pool": "p0", "device": "d000"},
            {"deviceClassName": "gpu"},
            {"selectors": builders.cel(self.chance.choice(EXPRESSIONS[:4]))},
        )
        effect = self.chance.choice(("None", "NoSchedule", "NoSchedule", "NoExecute"))
        return builders.taint_rule(name, self.chance.choice(selectors), builders.taint("k", effect, value="v"))

    def _patch(self) -> Manifest:
        value: Manifest = self.chance.choice(({"int": 1}, {"int": 2}, {"null": {}}))
        devices: Manifest = {"filter": {"driver": DRIVERS[0]}, "attributes": {f"{DRIVERS[0]}/a": value}}
        if self.one_in(2):
            devices["capacity"] = {f"{DRIVERS[0]}/m": {"value": self.chance.choice(("2", "8"))}}
        return builders.manifest(builders.V1ALPHA3, "ResourceSlicePatch", "patch", spec={"devices": devices})

    def _volumes(self) -> Iterator[Manifest]:
        if not self.one_in(4):
            return
        mode = {"provisioner": "example.com/p", "volumeBindingMode": "Immediate"}  # nobody here makes volumes
        yield builders.manifest("storage.k8s.io/v1", "StorageClass", "fast", **mode)
        for name in ("loose", "tied"):
            self.volume_claims.append(name)
            spec: Manifest = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            spec["storageClassName"] = "fast"
            status: Manifest = {"phase": "Pending"}
            if name == "tied":
                spec["volumeName"], status["phase"] = "disk", "Bound"
            meta = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}} if name == "tied" else {}
            yield builders.manifest("v1", "PersistentVolumeClaim", name, meta=meta, spec=spec, status=status)
        need = [{"key": RACK, "operator": "In", "values": [self.chance.choice(RACKS)]}]
        disk = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "hostPath": {"path": "/disk"},
            "claimRef": {"namespace": "default", "name": "tied"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": need}]}},
        }
        yield builders.manifest("v1", "PersistentVolume", "disk", spec=disk, status={"phase": "Bound"})

    def _holders(self) -> Iterator[Manifest]:
        """Claims that have devices, and that nobody uses; some of devices that are no longer published."""
        for one in self.slices:
            spec = one["spec"]
            for device in spec.get("devices", ()):
                if not self.one_in(8):
                    continue
                result: Manifest = {"request": "r", "driver": spec["driver"], "pool": spec["pool"]["name"]}
                result["device"] = device["name"] if not self.one_in(10) else "lost"
                if device.get("allowMultipleAllocations"):
                    result["shareID"] = "11111111-2222-4333-8444-555555555555"
                    if "capacity" in device:
                        result["consumedCapacity"] = {"m": str(self.chance.randint(1, 4))}
                if self.one_in(6):
                    result["adminAccess"] = True
                status: Manifest = {"allocation": {"devices": {"results": [result]}}}
                where = device.get("nodeName") or spec.get("nodeName")
                if where:
                    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [where]}]}
                    status["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [term]}
                admin = {"adminAccess": True} if result.get("adminAccess") else {}
                held = builders.claim(
                    f"held-{device['name']}-{one['metadata']['name']}",
                    builders.request("r", deviceClassName="any", allocationMode="ExactCount", count=1, **admin),
                    status=status,
                )
                self.claims.append(held)
                yield held

    # What happens

    def _newcomer(self, number: int) -> Newcomer:
        chance = self.chance
        claims = [self._claim(f"c{number}-{index}") for index in range(chance.choice((0, 1, 1, 1, 2)))]
        used = [one["metadata"]["name"] for one in claims]
        if self.claims and self.one_in(5):
            used.append(chance.choice(self.claims)["metadata"]["name"])
        self.claims += claims
        spec: Manifest = {}
        if self.one_in(8):
            spec["nodeSelector"] = {RACK: chance.choice(RACKS)}
        if self.one_in(6):
            spec["tolerations"] = [{"key": "team", "operator": "Exists"}]
        if self.one_in(5):
            spec["priorityClassName"] = chance.choice(("high", "high", "patient"))
        if self.one_in(20):
            spec["schedulingGates"] = [{"name": "example.com/wait"}]
        if self.one_in(20):
            spec["schedulerName"] = "another"
        if self.volume_claims and self.one_in(3):
            name = chance.choice((*self.volume_claims, "missing"))
            spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]
        if self.gang and self.one_in(2) and not spec.keys() & {"priorityClassName", "schedulerName"}:
            spec["schedulingGroup"] = {"podGroupName": "gang"}
        if self.one_in(7):
            amounts = {"example.com/gpu": str(chance.choice((1, 1, 2)))}
            spec["containers"] = [builders.container(resources={"requests": amounts, "limits": amounts})]
        elif self.one_in(10):
            spec["containers"] = [builders.container(ports=[{"containerPort": 80, "hostPort": 80}])]
        uses = [builders.pod_claim(name, claim=name) for name in dict.fromkeys(used)]
        cpu = chance.choice(("", "", "500m", "1", "3"))
        return Newcomer(builders.pod(f"pod-{number}", cpu=cpu, claims=uses, **spec), tuple(claims))

    def _claim(self, name: str) -> Manifest:
        requests = [self._request(f"r{index}") for index in range(self.chance.choice((1, 1, 2)))]
        more: Manifest = {}
        if self.one_in(3):
            kind = self.chance.choice(("matchAttribute", "matchAttribute", "distinctAttribute"))
            constraint: Manifest = {kind: f"{self.chance.choice(DRIVERS)}/{self.chance.choice('ab')}"}
            if self.one_in(2):
                constraint["requests"] = [self.chance.choice(requests)["name"]]
            more["constraints"] = [constraint]
        return builders.claim(name, *requests, **more)

    def _request(self, name: str) -> Manifest:
        if self.one_in(5):
            options = [{"name": f"s{index}", **self._asked()} for index in range(self.chance.choice((1, 2, 3)))]
            return {"name": name, "firstAvailable": options}
        exactly = self._asked()
        if self.one_in(10):
            exactly["adminAccess"] = True
        return {"name": name, "exactly": exactly}

    def _asked(self) -> Manifest:
        chance = self.chance
        wanted: dict[str, Any] = {"deviceClassName": chance.choice(("gpu", "any", "any"))}
        if self.one_in(8):
            wanted["allocationMode"] = "All"
        else:
            wanted |= {"allocationMode": "ExactCount", "count": chance.choice((1, 1, 1, 2, 3))}
        if self.one_in(4):
            wanted["selectors"] = builders.cel(chance.choice(EXPRESSIONS[:4]))
        if self.one_in(5):
            wanted["tolerations"] = [chance.choice(TOLERATIONS)]
        if self.one_in(5):
            wanted["capacity"] = {"requests": {"m": str(chance.randint(1, 6))}}
        return wanted

    def _change(self) -> Change:
        chance = self.chance
        changes = [self._node_changes, self._node_changes, self._slice_changes, self._rule_changes]
        if self.claims:
            changes.append(self._claim_goes)
        return chance.choice(changes)()

    def _node_changes(self) -> Change:
        node = builders.manifest("v1", "Node", self.chance.choice(self.nodes))
        kind = self.chance.choice(("cordon", "uncordon", "label", "taint", "untaint", "goes", "comes"))
        if kind == "goes":
            return Change(node, goes=True)
        if kind == "comes":
            return Change(self._node(node["metadata"]["name"]))
        patches: dict[str, Manifest] = {
            "cordon": {"spec": {"unschedulable": True}},
            "uncordon": {"spec": {"unschedulable": None}},
            "label": {"metadata": {"labels": {RACK: self.chance.choice(RACKS)}}},
            "taint": {"spec": {"taints": [NOT_READY]}},
            "untaint": {"spec": {"taints": None}},
        }
        return Change(node, patch=patches[kind])

    def _slice_changes(self) -> Change:
        one = self.chance.choice(self.slices)
        kind = self.chance.choice(("goes", "comes", "generation", "devices"))
        if kind == "goes":
            return Change(one, goes=True)
        if kind == "comes":
            return Change(one)
        spec = one["spec"]
        if kind == "generation":
            about = {**spec["pool"], "generation": spec["pool"]["generation"] + 1, "resourceSliceCount": 1}
            return Change(one, patch={"spec": {"pool": about}})
        if not spec.get("devices") or spec.get("perDeviceNodeSelection"):
            return Change(one)
        return Change(one, patch={"spec": {"devices": [self._device(d["name"], False) for d in spec["devices"]]}})

    def _rule_changes(self) -> Change:
        rule = self._rule(f"rule-{self.chance.randint(0, 1)}")
        return Change(rule, goes=self.one_in(2))

    def _claim_goes(self) -> Change:
        return Change(self.chance.choice(self.claims), goes=True)


def _everywhere() -> Manifest:
    return {"allNodes": True}


def _priority_class(name: str, value: int, **more: Any) -> Manifest:
    return builders.manifest("scheduling.k8s.io/v1", "PriorityClass", name, "", value=value, **more)
