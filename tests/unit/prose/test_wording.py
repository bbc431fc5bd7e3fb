"""Small pieces of text."""

from __future__ import annotations

import pytest

import builders
import dray
from dray.prose.wording import tell_apart

GPU, MORE, NIC = ("gpu", "node-1", "d0"), ("gpu", "more", "d0"), ("nic", "node-1", "d0")


@pytest.mark.parametrize(
    ("paths", "least", "told"),
    [
        ([], 1, []),
        ([GPU, ("gpu", "node-1", "d1")], 1, ["d0", "d1"]),
        ([GPU, GPU], 1, ["d0", "d0"]),
        ([GPU, MORE], 1, ["node-1/d0", "more/d0"]),
        ([GPU, MORE, GPU], 2, ["node-1/d0", "more/d0", "node-1/d0"]),
        ([GPU, NIC], 1, ["gpu/node-1/d0", "nic/node-1/d0"]),
    ],
)
def test_different_devices_are_told_apart(paths: list[tuple[str, ...]], least: int, told: list[str]) -> None:
    assert tell_apart(paths, least) == told


def test_devices_of_one_name_are_told_apart_wherever_they_are_told() -> None:
    """A node has pools of several drivers, and a driver may have several on it: `d0` may be any of them."""
    listed = [builders.device(name, {"a": number}) for number, name in enumerate(("d0", "d1"))]
    held = {"p1": "x", "p2": "y"}
    pools = [builders.resource_slice(pool, *listed) for pool in held]
    other = builders.resource_slice("nic", builders.device("d0"), pool="p1", driver="nic.example.com")
    asked = builders.request(count=1)
    claims = [
        builders.claim(name, asked, status=builders.allocated("d0", pool=pool, on="node-1"))
        for pool, name in held.items()
    ]
    four = builders.claim("four", builders.request(count=4))
    snapshot = dray.load(builders.device_class(), *pools, other, *claims, four)
    told = str(snapshot.explain("default/four"))
    assert "when one of p1/d0 (default/x), p2/d0 (default/y) is released." in told
    assert "gpu.example.com/p1/d0  held by default/x" in told
    assert "nic.example.com/p1/d0  free" in told
