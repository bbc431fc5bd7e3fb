"""Three API servers on one simulated etcd that have bad days: answers get lost, writes come late, leaders change.

Every seed is one day, the same every time. `DRAY_SEED=17 pytest tests/faults/test_server_groups.py` lives through it;
`python -m soak.days --kind servers` lives through many.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from dray.server import transactions as server_transactions
from dray.server.indexes.held_devices import HeldDevices
from dray.server.verbs import reservations
from dray.store import ITSELF
from fault_simulation import server_group
from fault_simulation.etcd_network import CALM
from fault_simulation.guards import forget_revisions
from fault_simulation.network import Faults
from fault_simulation.seeds import seeds
from fault_simulation.simulation import SEVERAL_SERVERS, Day, several_servers, simulate

ATTEMPTS = 20

RUSH = Day(
    servers=3,
    elections=0.1,
    steps=12,
    nodes=2,
    schedulers=3,
    kills=0,
    restarts=0,
    jumps=0,
    faults=Faults(slow=0.5, lose=0.1, stall=0.3),
    haste=12,
    habits={"create_pod": 40, "kill_pod": 30, "stop_node": 0, "taint_node": 0, "withdraw_slice": 0},
)
"""More pods than devices, and three schedulers that want to give them what they wait for."""


@pytest.mark.parametrize("seed", seeds(range(5)))
def test_whatever_fails_several_servers_are_as_good_as_one(seed: int) -> None:
    """Of two to four servers; on days 0 and 20, among others, their clocks differ."""
    assert simulate(seed, several_servers(seed)).problems == ()


def test_a_day_with_several_servers_is_the_same_again() -> None:
    short = replace(SEVERAL_SERVERS, steps=6)
    assert simulate(3, short).trace == simulate(3, short).trace


def forget_guards(patch: pytest.MonkeyPatch) -> None:
    """Allocations are compared with what is seen here alone, and that is often old."""
    patch.setattr(server_group, "STORM", replace(CALM, stall=0.7))
    patch.setattr(HeldDevices, "basis", lambda _self, _claims: ITSELF)


def forget_reservations(patch: pytest.MonkeyPatch) -> None:
    """A pod may get its node while somebody lets go of its claims, where each is written by itself, as over HTTP."""
    patch.setattr(server_transactions, "are_possible", lambda _engine: False)
    patch.setattr(reservations, "is_judged", lambda _call: False)


@pytest.mark.parametrize(
    ("broken", "day", "first"),
    [
        (forget_revisions, RUSH, 0),
        (forget_guards, RUSH, 28),
        (forget_reservations, replace(RUSH, steps=16, habits={**RUSH.habits, "kill_pod": 10}), 237),
    ],
)
def test_what_is_missing_is_missed(
    broken: Callable[[pytest.MonkeyPatch], None], day: Day, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    for seed in range(first, first + ATTEMPTS):
        try:
            if simulate(seed, day).problems:
                return
        except Exception:
            return  # something fell over
    pytest.fail(f"nobody noticed in {ATTEMPTS} days")
