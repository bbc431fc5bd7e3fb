"""Judges an allocation from the manifests alone, independently of tracker and allocator.

`find_faults` lists everything that is wrong with an allocation: what was asked for and not given, and devices that may
not be given out. It does not know which of several valid allocations is expected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dray import cel
from dray.api import codec, node_match
from dray.api.node_selector import NodeSelector
from dray.api.quantity import Quantity

Json = Mapping[str, Any]
DeviceKey = tuple[str, str, str]


class Checker:
    """A cluster, a node and the allocations made there."""

    def __init__(self, objects: Sequence[Json], node: str, allocations: Mapping[str, Json]) -> None:
        self.node = node
        self.labels = next(
            o["metadata"].get("labels", {}) for o in objects if o["kind"] == "Node" and o["metadata"]["name"] == node
        )
        self.classes = {o["metadata"]["name"]: o for o in objects if o["kind"] == "DeviceClass"}
        claims = [o for o in objects if o["kind"] == "ResourceClaim"]
        self.claims = {f"{c['metadata'].get('namespace', 'default')}/{c['metadata']['name']}": c for c in claims}
        self.rules = [o["spec"] for o in objects if o["kind"] == "DeviceTaintRule"]
        self.allocations = allocations
        self.devices: dict[DeviceKey, tuple[Json, Json]] = {}
        self.counters: dict[tuple[str, str, str, str], int] = {}
        self.slices = _newest([o["spec"] for o in objects if o["kind"] == "ResourceSlice"], node)
        for spec in self.slices:
            for device in spec.get("devices", ()):
                if self._reaches(spec, device):
                    self.devices[spec["driver"], spec["pool"]["name"], device["name"]] = (spec, device)
            for counter_set in spec.get("sharedCounters", ()):
                for name, counter in counter_set["counters"].items():
                    key = (spec["driver"], spec["pool"]["name"], counter_set["name"], name)
                    self.counters[key] = _nanos(counter["value"])

    def find_faults(self) -> list[str]:
        """All that is wrong, in words."""
        return [
            *(fault for name in self.allocations for fault in self._check_claim(name)),
            *self._check_sharing(),
            *self._check_counters(),
        ]

    def _reaches(self, spec: Json, device: Json) -> bool:
        place = device if spec.get("perDeviceNodeSelection") else spec
        if place.get("nodeName"):
            return bool(place["nodeName"] == self.node)
        if place.get("allNodes"):
            return True
        selector = place.get("nodeSelector")
        return selector is not None and node_match.matches(
            codec.decode(codec.encode(selector), NodeSelector), self.node, self.labels
        )

    # One claim

    def _check_claim(self, name: str) -> Iterator[str]:
        devices = self.claims[name]["spec"].get("devices", {})
        results = self.allocations[name].get("devices", {}).get("results", [])
        if len(results) > 32:
            yield f"{name}: {len(results)} devices"
        chosen: list[tuple[str, Json]] = []
        for request in devices.get("requests", ()):
            named = [r for r in results if r["request"].split("/")[0] == request["name"]]
            alternatives = _alternatives(request)
            used = {r["request"] for r in named}
            if len(used) != 1 or not used <= set(alternatives):
                yield f"{name}, {request['name']}: results for {sorted(used)}"
                continue
            full_name = used.pop()
            chosen.append((full_name, alternatives[full_name]))
            yield from self._check_request(f"{name}, {full_name}", alternatives[full_name], named)
        yield from self._check_constraints(name, devices.get("constraints", ()), results)
        yield from self._check_config(name, chosen)
        yield from self._check_node_selector(name, results)

    def _check_request(self, place: str, asked: Json, results: Sequence[Json]) -> Iterator[str]:
        keys = [_key(result) for result in results]
        if len(set(keys)) != len(keys):
            yield f"{place}: a device twice"
        if asked.get("allocationMode") == "All":
            wanted = {key for key in self.devices if self._matches(asked, key) and self._has_room(asked, key)}
            if set(keys) != wanted or not wanted:
                yield f"{place}: {sorted(keys)} instead of all of {sorted(wanted)}"
        elif len(keys) != asked.get("count", 1):
            yield f"{place}: {len(keys)} devices"
        for result, key in zip(results, keys, strict=True):
            if key not in self.devices:
                yield f"{place}: {key} is not there, or not for this node"
            elif not self._matches(asked, key):
                yield f"{place}: {key} does not match"
            else:
                yield from self._check_result(place, asked, result, key)

    def _check_result(self, place: str, asked: Json, result: Json, key: DeviceKey) -> Iterator[str]:
        _, device = self.devices[key]
        for taint in self._taints(key):
            if taint["effect"] in ("NoSchedule", "NoExecute") and not _is_tolerated(taint, asked):
                yield f"{place}: {key} has the taint {taint}"
        if bool(result.get("adminAccess")) != bool(asked.get("adminAccess")):
            yield f"{place}: wrong adminAccess"
        if result.get("tolerations", []) != [_with_operator(t) for t in asked.get("tolerations", [])]:
            yield f"{place}: wrong tolerations"
        for name in ("bindingConditions", "bindingFailureConditions"):
            if result.get(name, []) != device.get(name, []):
                yield f"{place}: wrong {name}"
        if bool(device.get("allowMultipleAllocations")) != ("shareID" in result):
            yield f"{place}: wrong shareID"
        if "shareID" in result and set(result.get("consumedCapacity", {})) != set(device.get("capacity", {})):
            yield f"{place}: wrong consumedCapacity"
        for name, amount in asked.get("capacity", {}).get("requests", {}).items():
            got = result.get("consumedCapacity", {}).get(name)
            if "shareID" in result and (got is None or _nanos(got) < _nanos(amount)):
                yield f"{place}: {got} of {name} instead of {amount}"

    def _matches(self, asked: Json, key: DeviceKey) -> bool:
        selectors = [
            *self.classes[asked["deviceClassName"]].get("spec", {}).get("selectors", ()),
            *asked.get("selectors", ()),
        ]
        _, device = self.devices[key]
        return all(
            cel.compile(selector["cel"]["expression"], mode="stored").evaluate(device, driver=key[0])
            for selector in selectors
        )

    def _has_room(self, asked: Json, key: DeviceKey) -> bool:
        capacity = self.devices[key][1].get("capacity", {})
        requests = asked.get("capacity", {}).get("requests", {})
        return all(name in capacity and _nanos(v) <= _nanos(capacity[name]["value"]) for name, v in requests.items())

    def _taints(self, key: DeviceKey) -> list[Json]:
        driver, pool, name = key
        taints = list(self.devices[key][1].get("taints", ()))
        for rule in self.rules:
            selector = rule.get("deviceSelector")
            if selector is not None and all(
                selector.get(field, value) == value
                for field, value in (("driver", driver), ("pool", pool), ("device", name))
            ):
                taints.append(rule["taint"])
        return taints

    def _check_constraints(self, name: str, constraints: Sequence[Json], results: Sequence[Json]) -> Iterator[str]:
        for constraint in constraints:
            concerned = constraint.get("requests")
            sets = [
                self._values(_key(r), constraint.get("matchAttribute") or constraint["distinctAttribute"])
                for r in results
                if not concerned or r["request"] in concerned or r["request"].split("/")[0] in concerned
            ]
            if not all(sets):
                yield f"{name}: a device lacks the attribute of {constraint}"
            elif "matchAttribute" in constraint:
                if sets and not set.intersection(*sets):
                    yield f"{name}: no common value for {constraint}"
            elif sum(map(len, sets)) != len(set().union(*sets)):
                yield f"{name}: a value twice for {constraint}"

    def _values(self, key: DeviceKey, name: str) -> set[tuple[str, Any]]:
        domain, _, identifier = name.partition("/")
        attributes = self.devices[key][1].get("attributes", {}) if key in self.devices else {}
        attribute = attributes.get(name) or (attributes.get(identifier) if domain == key[0] else None) or {}
        return {
            (kind.removesuffix("s"), item)
            for kind, value in attribute.items()
            for item in (value if isinstance(value, list) else [value])
        }

    def _check_config(self, name: str, chosen: Sequence[tuple[str, Json]]) -> Iterator[str]:
        def covered(requests: Sequence[str]) -> list[str]:
            return [full for full, _ in chosen if full in requests or full.split("/")[0] in requests]

        expected = []
        for class_name in dict.fromkeys(asked["deviceClassName"] for _, asked in chosen):
            users = [full for full, asked in chosen if asked["deviceClassName"] == class_name]
            configs = self.classes[class_name].get("spec", {}).get("config", ())
            expected += [("FromClass", users, config["opaque"]) for config in configs]
        for config in self.claims[name]["spec"].get("devices", {}).get("config", ()):
            users = covered(config["requests"]) if config.get("requests") else [full for full, _ in chosen]
            if users or not config.get("requests"):
                expected.append(("FromClaim", users, config["opaque"]))
        got = [
            (c["source"], covered(c["requests"]) if c.get("requests") else [full for full, _ in chosen], c["opaque"])
            for c in self.allocations[name].get("devices", {}).get("config", ())
        ]
        if got != expected:
            yield f"{name}: config {got} instead of {expected}"

    def _check_node_selector(self, name: str, results: Sequence[Json]) -> Iterator[str]:
        places = []
        for result in results:
            if _key(result) in self.devices:
                spec, device = self.devices[_key(result)]
                places.append((device if spec.get("perDeviceNodeSelection") else spec, device))
        got = self.allocations[name].get("nodeSelector")
        if any(place.get("nodeName") or device.get("bindsToNode") for place, device in places):
            field = {"key": "metadata.name", "operator": "In", "values": [self.node]}
            if got != {"nodeSelectorTerms": [{"matchFields": [field]}]}:
                yield f"{name}: node selector {got} instead of the node"
            return
        wanted = {_frozen(r) for place, _ in places for r in _requirements(place.get("nodeSelector"))}
        if {_frozen(r) for r in _requirements(got)} != wanted or (got is not None) != bool(wanted):
            yield f"{name}: node selector {got}"

    # All claims together

    def _holders(self) -> Iterator[tuple[str, Json]]:
        for name, claim in self.claims.items():
            allocation = claim.get("status", {}).get("allocation")
            for result in (allocation or {}).get("devices", {}).get("results", ()):
                if not result.get("adminAccess"):
                    yield name, result

    def _check_sharing(self) -> Iterator[str]:
        new = [(name, r) for name, a in self.allocations.items() for r in a.get("devices", {}).get("results", ())]
        owners = Counter(_key(r) for _, r in new if "shareID" not in r and not r.get("adminAccess"))
        owners.update(_key(r) for _, r in self._holders() if "shareID" not in r)
        wanted = {_key(r) for _, r in new if not r.get("adminAccess")}
        yield from (
            f"{key} is given away {count} times" for key, count in owners.items() if count > 1 and key in wanted
        )
        consumed: Counter[tuple[DeviceKey, str]] = Counter()
        for _, result in (*new, *self._holders()):
            if "shareID" in result:
                for name, amount in result.get("consumedCapacity", {}).items():
                    consumed[_key(result), name] += _nanos(amount)
        for key in {_key(r) for _, r in new if "shareID" in r} & set(self.devices):
            for name, entry in self.devices[key][1].get("capacity", {}).items():
                if consumed[key, name] > _nanos(entry["value"]):
                    yield f"{key}: too much of {name} is given away"

    def _check_counters(self) -> Iterator[str]:
        new = {_key(r) for a in self.allocations.values() for r in a.get("devices", {}).get("results", ())}
        drawing = {key for key in new if key in self.devices and self.devices[key][1].get("consumesCounters")}
        held = {_key(r) for _, r in self._holders()}
        used: Counter[tuple[str, str, str, str]] = Counter()
        for spec in self.slices:
            for device in spec.get("devices", ()):
                key = (spec["driver"], spec["pool"]["name"], device["name"])
                if key not in new and key not in held:
                    continue
                for consumption in device.get("consumesCounters", ()):
                    for name, counter in consumption["counters"].items():
                        used[key[0], key[1], consumption["counterSet"], name] += _nanos(counter["value"])
        for counter_key, amount in used.items():
            if any(key[:2] == counter_key[:2] for key in drawing) and amount > self.counters.get(counter_key, 0):
                yield f"counter {counter_key} is overdrawn"


def _newest(specs: Sequence[Json], node: str) -> list[Json]:
    """The slices of pools that are complete at their highest generation: for the node itself, or for all."""
    kept: list[Json] = []
    for driver, name in {(spec["driver"], spec["pool"]["name"]) for spec in specs}:
        pool = [spec for spec in specs if (spec["driver"], spec["pool"]["name"]) == (driver, name)]
        in_sight = [spec for spec in pool if spec.get("nodeName", node) == node]
        newest = max((spec["pool"]["generation"] for spec in in_sight), default=0)
        for found in (in_sight, pool):
            current = [spec for spec in found if spec["pool"]["generation"] == newest]
            if current and all(spec["pool"]["resourceSliceCount"] == len(current) for spec in current):
                kept += current
                break
    return kept


def _alternatives(request: Json) -> dict[str, Json]:
    if "exactly" in request:
        return {request["name"]: request["exactly"]}
    return {f"{request['name']}/{sub['name']}": sub for sub in request["firstAvailable"]}


def _is_tolerated(taint: Json, asked: Json) -> bool:
    return any(
        toleration.get("effect") in (None, "", taint["effect"])
        and toleration.get("key") in (None, "", taint["key"])
        and (toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", ""))
        for toleration in asked.get("tolerations", ())
    )


def _with_operator(toleration: Json) -> Json:
    return {"operator": "Equal", **toleration}


def _requirements(selector: Json | None) -> list[Json]:
    terms = selector["nodeSelectorTerms"] if selector else []
    return [r for term in terms for kind in ("matchFields", "matchExpressions") for r in term.get(kind, ())]


def _frozen(requirement: Json) -> tuple[str, str, frozenset[str]]:
    return requirement["key"], requirement["operator"], frozenset(requirement.get("values", ()))


def _key(result: Json) -> DeviceKey:
    return result["driver"], result["pool"], result["device"]


def _nanos(value: Any) -> int:
    return Quantity.from_json(value).nanos
