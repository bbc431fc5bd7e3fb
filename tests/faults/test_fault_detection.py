"""The simulation is only worth something if it finds what is broken: each guard is taken away, and must be missed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from dray.allocator import Options
from dray.api.generated.core import Pod
from dray.api.meta import DeleteOptions, Object
from dray.api.registry import Kind
from dray.api.resource import ResourceClaim
from dray.controllers.resource_claim import ResourceClaimController
from dray.eviction import DevicePlanner, causes
from dray.eviction.limiter import Limiter
from dray.eviction.node_rations import NodeRations
from dray.scheduler import binding, scheduler
from dray.scheduling import pod_info
from dray.scheduling.cluster import Cluster
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.preemption import find_victims
from dray.scheduling.refusal import Refused
from dray.server.engine import Call, Engine
from dray.server.indexes.held_devices import HeldDevices
from dray.server.verbs import writes
from dray.store import Finish, Key, Record
from dray.tracker import Remove
from fault_simulation.network import CALM, Connection, Faults
from fault_simulation.simulation import BAD_DAY, CROWDED, ONE_SCHEDULER, SCARCE, Day, simulate

ATTEMPTS = 30
"""So many days must be enough to notice."""

Break = Callable[[pytest.MonkeyPatch], None]

RUSH = Day(
    steps=20,
    nodes=2,
    schedulers=3,
    kills=0,
    restarts=0,
    jumps=0,
    faults=Faults(slow=0.5, lose=0.1, delay=0.1, stall=0.3),
    haste=12,
    habits={"create_pod": 40, "kill_pod": 30, "stop_node": 0, "taint_node": 0, "withdraw_slice": 0},
)
"""More pods than devices, and three schedulers that want to give them what they wait for."""

REPLACEMENTS = Day(
    crowd=30,
    steps=12,
    faults=Faults(delay=0.3, slow=0.5, stall=0.2),
    haste=12,
    habits={"replace_pod": 100, "create_rule": 0, "delete_rule": 0, "edit_rule": 0},
)
"""Pods make way for others of the same name all the time, while those who use broken devices are evicted."""


DRAINS = Day(crowd=30, steps=12, kills=0, restarts=0, habits={"taint_node": 60, "stop_node": 0, "create_rule": 0})
"""Nodes are emptied all the time."""


COMPETITION = Day(
    nodes=2, schedulers=3, kills=0, restarts=0, jumps=0, faults=CALM, habits={"create_pod": 30, "stop_node": 0}
)
"""Three schedulers decide about every pod, and two of them are too late."""


def ignore_versions(patch: pytest.MonkeyPatch) -> None:
    """Whoever writes last wins."""
    update = writes.update

    async def blind(engine: Engine, call: Call, change: writes.Change, **how: Any) -> Record:
        def change_blindly(stored: Object) -> Object:
            wanted = change(stored)
            return replace(wanted, metadata=replace(wanted.metadata, resource_version=""))

        return await update(engine, call, change_blindly, **{**how, "expected": ""})

    patch.setattr(writes, "update", blind)


def give_devices_twice(patch: pytest.MonkeyPatch) -> None:
    """The server takes every allocation."""

    def unguarded(
        _self: HeldDevices, _key: Key, _new: ResourceClaim, _old: ResourceClaim, finish: Finish, **_who: bool
    ) -> Finish:
        return finish

    patch.setattr(HeldDevices, "guarded", unguarded)


def forget_what_is_in_flight(patch: pytest.MonkeyPatch) -> None:
    """Neither scheduler nor server know of allocations that are being written."""

    def assume(self: Cluster, pod: PodInfo, node: str, _allocations: Mapping[str, Any]) -> None:
        self._place(pod, node)

    patch.setattr(Cluster, "assume", assume)
    give_devices_twice(patch)


def forget_finalizer(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(binding, "_with_finalizer", lambda claim: claim)


def forget_to_release(patch: pytest.MonkeyPatch) -> None:
    """Nobody looks after the claims of pods that are done."""

    def release(_self: ResourceClaimController, _pod: Pod) -> None:
        return

    patch.setattr(ResourceClaimController, "_release_claims", release)


def forget_rates(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Limiter, "free_at", lambda _self, since: since)


def forget_rates_of_nodes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(NodeRations, "of", lambda _self, node, taint: (f"{node}/{taint.key}", None))


def forget_tolerations(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(causes, "tolerations_of", lambda _claim, _result: ())


def forget_to_cancel(patch: pytest.MonkeyPatch) -> None:
    """A rule that is gone goes on."""
    note = DevicePlanner.note
    patch.setattr(DevicePlanner, "note", lambda self, event: None if isinstance(event, Remove) else note(self, event))


def forget_uids(patch: pytest.MonkeyPatch) -> None:
    """Whoever has the name is deleted."""
    delete = Connection.delete

    async def anybody(
        self: Connection, kind: Kind, namespace: str, name: str, options: DeleteOptions | None = None
    ) -> None:
        await delete(self, kind, namespace, name, replace(options, preconditions=None) if options is not None else None)

    patch.setattr(Connection, "delete", anybody)


def make_anybody_go(patch: pytest.MonkeyPatch) -> None:
    """Pods go for others that are no more important."""

    def find_anybody(cluster: Cluster, pod: PodInfo, options: Options, refused: Refused) -> Refused:
        spec = replace(pod.pod.spec, priority=2000, preemption_policy=None)
        return find_victims(cluster, replace(pod, pod=replace(pod.pod, spec=spec)), options, refused)

    patch.setattr(scheduler, "find_victims", find_anybody)


def make_nobody_go(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scheduler, "find_victims", lambda _cluster, _pod, _options, refused: refused)


def forget_company(patch: pytest.MonkeyPatch) -> None:
    """What pods say about each other is not read."""
    patch.setattr(pod_info, "read_terms", lambda _pod: None)


@pytest.mark.parametrize(
    ("broken", "day", "sign", "first"),
    [
        (ignore_versions, RUSH, "", 11),
        (give_devices_twice, RUSH, "given away more than once|too much|overdrawn", 4),
        (forget_what_is_in_flight, ONE_SCHEDULER, "given away more than once|too much|overdrawn", 0),
        (forget_finalizer, BAD_DAY, "without finalizer", 0),
        (forget_to_release, BAD_DAY, "", 0),
        (forget_rates, CROWDED, "pods were evicted within", 0),
        (forget_rates_of_nodes, DRAINS, "pods were evicted within .* for rated-nodes", 0),
        (forget_tolerations, BAD_DAY, "evicted without a reason", 2),
        (forget_to_cancel, BAD_DAY, "", 18),
        (forget_uids, REPLACEMENTS, "without a reason", 11),
        (make_anybody_go, SCARCE, "kube-scheduler deletes pod .* without a reason", 0),
        (make_nobody_go, SCARCE, "has room without", 7),
        (forget_company, COMPETITION, "there is one already|and another node", 0),
    ],
)
def test_a_guard_that_is_missing_is_missed(
    broken: Break, day: Day, sign: str, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Days begin with one that is known to notice: to get there took a minute of processor time in all."""
    broken(monkeypatch)
    for seed in range(first, first + ATTEMPTS):
        problems = simulate(seed, day).problems
        if problems:
            assert re.search(sign, problems[0]), problems
            return
    pytest.fail(f"nobody noticed in {ATTEMPTS} days")
