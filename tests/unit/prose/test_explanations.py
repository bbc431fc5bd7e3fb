"""Refusals in words: counts, the closest node, what would help, and what of it fits a terminal."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import builders
import dray
from dray.prose.device_reasons import tell_condition
from snapshot_objects import Manifest, claim, device, device_class, held, resource_slice, rule

EXAMPLES = Path(__file__).parents[3] / "examples"
NOT_E = 'device.attributes["gpu.example.com"].numa == 0'
SHARE = "11111111-2222-4333-8444-555555555555"
NOW = datetime(2026, 6, 1, 12, 14, tzinfo=UTC)

TOLD = """\
ml/train-7 is pending: request "gpu" (class gpu, 2 devices, same numa) does not fit on any of 4 nodes.

  node    match  free  blocked by
  node-1  4      1     3 held (ml/embed, ml/train-1)
  node-2  4      2     numa differs: gpu-1 numa 0, gpu-3 numa 1; 2 held (ml/serve-1, ml/serve-2)
  node-3  4      0     4 tainted NoSchedule by rule rack-3-maintenance (since 14 min)
  node-4  0      –     4 fail selector 2: memory >= 80Gi (memory 40Gi)

12 of 16 devices match; 5 in use, 4 tainted by rule rack-3-maintenance, 2 free but of different numa, 1 free.

