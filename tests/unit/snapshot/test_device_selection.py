"""Which devices an admin means, and the rules that say it, on servers that can do all of it and on others."""

from __future__ import annotations

from typing import Any

import pytest

import dray
from dray.api import codec
from dray.api.resource import DeviceTaintRule
from dray.api.resource.rule_annotations import EVICTIONS_PER_SECOND, EXPIRES_AT, annotated_rate, taint_of
from dray.api.times import Time
from dray.snapshot import Snapshot
from dray.snapshot.device_selection import (
    DeviceSelection,
    SelectionError,
    check,
    check_key,
    find_devices,
    find_unpublished,
    resolve,
    tell_nothing,
    tell_passed_over,
)
from dray.snapshot.taint_rules import TaintRequest, as_stored, build_rules, carry_rate, rules_of
from snapshot_objects import DRIVER, claim, device, device_class, held, resource_slice

NODES = 3
MODEL = f'device.attributes["{DRIVER}"].numa == 1'


def cluster(*objects: Any) -> Snapshot:
    """Three nodes with a pool of four GPUs each, two of them on each NUMA node, and a pool for everybody."""
    slices = [
        resource_slice(f"node-{node}", *(device(f"gpu-{number}", numa=number % 2) for number in range(4)))
        for node in range(1, NODES + 1)
    ]
    shared = resource_slice("shared", device("nic-0"), device("nic-1"))
    del shared["spec"]["nodeName"]
    shared["spec"] |= {"allNodes": True, "driver": "nic.example.com"}
    return dray.load(device_class(), *slices, shared, *objects)


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("node-2/gpu-1", "--pool node-2 --device gpu-1"),
        (f"{DRIVER}/node-2/gpu-1", "--pool node-2 --device gpu-1"),
        ("nic-1", "--pool shared --device nic-1"),
        ("node-3", "--pool node-3"),
        ("shared", "--pool shared"),
    ],
)
def test_who_names_a_device_as_the_taint_does_not_mean_every_device(key: str, meant: str) -> None:
    with pytest.raises(SelectionError, match=f"{key} would be the taint, on every device; for that one say {meant}"):
        check_key(cluster(), DeviceSelection(), key)
    check_key(cluster(), DeviceSelection(node="node-1"), key)
    check_key(cluster(), DeviceSelection(), "maintenance")


@pytest.mark.parametrize(
    ("expressions", "failing"),
    [
        (("false",), 0),
        ((f'device.driver == "{DRIVER}"', f'device.attributes["{DRIVER}"].wheels == 4'), 12),
        ((f'device.attributes["{DRIVER}"].numa == 7',), 2),
    ],
)
def test_that_no_device_matches_says_on_how_many_the_expression_fails(
    expressions: tuple[str, ...], failing: int
) -> None:
    selection = DeviceSelection(cel=expressions)
    assert find_devices(cluster(), selection) == ()
    told = tell_nothing(cluster(), selection)
    assert told.startswith(f"no device matches ({selection})")
    assert (
        f"): it fails on {failing} devices: selector #{len(expressions) - 1}: runtime error: no such key" in told
    ) == bool(failing)


@pytest.mark.parametrize(
    ("selection", "told"),
    [
        (DeviceSelection(node="node-1"), ()),
        (DeviceSelection(cel=(MODEL,), driver=DRIVER), ()),
        (
            DeviceSelection(cel=(f'device.attributes["{DRIVER}"].numa == 0',)),
            ("2 devices are passed over, meant or not, because the selection fails there: selector #0: ",),
        ),
        (DeviceSelection(node="node-1", cel=(f'device.attributes["{DRIVER}"].numa == 0',)), ()),
        (DeviceSelection(pool="node-2", cel=(f'device.attributes["{DRIVER}"].numa == 0',)), ()),
        (
            DeviceSelection(device="nic-1", cel=(f'device.attributes["{DRIVER}"].numa == 0',)),
            ("1 device is passed over, meant or not, because the selection fails there: selector #0: ",),
        ),
    ],
)
def test_devices_on_which_a_selection_fails_are_told_where_they_could_be_meant(
    selection: DeviceSelection, told: tuple[str, ...]
) -> None:
    found = tell_passed_over(cluster(), selection)
    assert len(found) == len(told)
    assert all(text.startswith(start) for text, start in zip(found, told, strict=True))


