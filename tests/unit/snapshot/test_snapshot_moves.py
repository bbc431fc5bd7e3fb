"""Snapshots that share their machinery answer as if each had been loaded by itself."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import dray
from dray.snapshot import Snapshot
from snapshot_objects import Manifest, claim, device, device_class, held, node, patch, resource_slice, rule

NODES = ("node-1", "node-2")
CLAIMS = ("ml/a", "ml/b", "ml/c")
ANCHOR = node("node-0")
"""Always there: files that have nodes have all of them, and files without have those that slices mention."""

POOL: dict[str, list[Manifest]] = {
    "deviceclass/gpu": [device_class(), device_class('device.attributes["gpu.example.com"].numa == 1')],
    **{
        f"resourceslice/{name}-slice": [
            resource_slice(name, device("gpu-0"), device("gpu-1", numa=1)),
            resource_slice(name, device("gpu-0", numa=1), generation=2),
            resource_slice(name, device("gpu-0"), count=2),
        ]
        for name in NODES
    },
    **{f"node/{name}": [node(name), node(name, ready="False")] for name in (*NODES, "node-3")},
    "devicetaintrule/r": [rule("r", pool="node-1"), rule("r", "NoSchedule", device="gpu-1"), rule("r", "None")],
    "resourceslicepatch/p": [patch("p", {"gpu.example.com/numa": {"int": 1}}, pool="node-2")],
    "resourceclaim/ml/a": [claim("a"), held(claim("a"), "node-1", "gpu-0"), held(claim("a"), "node-9", "gpu-7")],
    "resourceclaim/ml/b": [claim("b", count=2, match="numa"), held(claim("b"), "node-2", "gpu-0", "gpu-1")],
    "resourceclaim/ml/c": [claim("c", selector='device.attributes["gpu.example.com"].numa == 0')],
}

changes = st.lists(
    st.sampled_from(sorted(POOL)).flatmap(
        lambda ref: st.tuples(st.just(ref), st.integers(-1, len(POOL[ref]) - 1), st.booleans())
    ),
    max_size=8,
)


def answers(snapshot: Snapshot, present: dict[str, Manifest]) -> list[Any]:
    """Everything that can be asked."""
    claims = [name for name in CLAIMS if f"resourceclaim/{name}" in present]
    outcomes = [snapshot.allocate(name) for name in claims]
    return [
        snapshot.nodes(),
        [(out.status, out.node, out.allocations, out.error) for out in outcomes],
        [snapshot.explain(name).to_dict() for name in claims],
        [
            (device.id, device.device, [(taint.taint, taint.rule) for taint in device.taints], snapshot.holders(device))
            for device in snapshot.devices()
        ],
        sorted((pool.name, pool.problem or "") for pool in snapshot.pools()),
    ]


@settings(max_examples=60)
@given(changes)
def test_any_order_of_changes_gives_what_loading_gives(steps: list[tuple[str, int, bool]]) -> None:
    present = {ref: variants[0] for ref, variants in POOL.items()}
    snapshot = dray.load(ANCHOR, *present.values())
    seen = [(snapshot, dict(present))]
    for ref, variant, is_asked in steps:
        if variant < 0 and ref in present:
            snapshot = snapshot.without(ref)
            del present[ref]
        elif variant >= 0:
            snapshot = snapshot.with_objects(POOL[ref][variant])
            present[ref] = POOL[ref][variant]
        if is_asked:
            snapshot.nodes()
        seen.append((snapshot, dict(present)))
    for moved, objects in (seen[-1], seen[0], seen[len(seen) // 2]):
        assert answers(moved, objects) == answers(dray.load(ANCHOR, *objects.values()), objects)