Closest: node-2, short by 1 device. It would fit with constraint numa dropped, or when one of gpu-0 (ml/serve-1), \
gpu-2 (ml/serve-2) is released."""


def explain(*objects: Any, node: str | None = None) -> Any:
    cluster = dray.load(device_class(), *objects)
    return cluster.explain("ml/x", nodes=[node] if node else None)


def test_a_refusal_as_a_whole() -> None:
    assert dray.load(EXAMPLES / "cluster").explain("ml/train-7").text(now=NOW) == TOLD


def test_the_reasons_in_a_line_have_the_counts_and_the_nearest_node() -> None:
    assert dray.load(EXAMPLES / "cluster").allocate("ml/train-7").explain().brief() == (
        'request "gpu": 12 of 16 devices match; 5 in use, '
        "4 tainted by rule rack-3-maintenance, 2 free but of different numa, 1 free; "
        "nearest node is node-2, short by 1 device"
    )


def test_one_node_device_by_device() -> None:
    lines = dray.load(EXAMPLES / "cluster").explain("ml/train-7", nodes=["node-2"]).text().splitlines()
    assert lines[2:7] == [
        "  device        what is with it",
        "  node-2/gpu-0  held by ml/serve-1, numa 0",
        "  node-2/gpu-1  free, numa 0, but not with enough others",
        "  node-2/gpu-2  held by ml/serve-2, numa 1",
        "  node-2/gpu-3  free, numa 1, but not with enough others",
    ]


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_nothing_is_wider_than_the_terminal(width: int) -> None:
    for text in (
        dray.load(EXAMPLES / "cluster").explain("ml/train-7").text(width=width),
        dray.load(EXAMPLES / "cluster").explain("ml/train-7", nodes=["node-3"]).text(width=width, now=NOW),
    ):
        assert max(map(len, text.splitlines())) <= width


def test_many_nodes_in_the_same_state_share_a_row() -> None:
    nodes = [f"node-{number:02}" for number in range(1, 41)]
    slices = [resource_slice(node, device("gpu-0"), device("gpu-1")) for node in nodes]
    claims = [held(claim(f"c-{node}"), node, "gpu-0") for node in nodes[:30]]
    text = explain(*slices, *claims, rule("off", "NoSchedule", pool="node-40"), claim("x", count=3)).text(now=NOW)
    assert text.splitlines()[2:6] == [
        "  node                 match  free  blocked by",
        "  node-31 and 8 more   2      2     too few devices",
        "  node-01 and 29 more  2      1     1 held",
        "  node-40              2      0     2 tainted NoExecute by rule off (since 14 min)".replace(
            "Execute", "Schedule"
        ),
    ]
    assert "80 of 80 devices match; 30 in use, 2 tainted by rule off, 48 free." in text
    assert "Closest: node-31, short by 1 device." in text


def partitions(node: str) -> list[Manifest]:
    """Two small partitions and a large one of a device that `whole` stands for, all of one counter."""
    about: Manifest = {"pool": node, "nodeName": node, "count": 2}
    sets = [{"name": "card", "counters": {"memory": {"value": "80Gi"}}}]
    sizes = {"whole": "80Gi", "half": "40Gi", "small-0": "10Gi", "small-1": "10Gi"}
    devices = [device(name) for name in sizes]
    for one, size in zip(devices, sizes.values(), strict=True):
        one["consumesCounters"] = [{"counterSet": "card", "counters": {"memory": {"value": size}}}]
    return [
        builders.resource_slice(f"{node}-counters", sharedCounters=sets, **about),
        builders.resource_slice(f"{node}-devices", *devices, **about),
    ]


def test_devices_that_are_told_together_need_what_each_of_them_needs() -> None:
    objects = [part for node in "mn" for part in partitions(node)]
    text = explain(*objects, *(held(claim(f"y{node}"), node, "whole") for node in "mn"), claim("x")).text(now=NOW)
    assert "3 short of counter card/memory: needs 10Gi or 40Gi, left 0 (used by ml/yn)" in text


def test_nodes_whose_counters_others_use_up_share_a_row() -> None:
    nodes = [f"node-{number:02}" for number in range(1, 21)]
    objects = [part for node in nodes for part in partitions(node)]
    text = explain(*objects, *(held(claim(f"c-{node}"), node, "whole") for node in nodes), claim("x")).text(now=NOW)
    assert (
        "node-01 and 19 more  4      0     1 held; 3 short of counter card/memory: needs 10Gi or 40Gi, left 0" in text
    )


def test_shares_that_leave_different_amounts_are_told_with_all_of_them() -> None:
    shared = [device(name, allowMultipleAllocations=True) for name in "ab"]
    wanted = claim("x")
    wanted["spec"]["devices"]["requests"][0]["exactly"]["capacity"] = {"requests": {"memory": "60Gi"}}
    holders = [held(claim(f"y{name}"), "n", name) for name in "ab"]
    for one, amount in zip(holders, ("30Gi", "50Gi"), strict=True):
        one["status"]["allocation"]["devices"]["results"][0] |= {
            "consumedCapacity": {"memory": amount},
            "shareID": SHARE,
        }
    text = explain(resource_slice("n", *shared), resource_slice("m"), *holders, wanted).text(now=NOW)
    assert "2 short of memory by 10Gi or 30Gi (shared with ml/ya, ml/yb)" in text


def test_taints_of_different_ages_are_told_without_one() -> None:
    taints = [{"key": "hot", "effect": "NoSchedule", "timeAdded": f"2026-06-01T12:0{minute}:00Z"} for minute in (1, 2)]
    objects = [resource_slice("n", *(device(taint["timeAdded"][15], taints=[taint]) for taint in taints))]
    text = explain(*objects, resource_slice("m"), claim("x")).text(now=NOW)
    assert "2 tainted hot:NoSchedule by the driver" in text
    assert "since" not in text


def test_why_a_capacity_does_not_do() -> None:
    """One device has enough and gives no request so much; another has none of it."""
    policy = {"default": "10", "validRange": {"min": "10", "step": "10", "max": "60"}}
    wide = device("a", allowMultipleAllocations=True)
    wide["capacity"] = {"bandwidth": {"value": "100", "requestPolicy": policy}}
    wanted = claim("x")
    wanted["spec"]["devices"]["requests"][0]["exactly"]["capacity"] = {"requests": {"bandwidth": "70"}}
    text = str(explain(resource_slice("n", wide, device("b")), resource_slice("m", device("c")), wanted))
    assert "1 with bandwidth 100, of which one request gets at most 60, needs 70" in text
    assert "1 without bandwidth, needs 70" in text


def test_a_pool_that_is_incomplete_is_named_once() -> None:
    text = str(explain(resource_slice("n", device("a"), count=2), claim("x")))
    assert text.count("is incomplete") == 1
    assert "incomplete: pool" not in text


def test_a_line_names_pools_that_may_be_why_and_no_others() -> None:
    """The one of a driver whose devices are asked for, or any if no device matches; it says the same each time."""
    other = resource_slice("n", device("b"), count=2)
    other = {**other, "metadata": {"name": "other"}, "spec": {**other["spec"], "driver": "other.example.com"}}
    own = resource_slice("m", device("c"), count=2)
    few = explain(resource_slice("n", device("a")), other, claim("x", count=2))
    assert "incomplete" not in few.brief() + str(few)
    both = explain(resource_slice("n", device("a")), other, own, claim("x", count=2))
    assert both.brief().count("is incomplete") == 1
    assert "pool gpu.example.com/m is incomplete: 1 of 2 slices of generation 1 are there" in both.brief()
    assert "other.example.com" not in both.brief() + str(both)
    none = explain(resource_slice("n", device("a")), other, claim("x", selector='device.driver == "none"'))
    assert "pool other.example.com/n is incomplete" in none.brief()


def test_long_values_are_shortened() -> None:
    odd = device("gpu-0")
    odd["attributes"]["serial"] = {"string": "x" * 64}
    text = explain(resource_slice("n", odd), claim("x", selector='device.attributes["gpu.example.com"].serial == "y"'))
    assert "xxx…xxx" in str(text)
    assert "x" * 64 not in str(text)
    assert "x" * 64 in str(text.to_dict())


@pytest.mark.parametrize(
    ("objects", "says"),
    [
        ((claim("x"),), "there is no node for it"),
        ((resource_slice("n", device("a"), count=2), claim("x")), "incomplete"),
        ((resource_slice("n", device("a")), claim("x", device_class_name="nic")), "device class nic does not exist"),
        (
            (
                resource_slice("n", device("a", taints=[{"key": "hot", "value": "yes", "effect": "NoSchedule"}])),
                claim("x"),
            ),
            "tainted hot=yes:NoSchedule by the driver",
        ),
        (
            (resource_slice("n", device("a")), rule("r", pool="n"), claim("x")),
            "It would fit without the taint of rule r.",
        ),
        (
            (resource_slice("n", device("a")), held(claim("y"), "n", "a"), claim("x")),
            "It would fit when a (ml/y) is released.",
        ),
        (
            (
                resource_slice("n", *(device(name) for name in "abc")),
                *(held(claim(f"y{name}"), "n", name) for name in "abc"),
                claim("x", count=2),
            ),
            "It would fit when 2 of a (ml/ya), b (ml/yb), c (ml/yc) are released.",
        ),
        (
            (resource_slice("n", device("a")), claim("x", count=2)),
            "short by 1 device. Nothing that was tried makes it fit: no node that was looked at has more than 1 device",
        ),
        (
            (resource_slice("n", device("a", taints=[{"key": "hot", "effect": "NoSchedule"}])), claim("x")),
            "Nothing that was tried makes it fit.",
        ),
        (
            (resource_slice("n", device("a")), claim("x", selector='device.driver == "other"')),
            "0 of 1 device matches.\n\nNo device that was looked at matches: to give back or lift something",
        ),
    ],
)
def test_reasons_and_remedies(objects: tuple[Any, ...], says: str) -> None:
    assert says in explain(*objects).text(now=NOW)


def test_a_rule_is_not_blamed_for_devices_that_are_held_too() -> None:
    text = explain(
        resource_slice("n", device("a")), rule("r", "NoSchedule", pool="n"), held(claim("y"), "n", "a"), claim("x")
    ).text(now=NOW)
    assert "tainted NoSchedule by rule r" in text
    assert "without the taint" not in text


def test_a_release_that_is_said_to_help_helps() -> None:
    base = dray.load(EXAMPLES / "cluster")
    for name in ("serve-1", "serve-2"):
        assert base.without(f"resourceclaim/ml/{name}").allocate("ml/train-7").node == "node-2"
    assert base.without("resourceclaim/ml/embed").allocate("ml/train-7").node == "node-1"


def test_advice_is_looked_for_on_other_nodes_than_the_closest() -> None:
    """On the closest one nothing can be done: the devices there never suit, or the driver tainted them."""
    hot = [device(name, taints=[{"key": "hot", "effect": "NoSchedule"}]) for name in "cd"]
    alike = (resource_slice("m", *hot), resource_slice("n", device("a"), device("b")))
    users = [held(claim(f"y{name}"), "n", name) for name in "ab"]
    assert "Closest: n, short by 1 device. It would fit when one of" in explain(*alike, *users, claim("x")).text(
        now=NOW
    )
    nearer = resource_slice("m", *hot[:1], device("d"), device("e", numa=1))
    text = explain(nearer, alike[1], resource_slice("l", *hot), *users, claim("x", count=2, selector=NOT_E)).text(
        now=NOW
    )
    assert "Closest: m, short by 1 device. On n it would fit when a (ml/ya), b (ml/yb) are released." in text


def test_devices_that_match_are_told_before_many_that_do_not() -> None:
    """A node may have hundreds that nobody asked for; which of those that were are held must not be cut off."""
    others = [device(f"x{number:03}", numa=1) for number in range(100)]
    mixed = resource_slice("n", *others, device("a"), device("b", numa=2))
    lines = explain(mixed, held(claim("y"), "n", "a"), claim("x", selector=NOT_E)).text().splitlines()
    assert lines[2:6] == [
        "  device              what is with it",
        "  n/a                 held by ml/y",
        "  n/x000 and 99 more  fails selector 1: numa == 0 (numa 1)",
        "  n/b                 fails selector 1: numa == 0 (numa 2)",
    ]


def test_several_requests_that_fit_on_different_nodes() -> None:
    wanted = claim("x")
    for name, memory in (("small", "40Gi"), ("large", "80Gi")):
        expression = f'device.capacity["gpu.example.com"].memory.compareTo(quantity("{memory}")) == 0'
        wanted["spec"]["devices"]["requests"].append(
            {"name": name, "exactly": {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": expression}}]}}
        )
    del wanted["spec"]["devices"]["requests"][0]
    text = str(explain(resource_slice("n-1", device("a", memory="40Gi")), resource_slice("n-2", device("a")), wanted))
    assert 'Request "small" (class gpu, 1 device) by itself fits on n-1.' in text
    assert text.splitlines()[-2:] == ["  n-1   large", "  n-2   small"]


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ('device.capacity["d.e"].memory.compareTo(quantity("80Gi")) >= 0', "memory >= 80Gi"),
        ('device.attributes["d.e"].version.isLessThan(semver("2.0.0"))', "version < 2.0.0"),
        ('device.attributes["d.e"].model == "H100"', 'model == "H100"'),
        ('device.driver == "x"', 'device.driver == "x"'),
    ],
)
def test_conditions_read_like_prose(condition: str, told: str) -> None:
    assert tell_condition(condition) == told
