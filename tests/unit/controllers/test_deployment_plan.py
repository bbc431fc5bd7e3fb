"""Rolling updates never leave their limits, and always get to the end."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from controller_world import manifest, typed
from dray.api.generated.apps import Deployment, ReplicaSet
from dray.controllers.deployment.plan import bounds, plan
from dray.controllers.deployment.replica_sets import make, size, size_marks_of


def deployment(image: str, replicas: int, surge: Any, unavailable: Any) -> Deployment:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": image}]}}
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": template,
        "strategy": strategy,
    }
    made: Deployment = typed(manifest("apps/v1", "Deployment", "web", meta={"uid": "web"}, spec=spec))
    return made


def replica_set(image: str, replicas: int, available: int) -> ReplicaSet:
    made = make(deployment(image, replicas, 1, 0), replicas, {})
    made = replace(made, metadata=replace(made.metadata, uid=image, creation_timestamp=None))
    return replace(made, status=replace(made.status, replicas=replicas, available_replicas=available))


def scaled(sets: list[ReplicaSet], scale: Any) -> list[ReplicaSet]:
    return [replace(one, spec=replace(one.spec, replicas=scale.get(one.metadata.uid, size(one)))) for one in sets]


shares = st.one_of(st.integers(0, 12), st.integers(0, 100).map(lambda share: f"{share}%"))


@given(
    replicas=st.integers(0, 12),
    surge=shares,
    unavailable=shares,
    old=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=3),
    new=st.one_of(st.none(), st.tuples(st.integers(0, 12), st.integers(0, 12))),
)
def test_one_step_stays_within_the_limits(
    replicas: int, surge: Any, unavailable: Any, old: list[tuple[int, int]], new: tuple[int, int] | None
) -> None:
    wanted = deployment("new", replicas, surge, unavailable)
    limits = bounds(wanted)
    sets = [replica_set(f"old{at}", count, min(count, up)) for at, (count, up) in enumerate(old)]
    if new is not None:
        sets.append(replica_set("new", new[0], min(new)))
    todo = plan(wanted, sets, old_pods_left=False)
    after = scaled(sets, todo.scale)
    total_before = sum(map(size, sets))
    total = sum(map(size, after)) + (size(todo.create) if todo.create is not None else 0)
    assert total <= max(total_before, replicas + limits.surge)
    kept = sum(min(one.status.available_replicas, size(one)) for one in after)
    before = sum(one.status.available_replicas for one in sets)
    assert kept >= min(before, replicas - limits.unavailable)


@given(before=st.integers(0, 10), replicas=st.integers(0, 10), surge=shares, unavailable=shares, broken=st.booleans())
def test_a_rollout_ends(before: int, replicas: int, surge: Any, unavailable: Any, broken: bool) -> None:
    """Pods of the new ReplicaSet become available after each step; those of a broken old one never were."""
    wanted = deployment("new", replicas, surge, unavailable)
    sets = [replica_set("old", before, 0 if broken else before)]
    for _ in range(60):
        todo = plan(wanted, sets, old_pods_left=False)
        sets = scaled(sets, todo.scale)
        if todo.create is not None:
            created = todo.create
            sets.append(replace(created, metadata=replace(created.metadata, uid="new")))
        sets = [
            replace(one, status=replace(one.status, replicas=size(one), available_replicas=available))
            for one in sets
            for available in [size(one) if one.metadata.uid == "new" or not broken else 0]
        ]
    assert {one.metadata.uid: size(one) for one in sets} == {"old": 0, "new": replicas}


def sized_for(one: ReplicaSet, wanted: Deployment) -> ReplicaSet:
    marks = size_marks_of(wanted, bounds(wanted).surge)
    return replace(one, metadata=replace(one.metadata, annotations={**one.metadata.annotations, **marks}))


@pytest.mark.parametrize(
    ("sizes", "replicas", "expected"),
    [
        ((3, 2), 8, (6, 4)),  # halfway, and stuck: both grow
        ((3, 2), 2, (2, 1)),
        ((3, 2), 0, (0, 0)),
        ((5, 0), 8, (8, 0)),
        ((0, 4), 8, (0, 8)),
    ],
)
def test_a_rollout_that_is_halfway_is_resized_in_proportion(
    sizes: tuple[int, int], replicas: int, expected: tuple[int, int]
) -> None:
    before, after = deployment("new", 4, "25%", "25%"), deployment("new", replicas, "25%", "25%")
    old, new = replica_set("old", sizes[0], sizes[0]), replica_set("new", sizes[1], 0)
    sets = [sized_for(one, before) for one in (old, new)]
    assert tuple(map(size, scaled(sets, plan(after, sets, old_pods_left=False).scale))) == expected


@given(
    before=st.integers(1, 12),
    replicas=st.integers(0, 24),
    surge=shares,
    sizes=st.lists(st.integers(0, 12), min_size=2, max_size=4),
)
def test_another_size_is_shared_out_whole(before: int, replicas: int, surge: Any, sizes: list[int]) -> None:
    was, wanted = deployment("new", before, surge, 1), deployment("new", replicas, surge, 1)
    sets = [sized_for(replica_set(f"old{at}", count, 0), was) for at, count in enumerate(sizes)]
    in_use = sum(count > 0 for count in sizes)
    after = [size(one) for one in scaled(sets, plan(wanted, sets, old_pods_left=False).scale)]
    assert min(after) >= 0
    if before != replicas and in_use > 1:
        assert sum(after) == (replicas + bounds(wanted).surge if replicas else 0)
        assert all(was or not now for was, now in zip(sizes, after, strict=True))
