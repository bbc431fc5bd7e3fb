"""Every pairing of dray's components and Kubernetes' own does what a control plane for devices must do.

Needs Kubernetes' binaries (`make peers PEERS=dir`). Without them dray's own three are tried alone, in `make soak`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

import pytest

from peer_processes import ApiServer, dray_server, dray_servers_on_etcd, kube_apiserver, peers_directory
from peer_scenarios import scenarios
from peer_world import World

PEERS = peers_directory()

GATES = "--feature-gates=DRADeviceTaintRules=true"
WITHOUT_NODE_HEALTH = "*,-node-lifecycle-controller"
"""There are no kubelets, so nodes are silent, and would be taken for dead."""


class Pairing(NamedTuple):
    """Whose API server, scheduler and controllers work together."""

    server: str
    scheduler: str
    controllers: str

    def __str__(self) -> str:
        return "-".join(self)


ON_ETCD = "two dray servers on etcd"
PAIRINGS = [Pairing(*names) for names in itertools.product(("dray", "kubernetes"), repeat=3)]
PAIRINGS.append(Pairing(ON_ETCD, "kubernetes", "kubernetes"))
MARKS = [pytest.mark.soak] if PEERS is None else []


def _api_server(whose: str, peers: Path, directory: Path) -> AbstractContextManager[ApiServer]:
    if whose == ON_ETCD:
        return dray_servers_on_etcd(peers, directory)
    return dray_server(peers, directory) if whose == "dray" else kube_apiserver(peers, directory, GATES)


@pytest.fixture(scope="module", params=[pytest.param(each, marks=MARKS) for each in PAIRINGS], ids=str)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    pairing: Pairing = request.param
    if PEERS is None and set(pairing) != {"dray"}:
        pytest.skip("PEERS names no directory with kube-apiserver and etcd")
    directory = tmp_path_factory.mktemp(str(pairing))
    with _api_server(pairing.server, PEERS or Path(), directory) as found:
        if pairing.scheduler == "dray":
            found.start_dray("scheduler")
        else:
            found.start_component("kube-scheduler", GATES)
        if pairing.controllers == "dray":
            found.start_dray("controllers", "--controllers", WITHOUT_NODE_HEALTH, "--max-evictions", "none")
        else:
            flags = ("--use-service-account-credentials", f"--controllers={WITHOUT_NODE_HEALTH}")
            found.start_component("kube-controller-manager", GATES, *flags)
        yield found


@pytest.mark.parametrize("scenario", list(scenarios()), ids=lambda scenario: scenario.__name__)
def test_pairing(server: ApiServer, scenario: Callable[[World], None]) -> None:
    scenario(World(server))
