"""Every number of a preview, counted again from the manifests alone: who leaves, who stays, budgets, and the guard."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any, NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import builders
import dray
from dray.api.generated.core import Node, Taint
from dray.api.resource import DeviceTaintRule
from dray.snapshot import Snapshot
from dray.what_if.guard_preview import GuardPreview, tell_guard
from dray.what_if.taint_preview import TaintPreview, preview_nodes, preview_rules
from snapshot_objects import claim, held, node, resource_slice, rule

Json = dict[str, Any]
NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
NODES = ("node-1", "node-2")
DEVICES = ("gpu-0", "gpu-1")
KEY = "example.com/bad"
TOLERATES = [{"key": KEY, "operator": "Exists", "effect": "NoExecute"}]


class Worker(NamedTuple):
    """A pod, the claim that it uses with others, and whether it tolerates a taint of its node."""

    name: str
    app: str
    node: str
    phase: str
    claim: str
    tolerates: bool

    @property
    def is_kept(self) -> bool:
        """By the budget: who is not ready yet may go while enough others are."""
        return self.app == "web" and self.phase == "Running"

    @property
    def can_leave(self) -> bool:
        return bool(self.node) and self.phase in ("Running", "Pending")

    def manifest(self) -> Json:
        meta = {"uid": f"uid-{self.name}", "labels": {"app": self.app}}
        more: Json = {"tolerations": TOLERATES} if self.tolerates else {}
        uses = [builders.pod_claim("gpu", claim=self.claim)] if self.claim else []
        ready = {"type": "Ready", "status": "True" if self.phase == "Running" else "False"}
        status = {"phase": self.phase, "conditions": [ready]}
        return builders.pod(self.name, namespace="ml", node=self.node, meta=meta, status=status, claims=uses, **more)


class Held(NamedTuple):
    """A claim with devices of a node."""

    name: str
    node: str
    devices: tuple[str, ...]
    tolerates: bool


claims = st.lists(
    st.tuples(st.sampled_from(NODES), st.sets(st.sampled_from(DEVICES), min_size=1), st.booleans()), max_size=3
)
workers = st.lists(
    st.tuples(
        st.sampled_from(("web", "db")),
        st.sampled_from((*NODES, "")),
        st.sampled_from(("Running", "Running", "Pending", "Succeeded")),
        st.integers(0, 3),
        st.booleans(),
    ),
    max_size=6,
)
selectors = st.sampled_from(({}, {"pool": "node-1"}, {"device": "gpu-0"}, {"pool": "node-2", "device": "gpu-1"}))
limits = st.sampled_from(("1", "2,50%", "0,10%", "1,node", "50,10%,node,spare"))


def load(there: list[Held], working: list[Worker], allowed: int, limit: str) -> Snapshot:
    objects: list[Json] = [node(name) for name in NODES]
    objects += [resource_slice(name, *(builders.device(one, {}) for one in DEVICES)) for name in NODES]
    objects += [builders.device_class("gpu")]
    for one in there:
        users = tuple(worker.name for worker in working if worker.claim == one.name)
        made = claim(one.name, len(one.devices), tolerations=TOLERATES if one.tolerates else None)
        objects.append(held(made, one.node, *sorted(one.devices), pods=users))
    objects += [worker.manifest() for worker in working]
    spec = {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1}
    status = {"disruptionsAllowed": allowed, "currentHealthy": 9, "desiredHealthy": 1, "expectedPods": 9}
    objects.append(
        builders.manifest(
            "policy/v1", "PodDisruptionBudget", "web", "ml", spec=spec, status={**status, "observedGeneration": 1}
        )
    )
    meta = {"annotations": {"dray.dev/max-evictions": limit}}
    objects.append(builders.manifest("v1", "Namespace", "kube-system", "", meta=meta))
    return dray.load(*objects)


def check(preview: TaintPreview, leave: list[Worker], stay: list[Worker], allowed: int) -> None:
    assert {one.pod for one in preview.pods} == {f"ml/{one.name}" for one in leave}
    assert preview.namespaces == ({"ml": len(leave)} if leave else {})
    assert set(preview.protected) == {f"ml/{one.name}" for one in stay}
    needed = sum(one.is_kept for one in leave)
    for told in preview.pods:
        is_kept = next(one for one in leave if told.pod == f"ml/{one.name}").is_kept
        assert (told.budget is not None) == is_kept
        if told.budget is not None:
            assert (told.budget.allowed, told.budget.needed) == (allowed, needed)
            assert told.budget.granted == min(allowed, needed)


def check_guard(guard: GuardPreview | None, leaving: int, everybody: int, by_node: int, limit: str) -> None:
    """A limit is the largest of its parts; a share is of all pods that it is about."""
    assert guard is not None
    parts = [
        by_node if part == "node" else everybody * int(part[:-1]) / 100 if part.endswith("%") else int(part)
        for part in limit.removesuffix(",spare").split(",")
    ]
    is_sparing = limit.endswith("spare")
    assert (guard.pods, guard.of) == (leaving, everybody)
    allowed = min(max(parts), max(5, everybody // 10, by_node)) if is_sparing else max(parts)
    assert allowed - 1 < guard.allowed <= allowed
    assert guard.is_over == (leaving > guard.allowed)
    share = f" ({leaving / everybody:.1%})" if everybody else ""
    assert tell_guard(guard).startswith(
        f"Guard: {leaving} of {everybody} pods{share}, limit {limit}: {guard.allowed} pod"
    )


@settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
@given(claims, workers, selectors, st.integers(0, 3), limits)
def test_what_a_preview_counts(
    drawn: list[tuple[str, set[str], bool]],
    pods: list[tuple[str, str, str, int, bool]],
    selector: Json,
    allowed: int,
    limit: str,
) -> None:
    there = [Held(f"c{n}", where, tuple(sorted(what)), tolerates) for n, (where, what, tolerates) in enumerate(drawn)]
    working = [
        Worker(f"p{n}", app, where, phase, f"c{which}" if which < len(there) else "", tolerates)
        for n, (app, where, phase, which, tolerates) in enumerate(pods)
    ]
    snapshot = load(there, working, allowed, limit)

    def is_selected(where: str, device: str) -> bool:
        return bool(selector.get("pool", where) == where and selector.get("device", device) == device)

    def is_hit(one: Held) -> bool:
        return any(is_selected(one.node, device) for device in one.devices)

    (made,) = snapshot.with_objects(rule("r", **selector)).objects(DeviceTaintRule)
    told = preview_rules(snapshot, [made], NOW)
    hit = {one.name: one for one in there if is_hit(one)}
    users = [one for one in working if one.can_leave and one.claim in hit]
    leave = [one for one in users if not hit[one.claim].tolerates]
    check(told, leave, [one for one in users if hit[one.claim].tolerates], allowed)
    assert len(told.devices) == sum(is_selected(where, device) for where in NODES for device in DEVICES)
    held_devices = {(one.node, device) for one in there for device in one.devices if is_selected(one.node, device)}
    assert told.held == len(held_devices)
    users_of_devices = sum(bool(one.claim) for one in working)
    with_devices = Counter(one.node for one in working if one.claim and one.can_leave)
    nodes_worth = max(with_devices.values(), default=0)
    check_guard(told.guard, len(leave), users_of_devices, nodes_worth, limit)

    (machine,) = [one for one in snapshot.objects(Node) if one.metadata.name == NODES[0]]
    told = preview_nodes(snapshot, [machine], [Taint(key=KEY, effect="NoExecute")], NOW)
    here = [one for one in working if one.can_leave and one.node == NODES[0]]
    leave = [one for one in here if not one.tolerates]
    check(told, leave, [one for one in here if one.tolerates], allowed)
    by_node = Counter(one.node for one in working if one.can_leave)
    nodes_worth = max(*by_node.values(), min(by_node.total() // 2, 50), 0)
    check_guard(told.guard, len(leave), by_node.total(), nodes_worth, limit)
