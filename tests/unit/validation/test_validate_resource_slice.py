"""The rules for ResourceSlices."""

from __future__ import annotations

from typing import Any

import pytest

import builders
from dray import validation
from dray.api.resource.slice import SHARED_CAPACITY_PER_SLICE


def a_slice(**spec: Any) -> dict[str, Any]:
    pool = spec.pop("pool", None)
    made = builders.resource_slice("slice-1", **{"pool": "node-1", "nodeName": "node-1", **spec})
    return made if pool is None else {**made, "spec": {**made["spec"], "pool": pool}}


def with_device(**content: Any) -> dict[str, Any]:
    return a_slice(devices=[{"name": "gpu-0", **content}])


TAINT = {"key": "gpu.example.com/broken", "effect": "NoExecute"}


@pytest.mark.req("4381-16", "4381-19", "4381-249", "5055-05")
def test_a_slice_without_devices_is_valid(verdict: Any) -> None:
    assert verdict(a_slice()) == set()


DRIVERS = [
    ("gpu.example.com", None),
    ("GPU.example.com", None),  # SVS-38: upper case passes, with a warning
    ("a" * 63, None),
    ("a" * 64, "TooLong"),
    ("", "Required"),
    ("gpu_example", "Invalid"),
    ("-x.example.com", "Invalid"),
]


@pytest.mark.req("4381-05", "4381-06", "SVS-38")
@pytest.mark.parametrize(("driver", "reason"), DRIVERS)
def test_driver_names(verdict: Any, edit: Any, driver: str, reason: str | None) -> None:
    expected = set() if reason is None else {(reason, "spec.driver")}
    manifest = edit(a_slice(), {"spec.driver": driver})
    assert verdict(manifest) == expected
    warnings = validation.warnings(validation.documents.read(manifest)[2])
    assert [each.split(":")[0] for each in warnings] == ["spec.driver"] * (driver != driver.lower())


POOLS = [
    ({"name": "a.b/c.d"}, set()),
    ({"name": "a//b"}, {("Invalid", "spec.pool.name")}),
    ({"name": "Upper"}, {("Invalid", "spec.pool.name")}),
    ({"name": ""}, {("Required", "spec.pool.name")}),
    ({"name": f"{'a' * 63}.{'b' * 63}.{'c' * 63}.{'d' * 61}"}, set()),
    (
        {"name": f"{'a' * 63}.{'b' * 63}.{'c' * 63}.{'d' * 63}"},
        {("TooLong", "spec.pool.name"), ("Invalid", "spec.pool.name")},
    ),
    ({"resourceSliceCount": 0}, {("Invalid", "spec.pool.resourceSliceCount")}),
    ({"resourceSliceCount": -1}, {("Invalid", "spec.pool.resourceSliceCount")}),
    ({"generation": 0}, set()),
    ({"generation": -1}, {("Invalid", "spec.pool.generation")}),
]