def test_a_class_that_cannot_be_read_fails_on_every_device() -> None:
    broken = cluster(device_class("device.nothing", "broken"))
    told = tell_nothing(broken, DeviceSelection(device_class="broken"))
    assert "): it fails on every device: device class broken: selector #0: compilation failed" in told


def selectors(selection: DeviceSelection, *, by_names: bool = False) -> list[dict[str, Any]]:
    return [codec.to_builtins(one) for one in resolve(cluster(), selection, by_names=by_names)]


@pytest.mark.parametrize(
    ("selection", "devices"),
    [
        (DeviceSelection(), 14),
        (DeviceSelection(driver=DRIVER), 12),
        (DeviceSelection(node="node-2"), 4),
        (DeviceSelection(node="node-2", device="gpu-3"), 1),
        (DeviceSelection(device="gpu-3"), 3),
        (DeviceSelection(pool="shared"), 2),
        (DeviceSelection(device_class="gpu"), 12),
        (DeviceSelection(cel=(MODEL,)), 6),
        (DeviceSelection(node="node-1", cel=(MODEL, f'device.driver == "{DRIVER}"')), 2),
        (DeviceSelection(cel=("false",)), 0),
    ],
)
def test_everything_that_is_given_must_hold(selection: DeviceSelection, devices: int) -> None:
    assert len(find_devices(cluster(), selection)) == devices


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (DeviceSelection(), [{}]),
        (DeviceSelection(device="gpu-3"), [{"device": "gpu-3"}]),
        (DeviceSelection(node="node-2"), [{"driver": DRIVER, "pool": "node-2"}]),
        (
            DeviceSelection(node="node-2", device="gpu-1"),
            [{"driver": DRIVER, "pool": "node-2", "device": "gpu-1"}],
        ),
        (
            DeviceSelection(device_class="gpu", cel=(MODEL,)),
            [{"deviceClassName": "gpu", "selectors": [{"cel": {"expression": MODEL}}]}],
        ),
        (
            DeviceSelection(node="node-2", cel=(MODEL,)),
            [{"driver": DRIVER, "pool": "node-2", "selectors": [{"cel": {"expression": MODEL}}]}],
        ),
    ],
)
def test_a_rule_says_it_so_that_devices_to_come_are_meant_too(
    selection: DeviceSelection, expected: list[dict[str, Any]]
) -> None:
    assert selectors(selection) == expected


def test_a_server_without_class_and_cel_gets_names() -> None:
    whole = [{"driver": DRIVER, "pool": f"node-{node}"} for node in range(1, NODES + 1)]
    assert selectors(DeviceSelection(device_class="gpu"), by_names=True) == whole
    odd = selectors(DeviceSelection(node="node-1", cel=(MODEL,)), by_names=True)
    assert odd == [{"driver": DRIVER, "pool": "node-1", "device": name} for name in ("gpu-1", "gpu-3")]
    assert selectors(DeviceSelection(pool="node-1"), by_names=True) == [{"pool": "node-1"}]


def test_a_pool_of_several_nodes_is_never_tainted_as_a_whole() -> None:
    mixed = resource_slice("mixed", device("far", nodeName="node-9"), device("near", nodeName="node-1"))
    del mixed["spec"]["nodeName"]
    mixed["spec"]["perDeviceNodeSelection"] = True
    found = resolve(cluster(mixed), DeviceSelection(node="node-1", pool="mixed"))
    assert [codec.to_builtins(one) for one in found] == [{"driver": DRIVER, "pool": "mixed", "device": "near"}]


@pytest.mark.parametrize(
    ("selection", "says"),
    [
        (DeviceSelection(node="node-9"), "no node node-9; there is node-1, node-2, node-3"),
        (DeviceSelection(device_class="tpu"), "no device class tpu; there is gpu"),
        (DeviceSelection(driver="x"), "no driver x; there is gpu.example.com, nic.example.com"),
        (DeviceSelection(driver=DRIVER, pool="shared"), "no pool shared of driver gpu.example.com"),
        (DeviceSelection(node="node-1", device="nic-0"), "no device nic-0 on node node-1; there is gpu-0"),
        (DeviceSelection(cel=("device.what",)), "CEL: undefined field 'what'"),
        (DeviceSelection(cel=("1 +",)), "CEL: "),
    ],
)
def test_what_is_not_there_is_named_with_what_is(selection: DeviceSelection, says: str) -> None:
    with pytest.raises(SelectionError) as error:
        check(cluster(), selection)
    assert says in str(error.value)


