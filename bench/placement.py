"""Placement: 2,000 clusters, 500 placements, from scratch and event by event. `python -m bench.placement` prints.

Three fleets: `split` has 20 cluster sets of which each namespace sees a few; `large` is the same with 20,000 clusters
and 2,000 placements; in `wide` every placement chooses from every cluster, which is the worst case for an event.
"""

from __future__ import annotations

import datetime as dt
import gc
import json
import random
import statistics
import time
from collections.abc import Iterator

from msgspec.structs import replace

from dray.api.cluster import (
    ClusterPredicate,
    ClusterSelector,
    ManagedCluster,
    ManagedClusterClaim,
    ManagedClusterSet,
    ManagedClusterSetBinding,
    ManagedClusterSetBindingSpec,
    ManagedClusterSpec,
    ManagedClusterStatus,
    Placement,
    PlacementSpec,
    PrioritizerConfig,
    PrioritizerPolicy,
    ScoreCoordinate,
    Taint,
    Toleration,
)
from dray.api.cluster.cluster_set import CLUSTER_SET_LABEL
from dray.api.meta import LabelSelector, ObjectMeta
from dray.api.quantity import Quantity
from dray.api.times import Time
from dray.placement import Engine, Event, FleetObject

CLUSTERS, PLACEMENTS = 2_000, 500
LARGE = (20_000, 2_000)
EVENTS = 40
NOW = dt.datetime(2026, 6, 1, 12, 0, tzinfo=dt.UTC)
REGIONS = ("eu", "us", "ap", "sa")


def run() -> dict[str, float]:
    """All measurements; the names carry the units."""
    results: dict[str, float] = {}
    for name, sets in (("split", 20), ("wide", 1)):
        results |= {f"{name}_{key}": value for key, value in measure(sets).items()}
    results |= {f"large_{key}": value for key, value in measure(20, *LARGE).items()}
    return results


def measure(sets: int, count: int = CLUSTERS, placements: int = PLACEMENTS) -> dict[str, float]:
    """Decide everything, then send events one at a time."""
    rng = random.Random(7)
    clusters = [make_cluster(rng, number, sets) for number in range(count)]
    objects: list[FleetObject] = [*clusters, *make_sets(sets), *make_placements(rng, sets, placements)]
    engine = Engine()
    started = time.perf_counter()
    engine.load(objects, NOW)
    results = {"from_scratch_s": time.perf_counter() - started}
    # The server freezes what it has loaded; a full collection over a fleet would count for some event.
    gc.collect()
    gc.freeze()
    for name, events in make_events(rng, clusters).items():
        spent: list[float] = []
        changed: list[int] = []
        for event in events:
            started = time.perf_counter()
            changed.append(len(engine.apply(event, NOW)))
            spent.append((time.perf_counter() - started) * 1000)
        results[f"{name}_median_ms"] = statistics.median(spent)
        results[f"{name}_worst_ms"] = max(spent)
        results[f"{name}_placements_changed"] = statistics.mean(changed)
    gc.unfreeze()
    return results


def make_cluster(rng: random.Random, number: int, sets: int) -> ManagedCluster:
    """A cluster in one set; one in twenty has taints."""
    cpu = rng.randrange(8, 256)
    taints = (taint("gpu", "NoSelect"),) if rng.random() < 0.05 else ()
    return ManagedCluster(
        metadata=ObjectMeta(
            name=f"cluster-{number:04}",
            labels={CLUSTER_SET_LABEL: f"set-{number % sets}", "region": rng.choice(REGIONS)},
        ),
        spec=ManagedClusterSpec(hub_accepts_client=True, taints=taints),
        status=ManagedClusterStatus(
            capacity={"cpu": Quantity.of_int(256)},
            allocatable={"cpu": Quantity.of_int(cpu)},
            cluster_claims=(ManagedClusterClaim(name="platform", value=rng.choice(("AWS", "GCP"))),),
        ),
    )


def taint(key: str, effect: str) -> Taint:
    """A taint that was added a minute ago."""
    return Taint(key=key, effect=effect, time_added=Time("2026-06-01T11:59:00Z"))


def make_sets(sets: int) -> Iterator[FleetObject]:
    """The sets, each bound to a fifth of the 50 namespaces (a single one to all)."""
    for number in range(sets):
        name = f"set-{number}"
        yield ManagedClusterSet(metadata=ObjectMeta(name=name))
        for namespace in range(50):
            if sets == 1 or (namespace + number) % 5 == 0:
                yield ManagedClusterSetBinding(
                    metadata=ObjectMeta(name=name, namespace=f"team-{namespace}"),
                    spec=ManagedClusterSetBindingSpec(cluster_set=name),
                )


def make_placements(rng: random.Random, sets: int, count: int) -> Iterator[Placement]:
    """A third takes all clusters of a region, a third the best few, a third some with predicates and tolerations."""
    for number in range(count):
        predicates = (
            ClusterPredicate(
                required_cluster_selector=ClusterSelector(
                    label_selector=LabelSelector(match_labels={"region": rng.choice(REGIONS)})
                )
            ),
        )
        spec = (
            PlacementSpec(predicates=predicates if sets > 1 else ()),
            PlacementSpec(number_of_clusters=rng.randrange(1, 10)),
            PlacementSpec(
                number_of_clusters=rng.randrange(1, 10),
                predicates=predicates,
                tolerations=(Toleration(key="gpu", operator="Exists", toleration_seconds=600),),
                prioritizer_policy=by_cpu() if number % 30 == 2 else PrioritizerPolicy(),
            ),
        )[number % 3]
        yield Placement(metadata=ObjectMeta(name=f"app-{number}", namespace=f"team-{number % 50}"), spec=spec)


def by_cpu() -> PrioritizerPolicy:
    """Prefer clusters with free processors."""
    coordinate = ScoreCoordinate(type="BuiltIn", built_in="ResourceAllocatableCPU")
    return PrioritizerPolicy(configurations=(PrioritizerConfig(score_coordinate=coordinate, weight=2),))


def make_events(rng: random.Random, clusters: list[ManagedCluster]) -> dict[str, list[Event]]:
    """Events on clusters without taints: a heartbeat, a taint, its removal, another region."""
    chosen = rng.sample([cluster for cluster in clusters if not cluster.spec.taints], EVENTS)
    tainted = [with_taints(cluster, taint("maintenance", "NoSelect")) for cluster in chosen]
    moved = [with_label(cluster, "region", "moon") for cluster in chosen]
    return {
        "heartbeat": [Event(replace(cluster, metadata=replace(cluster.metadata, generation=2))) for cluster in chosen],
        "taint": [Event(cluster) for cluster in tainted],
        "untaint": [Event(cluster) for cluster in chosen],
        "label": [Event(cluster) for cluster in moved],
        "delete": [Event(cluster, deleted=True) for cluster in moved],
    }


def with_taints(cluster: ManagedCluster, *taints: Taint) -> ManagedCluster:
    """The cluster with these taints."""
    return replace(cluster, spec=replace(cluster.spec, taints=taints))


def with_label(cluster: ManagedCluster, key: str, value: str) -> ManagedCluster:
    """The cluster with a changed label."""
    metadata = replace(cluster.metadata, labels={**cluster.metadata.labels, key: value})
    return replace(cluster, metadata=metadata)


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