@pytest.mark.req("4381-07", "4381-08", "4381-09", "4381-10", "SVS-37")
@pytest.mark.parametrize(("pool", "expected"), POOLS)
def test_pools(verdict: Any, pool: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    whole = {"name": "node-1", "generation": 1, "resourceSliceCount": 1, **pool}
    assert verdict(a_slice(pool=whole)) == expected


@pytest.mark.req("4381-07")
def test_a_slice_without_a_pool(verdict: Any, edit: Any) -> None:
    missing = {("Required", "spec.pool.name"), ("Invalid", "spec.pool.resourceSliceCount")}
    assert verdict(edit(a_slice(), {"spec.pool": None})) == missing


def test_a_missing_pool_lacks_its_parts(verdict: Any, edit: Any) -> None:
    found = verdict(edit(a_slice(), {"spec.pool": None}))
    assert found == {("Required", "spec.pool.name"), ("Invalid", "spec.pool.resourceSliceCount")}


TERM = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
NODE_SELECTIONS = [
    ({}, {("Required", "spec")}),
    ({"nodeName": "n"}, set()),
    ({"allNodes": True}, set()),
    ({"perDeviceNodeSelection": True}, set()),
    ({"nodeSelector": {"nodeSelectorTerms": [TERM]}}, set()),
    ({"nodeName": "n", "allNodes": True}, {("Invalid", "spec")}),
    ({"nodeName": "", "allNodes": True}, {("Invalid", "spec.nodeName")}),
    ({"nodeName": "Upper"}, {("Invalid", "spec.nodeName")}),
    ({"allNodes": False}, {("Invalid", "spec.allNodes"), ("Required", "spec")}),
    ({"perDeviceNodeSelection": False, "nodeName": "n"}, {("Invalid", "spec.perDeviceNodeSelection")}),
    (
        {"nodeSelector": {"nodeSelectorTerms": []}},
        {
            ("Required", "spec.nodeSelector.nodeSelectorTerms"),
            ("Invalid", "spec.nodeSelector.nodeSelectorTerms"),
        },
    ),
    ({"nodeSelector": {"nodeSelectorTerms": [TERM, TERM]}}, {("Invalid", "spec.nodeSelector.nodeSelectorTerms")}),
]


@pytest.mark.req("4381-11", "4381-12", "4381-13", "4381-14", "SVS-35")
@pytest.mark.parametrize(("selection", "expected"), NODE_SELECTIONS)
def test_node_selection(verdict: Any, edit: Any, selection: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    obj = edit(a_slice(), {"spec.nodeName": None})
    obj["spec"].update(selection)
    assert verdict(obj) == expected


REQUIREMENTS = [
    ("matchExpressions", {"key": "zone", "operator": "In", "values": []}, {("Required", "values")}),
    ("matchExpressions", {"key": "zone", "operator": "Exists", "values": ["a"]}, {("Forbidden", "values")}),
    ("matchExpressions", {"key": "zone", "operator": "Gt", "values": ["1", "2"]}, {("Required", "values")}),
    ("matchExpressions", {"key": "a b", "operator": "Exists"}, {("Invalid", "key")}),
    ("matchExpressions", {"key": "zone", "operator": "Has"}, {("Invalid", "operator")}),
    ("matchExpressions", {"key": "zone", "operator": "In", "values": ["a b"]}, {("Invalid", "values[0]")}),
    ("matchFields", {"key": "metadata.name", "operator": "In", "values": ["n1"]}, set()),
    ("matchFields", {"key": "metadata.name", "operator": "In", "values": ["n1", "n2"]}, {("Required", "values")}),
    ("matchFields", {"key": "spec.x", "operator": "In", "values": ["n1"]}, {("Invalid", "key")}),
    ("matchFields", {"key": "metadata.name", "operator": "Exists"}, {("Invalid", "operator")}),
]


@pytest.mark.parametrize(("field", "requirement", "expected"), REQUIREMENTS)
def test_node_selector_requirements(
    verdict: Any, edit: Any, field: str, requirement: dict[str, Any], expected: set[tuple[str, str]]
) -> None:
    obj = edit(a_slice(), {"spec.nodeName": None, "spec.nodeSelector": {"nodeSelectorTerms": [{field: [requirement]}]}})
    path = f"spec.nodeSelector.nodeSelectorTerms[0].{field}[0]"
    assert verdict(obj) == {(reason, f"{path}.{name}") for reason, name in expected}


@pytest.mark.req("4381-16", "5055-04", "SVS-03")
def test_how_many_devices(verdict: Any) -> None:
    def some(count: int, **content: Any) -> dict[str, Any]:
        return a_slice(devices=[{"name": f"gpu-{number}", **content} for number in range(count)])

    assert verdict(some(128)) == set()
    assert verdict(some(129)) == {("TooMany", "spec.devices")}
    assert verdict(some(64, taints=[TAINT])) == set()
    assert verdict(some(65, taints=[TAINT])) == {("TooMany", "spec.devices")}
    assert verdict(some(65, attributes={"x": {"ints": [1, 2]}})) == {("TooMany", "spec.devices")}


@pytest.mark.req("4381-17")
def test_the_limit_for_shared_capacity_is_only_a_number() -> None:
    assert SHARED_CAPACITY_PER_SLICE == 128


@pytest.mark.req("4381-02", "4381-20")
def test_device_names(verdict: Any) -> None:
    assert verdict(a_slice(devices=[{"name": "Gpu"}])) == {("Invalid", "spec.devices[0].name")}
    assert verdict(a_slice(devices=[{"name": "a.b"}])) == {("Invalid", "spec.devices[0].name")}
    assert verdict(a_slice(devices=[{"name": "a" * 64}])) == {("Invalid", "spec.devices[0].name")}
    assert verdict(a_slice(devices=[{"name": "a"}, {"name": "a"}])) == {("Duplicate", "spec.devices[1]")}


@pytest.mark.req("4381-21", "4381-248", "SVS-40")
def test_how_many_attributes_and_capacities(verdict: Any) -> None:
    def some(attributes: int, capacities: int) -> dict[str, Any]:
        return with_device(
            attributes={f"a{number}": {"int": number} for number in range(attributes)},
            capacity={f"c{number}": {"value": "1"} for number in range(capacities)},
        )

    assert verdict(some(20, 12)) == set()
    assert verdict(some(20, 13)) == {("Invalid", "spec.devices[0]")}
    assert verdict(with_device(attributes={"x": {"ints": list(range(48))}})) == set()
    assert verdict(with_device(attributes={"x": {"ints": list(range(49))}})) == {("Invalid", "spec.devices[0]")}


NAMES = [
    ("model", set()),
    ("_x9", set()),
    ("example.com/model", set()),
    ("kubernetes.io/model", set()),
    ("resource.kubernetes.io/pcieRoot", set()),
    ("1abc", {"Invalid"}),
    ("a-b", {"Invalid"}),
    ("/x", {"Invalid"}),
    ("d/", {"Invalid"}),
    ("a" * 32, set()),
    ("a" * 33, {"TooLong"}),
    (f"{'a' * 63}/x", set()),
    (f"{'a' * 64}/x", {"TooLong"}),
]


@pytest.mark.req("4381-22", "4381-23", "4381-24", "4381-25", "4381-27")
@pytest.mark.parametrize(("name", "reasons"), NAMES)
def test_names_of_attributes_and_capacities(verdict: Any, name: str, reasons: set[str]) -> None:
    assert verdict(with_device(attributes={name: {"bool": True}})) == {
        (reason, "spec.devices[0].attributes") for reason in reasons
    }
    assert verdict(with_device(capacity={name: {"value": "1"}})) == {
        (reason, "spec.devices[0].capacity") for reason in reasons
    }


@pytest.mark.req("4381-22", "SVS-39")
def test_a_name_with_and_without_the_drivers_domain_may_stand_side_by_side(verdict: Any) -> None:
    attributes = {"model": {"string": "a"}, "gpu.example.com/model": {"string": "b"}}
    assert verdict(with_device(attributes=attributes)) == set()


VALUES = [
    ({"int": 1}, set()),
    ({"bool": False}, set()),
    ({"string": ""}, set()),
    ({"string": "a" * 64}, set()),
    ({"string": "a" * 65}, {("TooLong", ".string")}),
    ({"string": "ä" * 33}, {("TooLong", ".string")}),
    ({"version": "1.2.3-rc.1+b"}, set()),
    ({"version": "1.2"}, {("Invalid", ".version")}),
    ({"version": "v1.2.3"}, {("Invalid", ".version")}),
    ({"version": "01.2.3"}, {("Invalid", ".version")}),
    ({"version": "1.2.3-" + "a" * 60}, {("TooLong", ".version")}),
    ({}, {("Invalid", "")}),
    ({"int": 1, "string": "x"}, {("Invalid", "")}),
    ({"strings": ["a", "b" * 65]}, {("TooLong", ".strings[1]")}),
    ({"versions": ["1.0.0", "x"]}, {("Invalid", ".versions[1]")}),
    ({"ints": [1], "bools": [True]}, {("Invalid", "")}),
    ({"ints": []}, {("Invalid", ""), ("Invalid", ".ints")}),
    ({"string": "a", "versions": []}, {("Invalid", ""), ("Invalid", ".versions")}),
]


@pytest.mark.req("4381-31", "4381-32", "4381-33", "4381-35", "SVS-40")
@pytest.mark.parametrize(("value", "expected"), VALUES)
def test_attribute_values(verdict: Any, value: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    path = "spec.devices[0].attributes[x]"
    assert verdict(with_device(attributes={"x": value})) == {(reason, path + field) for reason, field in expected}


@pytest.mark.req("5027-13")
def test_null_is_no_attribute_value_in_slices(verdict: Any) -> None:
    found = verdict(with_device(attributes={"x": {"null": {}}}))
    assert found == {("Invalid", "spec.devices[0].attributes[x]")}


@pytest.mark.req("4381-34", "SVS-34")
def test_capacities_are_quantities(verdict: Any) -> None:
    assert verdict(with_device(capacity={"memory": {"value": "16Gi"}})) == set()
    assert verdict(with_device(capacity={"memory": "16Gi"})) == {("TypeInvalid", "spec.devices[0].capacity[memory]")}
    assert {reason for reason, _ in verdict(with_device(capacity={"memory": {"value": "16X"}}))} == {"TypeInvalid"}


POLICIES = [
    ({"default": "1", "validValues": ["1", "2"]}, set()),
    ({"validValues": ["1"]}, {("Required", ".default")}),
    ({"default": "3", "validValues": ["1", "2"]}, {("Invalid", ".validValues")}),
    ({"default": "1", "validValues": ["2", "1"]}, {("Invalid", ".validValues[1]")}),
    ({"default": "1", "validValues": ["1", "1000m"]}, {("Duplicate", ".validValues[1]")}),
    ({"default": "1", "validValues": ["1", "99"]}, {("Invalid", ".validValues[1]")}),
    (
        {"default": "1", "validValues": [str(number) for number in range(1, 12)]},
        {("TooMany", ".validValues"), ("Invalid", ".validValues")},
    ),
    ({"default": "2", "validRange": {"min": "1", "max": "8", "step": "1"}}, set()),
    ({"validRange": {"min": "1"}}, {("Required", ".default")}),
    ({"default": "2", "validRange": {"max": "3"}}, {("Required", ".validRange.min")}),
    ({"default": "1", "validRange": {"min": "2"}}, {("Invalid", ".validRange.default")}),
    ({"default": "4", "validRange": {"min": "2", "max": "3"}}, {("Invalid", ".validRange.default")}),
    (
        {"default": "2", "validRange": {"min": "2", "max": "1"}},
        {("Invalid", ".validRange.max"), ("Invalid", ".validRange.default")},
    ),
    ({"default": "2", "validRange": {"min": "1", "max": "99"}}, {("Invalid", ".validRange.max")}),
    ({"default": "2", "validRange": {"min": "1", "step": "0"}}, {("Invalid", ".validRange.step")}),
    ({"default": "2", "validRange": {"min": "1", "step": "2"}}, {("Invalid", ".validRange.step")}),
    ({"default": "3", "validRange": {"min": "1", "max": "6", "step": "2"}}, {("Invalid", ".validRange.step")}),
    ({"default": "1500m", "validRange": {"min": "1", "step": "500m"}}, set()),
    ({"default": "1", "validRange": {"min": "1n", "step": "1"}}, {("Invalid", ".validRange.min")}),
    ({"default": "1", "validValues": ["1"], "validRange": {"min": "1"}}, {("Forbidden", "")}),
]


@pytest.mark.req("SVS-64")
@pytest.mark.parametrize(("policy", "expected"), POLICIES)
def test_request_policies(verdict: Any, policy: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    capacity = {"m": {"value": "10", "requestPolicy": policy}}
    path = "spec.devices[0].capacity[m].requestPolicy"
    assert verdict(with_device(allowMultipleAllocations=True, capacity=capacity)) == {
        (reason, path + field) for reason, field in expected
    }
    assert verdict(with_device(capacity=capacity)) == {("Forbidden", path)}


@pytest.mark.req("5055-01", "5055-07", "5055-08", "5055-09", "5055-10", "5055-38", "X-04")
def test_taints_apart_from_devices(verdict: Any) -> None:
    assert verdict(a_slice(taints=[{"device": "gpu-0", "taint": TAINT}, {"device": "gpu-0", "taint": TAINT}])) == set()
    assert verdict(a_slice(taints=[{"device": "no-such-device", "taint": TAINT}])) == set()


@pytest.mark.req("5055-02", "SVS-02")
def test_how_many_taints(verdict: Any) -> None:
    entries = [{"device": f"gpu-{number}", "taint": TAINT} for number in range(33)]
    assert verdict(a_slice(taints=entries[:32])) == set()
    assert verdict(a_slice(taints=entries)) == {("TooMany", "spec.taints")}
    assert verdict(with_device(taints=[TAINT] * 16)) == set()
    assert verdict(with_device(taints=[TAINT] * 17)) == {("TooMany", "spec.devices[0].taints")}


@pytest.mark.req("5055-03", "SVS-04", "X-04")
def test_a_slice_has_one_kind_of_content(verdict: Any) -> None:
    taints = [{"device": "gpu-0", "taint": TAINT}]
    counters = [{"name": "set", "counters": {"memory": {"value": "1"}}}]
    devices = [{"name": "gpu-0"}]
    assert verdict(a_slice(devices=devices, taints=taints)) == {("Invalid", "spec")}
    assert verdict(a_slice(devices=devices, sharedCounters=counters)) == {("Invalid", "spec")}
    assert verdict(a_slice(taints=taints, sharedCounters=counters)) == {("Invalid", "spec")}


@pytest.mark.req("5055-06")
def test_a_separate_taint_needs_its_device(verdict: Any) -> None:
    assert verdict(a_slice(taints=[{"taint": TAINT}])) == {("Required", "spec.taints[0].device")}
    assert verdict(a_slice(taints=[{"device": "", "taint": TAINT}])) == {("Required", "spec.taints[0].device")}


COUNTERS = [
    ([{"name": "s", "counters": {"m": {"value": "1"}}}], set()),
    ([{"counters": {"m": {"value": "1"}}}], {("Required", "[0].name")}),
    ([{"name": "S", "counters": {"m": {"value": "1"}}}], {("Invalid", "[0].name")}),
    ([{"name": "s"}], {("Required", "[0].counters")}),
    ([{"name": "s", "counters": {"M": {"value": "1"}}}], {("Invalid", "[0].counters")}),
    ([{"name": "s", "counters": {"m": {"value": "1"}}}] * 2, {("Duplicate", "[1]")}),
    ([{"name": f"s{number}", "counters": {"m": {"value": "1"}}} for number in range(9)], {("TooMany", "")}),
]


@pytest.mark.req("SVS-64")
@pytest.mark.parametrize(("counters", "expected"), COUNTERS)
def test_shared_counters(verdict: Any, counters: list[Any], expected: set[tuple[str, str]]) -> None:
    assert verdict(a_slice(sharedCounters=counters)) == {
        (reason, f"spec.sharedCounters{field}") for reason, field in expected
    }


def test_consumed_counters(verdict: Any) -> None:
    entry = {"counterSet": "s", "counters": {"m": {"value": "1"}}}
    path = "spec.devices[0].consumesCounters"
    assert verdict(with_device(consumesCounters=[entry])) == set()
    assert verdict(with_device(consumesCounters=[entry, entry])) == {("Duplicate", f"{path}[1]")}
    assert verdict(with_device(consumesCounters=[entry] * 3)) == {("TooMany", path)}
    assert verdict(with_device(consumesCounters=[{}])) == {
        ("Required", f"{path}[0].counterSet"),
        ("Required", f"{path}[0].counters"),
    }


def test_binding_conditions(verdict: Any) -> None:
    path = "spec.devices[0]"
    assert verdict(with_device(bindingConditions=["a"], bindingFailureConditions=["b"])) == set()
    assert verdict(with_device(bindingConditions=["a"])) == {("Invalid", f"{path}.bindingFailureConditions")}
    assert verdict(with_device(bindingConditions=["a"], bindingFailureConditions=["a"])) == {
        ("Invalid", f"{path}.bindingFailureConditions[0]")
    }
    assert verdict(with_device(bindingConditions=["a", "a"], bindingFailureConditions=["b"])) == {
        ("Duplicate", f"{path}.bindingConditions[1]")
    }


def test_per_device_node_selection(verdict: Any, edit: Any) -> None:
    obj = edit(with_device(nodeName="n1"), {"spec.nodeName": None, "spec.perDeviceNodeSelection": True})
    assert verdict(obj) == set()
    assert verdict(with_device(nodeName="n1")) == {("Invalid", "spec.devices[0]")}
    assert verdict(edit(obj, {"spec.devices[0].nodeName": None})) == {("Required", "spec.devices[0]")}
    assert verdict(edit(obj, {"spec.devices[0].allNodes": True})) == {("Invalid", "spec.devices[0]")}


@pytest.mark.req("4381-256")
@pytest.mark.parametrize("value", ["pci0000:3a", "pci-root-0"])
def test_the_form_of_standard_attributes_is_left_to_drivers(verdict: Any, value: str) -> None:
    assert verdict(with_device(attributes={"resource.kubernetes.io/pcieRoot": {"string": value}})) == set()


@pytest.mark.req("4381-05", "4381-08", "4381-12")
@pytest.mark.parametrize(
    ("path", "value"), [("spec.driver", "other.example.com"), ("spec.pool.name", "other"), ("spec.nodeName", "other")]
)
def test_what_an_update_may_not_change(verdict: Any, edit: Any, path: str, value: str) -> None:
    assert verdict(edit(a_slice(), {path: value}), a_slice()) == {("Invalid", path)}


@pytest.mark.req("4381-12")
def test_the_node_name_may_not_go_either(verdict: Any, edit: Any) -> None:
    changed = edit(a_slice(), {"spec.nodeName": None, "spec.allNodes": True})
    assert verdict(changed, a_slice()) == {("Invalid", "spec.nodeName")}


@pytest.mark.req("SVS-08")
def test_a_stored_unknown_effect_survives_an_update(verdict: Any, edit: Any) -> None:
    stored = with_device(taints=[{"key": "a", "effect": "Explode", "timeAdded": "2026-01-01T00:00:00Z"}])
    assert verdict(edit(stored, {"spec.pool.generation": 2}), stored) == set()
    assert verdict(stored) == {("NotSupported", "spec.devices[0].taints[0].effect")}


@pytest.mark.req("4381-247", "SVS-33")
def test_v1beta1_errors_follow_its_shapes_where_kubernetes_does(verdict: Any) -> None:
    obj = with_device(basic={"attributes": {"x": {}, "1": {"int": 1}}})
    obj["apiVersion"] = "resource.k8s.io/v1beta1"
    assert verdict(obj) == {
        ("Invalid", "spec.devices[0].basic.attributes[x]"),
        ("Invalid", "spec.devices[0].attributes"),
    }


def test_all_errors_at_once(verdict: Any) -> None:
    obj = a_slice(driver="", pool={"name": ""}, devices=[{"name": "A"}, {"name": "b", "attributes": {"x": {}}}])
    assert verdict(obj) == {
        ("Required", "spec.driver"),
        ("Required", "spec.pool.name"),
        ("Invalid", "spec.pool.resourceSliceCount"),
        ("Invalid", "spec.devices[0].name"),
        ("Invalid", "spec.devices[1].attributes[x]"),
    }
