"""What a StatefulSet costs is what there is of it, however many pods somebody asks for."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from builders import pod, typed, workload
from dray.api.generated.apps import StatefulSet
from dray.api.generated.core import Pod
from dray.api.times import Time
from dray.controllers.stateful_set.plan import MAX_AT_ONCE, observe, plan
from dray.controllers.stateful_set.rollout import plan_rollout

NOW = Time.parse("2026-01-02T03:04:05Z")
MOST = 2**31 - 1


def of(count: int, **spec: Any) -> StatefulSet:
    return typed(workload("db", count, kind="StatefulSet", serviceName="db", **spec), StatefulSet)


class Numbers:
    """Numbers that are stale; fails if too many are asked for."""

    def __init__(self, *stale: int) -> None:
        self._stale = stale
        self._asked = itertools.count()

    def __contains__(self, number: object) -> bool:
        assert next(self._asked) < 10 * MAX_AT_ONCE
        return number in self._stale


@pytest.mark.parametrize("policy", ["Parallel", "OrderedReady"])
@pytest.mark.parametrize("start", [0, MOST])
def test_two_thousand_million_pods_are_made_a_few_at_a_time(policy: str, start: int) -> None:
    wanted = of(MOST, podManagementPolicy=policy, ordinals={"start": start})
    there = [typed(pod(f"db-{start + number}"), Pod) for number in (0, 2)]
    state = observe(wanted, there, "new", NOW, Numbers(start + 3))
    todo = plan(state)
    if policy == "Parallel":
        assert todo.create[:3] == (start + 1, start + 4, start + 5)
        assert len(todo.create) == MAX_AT_ONCE
    else:
        assert todo.create == ()  # the first does not work yet
    assert [one.metadata.name for one in plan_rollout(state)] in ([], [f"db-{start + 2}", f"db-{start}"])


def test_only_those_above_the_partition_are_renewed() -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2, "maxUnavailable": "100%"}}
    there = [typed(pod(f"db-{number}"), Pod) for number in range(5)]
    state = observe(of(5, updateStrategy=rolling, podManagementPolicy="Parallel"), there, "new", NOW)
    assert [one.metadata.name for one in plan_rollout(state)] == ["db-4", "db-3", "db-2"]
