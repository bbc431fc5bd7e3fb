"""Small random clusters, as manifests, with everything that can make an allocation difficult."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

DRIVERS = ("gpu.example.com", "nic.acme.io")
NODES = ("node-1", "node-2")
EXPRESSIONS = (
    'device.driver == "gpu.example.com"',
    "device.attributes[device.driver].?a.orValue(0) == 1",
    'has(device.attributes["gpu.example.com"].b) && device.attributes["gpu.example.com"].b == "x"',
    'device.attributes["gpu.example.com"].b == "x"',  # fails where b is missing
    "device.driver + 1 == 2",  # does not compile
)
SAFE_EXPRESSIONS = 3
TAINTS: tuple[dict[str, Any], ...] = (
    {"key": "k", "effect": "NoSchedule"},
    {"key": "k", "value": "v", "effect": "NoExecute"},
    {"key": "note", "effect": "None"},
)
TOLERATIONS: tuple[dict[str, Any], ...] = (
    {"operator": "Exists"},
    {"key": "k", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "k", "operator": "Equal", "value": "v"},
)
POLICIES: tuple[dict[str, Any] | None, ...] = (
    None,
    {"default": "1"},
    {"default": "2", "validValues": ["1", "2", "4"]},
    {"default": "1", "validRange": {"min": "1", "step": "2", "max": "5"}},
)

Draw = st.DrawFn


def _chance(draw: Draw, percent: int) -> bool:
    return draw(st.integers(0, 99)) >= 100 - percent


@st.composite
def clusters(draw: Draw) -> list[dict[str, Any]]:
    """Nodes, classes, slices, and claims: `held-*` are allocated, `c*` are to be allocated."""
    objects: list[dict[str, Any]] = [
        {"kind": "Node", "metadata": {"name": NODES[0], "labels": {"rack": "r1"}}},
        {"kind": "Node", "metadata": {"name": NODES[1], "labels": {"rack": "r2"}}},
        {"kind": "DeviceClass", "metadata": {"name": "any"}, "spec": {}},
        {
            "kind": "DeviceClass",
            "metadata": {"name": "gpu"},
            "spec": {"selectors": [{"cel": {"expression": EXPRESSIONS[0]}}]},
        },
    ]
    slices = [s for number in range(draw(st.integers(1, 3))) for s in draw(pools(number))]
    objects += slices
    objects += draw(holders(slices))
    objects += [draw(claims(number)) for number in range(draw(st.integers(1, 3)))]
    return objects


@st.composite
def pools(draw: Draw, number: int) -> list[dict[str, Any]]:
    """The slices of one pool."""
    driver = draw(st.sampled_from(DRIVERS))
    with_counters = _chance(draw, 30)
    count = draw(st.integers(1, 2))
    pool: dict[str, Any] = {"name": f"p{number}", "generation": 1, "resourceSliceCount": count + with_counters}
    if _chance(draw, 4):
        pool["resourceSliceCount"] += 1
    slices = []
    for index in range(count):
        spec: dict[str, Any] = {"driver": driver, "pool": pool}
        access = draw(st.sampled_from(("local", "local", "local", "other", "all", "selector", "device")))
        if access == "local":
            spec["nodeName"] = NODES[0]
        elif access == "other":
            spec["nodeName"] = NODES[1]
        elif access == "all":
            spec["allNodes"] = True
        elif access == "selector":
            spec["nodeSelector"] = _rack(draw)
        else:
            spec["perDeviceNodeSelection"] = True
        spec["devices"] = [
            draw(devices(f"d{number}{index}{position}", with_counters, access == "device"))
            for position in range(draw(st.integers(0, 4)))
        ]
        slices.append({"kind": "ResourceSlice", "metadata": {"name": f"s{number}-{1 - index}"}, "spec": spec})
    if with_counters:
        spec = {"driver": driver, "pool": pool, "allNodes": True}
        spec["sharedCounters"] = [
            {"name": "cs", "counters": {"m": {"value": str(draw(st.integers(0, 6)))}, "n": {"value": "3"}}}
        ]
        slices.append({"kind": "ResourceSlice", "metadata": {"name": f"counters-{number}"}, "spec": spec})
    return slices


def _rack(draw: Draw) -> dict[str, Any]:
    rack = draw(st.sampled_from(("r1", "r2")))
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In", "values": [rack]}]}]}


@st.composite
def devices(draw: Draw, name: str, with_counters: bool, per_device: bool) -> dict[str, Any]:
    """One device."""
    device: dict[str, Any] = {"name": name, "attributes": {}}
    if _chance(draw, 85):
        device["attributes"]["a"] = draw(
            st.sampled_from(
                ({"int": 0}, {"int": 1}, {"int": 1}, {"int": 2}, {"ints": [0, 1]}, {"ints": [1, 2]}, {"string": "1"})
            )
        )
    if _chance(draw, 80):
        device["attributes"]["b"] = {"string": draw(st.sampled_from(("x", "y")))}
    if _chance(draw, 15):
        device["taints"] = draw(st.lists(st.sampled_from(TAINTS), min_size=1, max_size=2))
    if _chance(draw, 25):
        policy = draw(st.sampled_from(POLICIES))
        device["capacity"] = {"m": {"value": "5"} | ({"requestPolicy": policy} if policy else {})}
    if _chance(draw, 20):
        device["allowMultipleAllocations"] = True
    if with_counters and _chance(draw, 80):
        amounts = {"m": {"value": str(draw(st.integers(0, 4)))}}
        if _chance(draw, 40):
            amounts["n"] = {"value": str(draw(st.integers(1, 2)))}
        device["consumesCounters"] = [{"counterSet": "cs", "counters": amounts}]
    if _chance(draw, 5):
        device["bindingConditions"] = ["ready"]
        device["bindingFailureConditions"] = ["broken"]
    if per_device:
        device |= draw(
            st.sampled_from(
                ({"nodeName": NODES[0]}, {"nodeName": NODES[1]}, {"allNodes": True}, {"nodeSelector": _rack(draw)})
            )
        )
    return device


@st.composite
def holders(draw: Draw, slices: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Allocated claims on some of the devices."""
    found = []
    for entry in slices:
        for device in entry["spec"].get("devices", ()):
            if not _chance(draw, 15):
                continue
            spec = entry["spec"]
            result: dict[str, Any] = {
                "request": "r",
                "driver": spec["driver"],
                "pool": spec["pool"]["name"],
                "device": device["name"],
            }
            if device.get("allowMultipleAllocations") and _chance(draw, 80):
                result |= {"shareID": f"share-{device['name']}"}
                if "capacity" in device:
                    result["consumedCapacity"] = {"m": str(draw(st.integers(0, 3)))}
            if _chance(draw, 20):
                result["adminAccess"] = True
            found.append(
                {
                    "kind": "ResourceClaim",
                    "metadata": {"name": f"held-{device['name']}", "namespace": "default"},
                    "spec": {"devices": {"requests": []}},
                    "status": {"allocation": {"devices": {"results": [result]}}},
                }
            )
    return found