def test_too_many_rules_are_refused() -> None:
    big = resource_slice("big", *(device(f"gpu-{number}", numa=number % 2) for number in range(128)))
    many = cluster(big).with_objects(resource_slice("big-2", *(device(f"gpu-{n}", numa=n % 2) for n in range(128))))
    with pytest.raises(SelectionError, match="rules would be needed"):
        resolve(many, DeviceSelection(cel=(MODEL,)), by_names=True)


def test_a_device_that_is_only_held_may_be_named() -> None:
    snapshot = cluster(held(claim("a"), "node-9", "gpu-0", pods=("p",)))
    check(snapshot, DeviceSelection(pool="node-9"))
    assert [str(one) for one in find_unpublished(snapshot, DeviceSelection(pool="node-9"))] == [
        f"{DRIVER}/node-9/gpu-0"
    ]
    assert not find_unpublished(snapshot, DeviceSelection(cel=("true",)))


def request(**changes: Any) -> TaintRequest:
    fields: dict[str, Any] = {
        "selection": DeviceSelection(node="node-1"),
        "key": "example.com/Fw_Old",
        "effect": "None",
    }
    return TaintRequest(**(fields | changes))


def test_the_name_depends_on_what_is_tainted_and_on_the_key_only() -> None:
    name = request().name
    assert name.startswith("fw-old-")
    assert request(effect="NoExecute", value="x", rate=3).name == name
    assert request(key="other").name != name
    assert request(selection=DeviceSelection(node="node-2")).name != name
    assert request(key="_").name.startswith("taint-")


def test_rules_are_found_again_by_what_was_asked_for() -> None:
    asked = request(effect="NoExecute", until=Time.parse("2026-06-01T14:00:00Z"))
    snapshot = cluster()
    rules = build_rules(asked, resolve(snapshot, asked.selection))
    assert rules[0].metadata.annotations[EXPIRES_AT] == "2026-06-01T14:00:00Z"
    after = snapshot.with_typed(rules)
    assert rules_of(after, asked.selection) == rules
    assert rules_of(after, asked.selection, asked.key) == rules
    assert not rules_of(after, asked.selection, "other")
    assert not rules_of(after, DeviceSelection(node="node-2"))


def test_several_rules_for_one_request_have_names_of_their_own() -> None:
    asked = request(selection=DeviceSelection(device_class="gpu"))
    rules = build_rules(asked, resolve(cluster(), asked.selection, by_names=True))
    assert len({rule.metadata.name for rule in rules}) == NODES
    assert {rule.metadata.labels["dray.dev/taint"] for rule in rules} == {asked.name}


def test_a_rate_that_the_server_cannot_keep_travels_in_an_annotation_and_counts() -> None:
    (rule,) = build_rules(request(rate=7), resolve(cluster(), DeviceSelection(node="node-1")))
    carried = carry_rate(rule)
    assert carried.spec.taint.evictions_per_second is None
    assert carried.metadata.annotations[EVICTIONS_PER_SECOND] == "7"
    assert taint_of(carried) == rule.spec.taint
    assert carry_rate(carried) == carried


@pytest.mark.parametrize(
    ("text", "rate"),
    [("1", 1), ("250", 250), ("0", None), ("-3", None), ("", None), ("1.5", None), ("٣", None), ("9" * 30, None)],
)
def test_only_whole_numbers_of_at_least_one_are_rates(text: str, rate: int | None) -> None:
    rule: dict[str, Any] = {"metadata": {"name": "r", "annotations": {EVICTIONS_PER_SECOND: text}}, "spec": {}}
    read = codec.read(rule, DeviceTaintRule).obj
    assert read is not None
    assert annotated_rate(read) == rate


def test_a_taint_that_keeps_its_effect_keeps_its_time() -> None:
    then, now = Time.parse("2026-06-01T11:00:00Z"), Time.parse("2026-06-01T12:00:00Z")
    rules = build_rules(request(), resolve(cluster(), DeviceSelection(node="node-1")))
    before = cluster().with_typed(as_stored(rules, cluster(), then))
    again = as_stored(rules, before, now)
    assert again[0].spec.taint.time_added == then
    evicting = build_rules(request(effect="NoExecute"), resolve(cluster(), DeviceSelection(node="node-1")))
    assert as_stored(evicting, before, now)[0].spec.taint.time_added == now