@st.composite
def claims(draw: Draw, number: int) -> dict[str, Any]:
    """A claim with one to three requests."""
    requests: list[dict[str, Any]] = []
    names = []
    for index in range(draw(st.integers(1, 3))):
        name = f"r{index}"
        names.append(name)
        if _chance(draw, 25):
            subs: list[dict[str, Any]] = [{"name": f"s{n}", **draw(asked())} for n in range(draw(st.integers(1, 3)))]
            names += [f"{name}/{sub['name']}" for sub in subs]
            requests.append({"name": name, "firstAvailable": subs})
        else:
            exactly = draw(asked())
            if _chance(draw, 12):
                exactly["adminAccess"] = True
            requests.append({"name": name, "exactly": exactly})
    devices: dict[str, Any] = {"requests": requests}
    if _chance(draw, 50):
        devices["constraints"] = []
        for _ in range(draw(st.integers(1, 2))):
            kind = draw(st.sampled_from(("matchAttribute", "matchAttribute", "distinctAttribute")))
            attribute = draw(st.sampled_from(("gpu.example.com/a", "gpu.example.com/b", "nic.acme.io/a")))
            constraint: dict[str, Any] = {kind: attribute}
            if _chance(draw, 50):
                constraint["requests"] = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
            devices["constraints"].append(constraint)
    metadata = {"name": f"c{number}", "namespace": "default"}
    return {"kind": "ResourceClaim", "metadata": metadata, "spec": {"devices": devices}}


@st.composite
def asked(draw: Draw) -> dict[str, Any]:
    """What a request or an alternative asks for."""
    wanted: dict[str, Any] = {"deviceClassName": draw(st.sampled_from(("any", "any", "gpu")))}
    if _chance(draw, 12):
        wanted["allocationMode"] = "All"
    else:
        wanted |= {"allocationMode": "ExactCount", "count": draw(st.sampled_from((1, 1, 1, 2, 2, 3, 20)))}
    if _chance(draw, 40):
        unsafe = _chance(draw, 10)
        last = len(EXPRESSIONS) if unsafe else SAFE_EXPRESSIONS
        wanted["selectors"] = [{"cel": {"expression": draw(st.sampled_from(EXPRESSIONS[:last]))}}]
    if _chance(draw, 20):
        wanted["tolerations"] = [draw(st.sampled_from(TOLERATIONS))]
    if _chance(draw, 12):
        wanted["capacity"] = {"requests": {"m": str(draw(st.integers(1, 5)))}}
    return wanted
