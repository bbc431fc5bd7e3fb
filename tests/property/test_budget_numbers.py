"""Numbers that what-if prints of disruption budgets and Services, counted again from the manifests alone."""

from __future__ import annotations

from datetime import UTC, datetime
from math import ceil
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import builders
import dray
from dray.what_if.difference import compare

Json = dict[str, Any]
NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)

apps = st.sampled_from(["web", "db"])
pods = st.lists(st.tuples(apps, st.booleans(), st.sampled_from(["node-1", "node-2", ""])), max_size=6)
limits = st.one_of(st.integers(0, 4), st.sampled_from(["0%", "34%", "50%", "100%"]))
fields = st.sampled_from(["minAvailable", "maxUnavailable"])
budgets = st.fixed_dictionaries({"app": apps, "field": fields, "limit": limits})


def pod(number: int, app: str, ready: bool, node: str) -> Json:
    """A pod of a ReplicaSet, which runs if it has a node."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": app, "controller": True}
    meta = {"uid": f"uid-{number}", "labels": {"app": app}, "ownerReferences": [owner]}
    conditions = [{"type": "Ready", "status": "True" if ready and node else "False"}]
    status = {"phase": "Running" if node else "Pending", "conditions": conditions}
    return builders.pod(f"p{number}", node=node, meta=meta, status=status)


def budget(app: str, field: str, limit: Any) -> Json:
    spec = {"selector": {"matchLabels": {"app": app}}, field: limit}
    return builders.manifest("policy/v1", "PodDisruptionBudget", "b", spec=spec)


def allowed_by_hand(made: list[Json], replicas: int, app: str, field: str, limit: Any) -> int:
    mine = [one for one in made if one["metadata"]["labels"]["app"] == app]
    healthy = sum(one["status"]["conditions"][0]["status"] == "True" for one in mine)
    is_share = isinstance(limit, str)
    expected = (replicas if mine else 0) if is_share or field == "maxUnavailable" else len(mine)
    number = ceil(expected * int(limit[:-1]) / 100) if is_share else limit
    desired = number if field == "minAvailable" else max(expected - number, 0)
    return max(healthy - desired, 0) if expected else 0


@settings(max_examples=60, deadline=None)
@given(pods, st.integers(0, 6), budgets, budgets)
def test_what_a_budget_allows(drawn: list[tuple[str, bool, str]], replicas: int, old: Json, new: Json) -> None:
    made = [pod(number, *one) for number, one in enumerate(drawn)]
    sets = [builders.workload(app, replicas, kind="ReplicaSet", meta={"uid": app}) for app in ("web", "db")]
    nodes = [builders.node(name, resources={"cpu": "8", "pods": "20"}) for name in ("node-1", "node-2")]
    before = dray.load(*nodes, *sets, *made, budget(**old))
    difference = compare(before, before.with_applied(budget(**new)), NOW)
    if old == new:
        assert not difference.budgets
        return
    (told,) = difference.budgets
    counts = [allowed_by_hand(made, replicas, **one) for one in (old, new)]
    assert [told.before, told.after] == counts
    mine = [one for one in made if one["metadata"]["labels"]["app"] == new["app"]]
    assert told.pods == len(mine)
    ready = {f"default/{one['metadata']['name']}" for one in mine if one["status"]["conditions"][0]["status"] == "True"}
    assert (set(told.held) & ready) == (set() if counts[1] else ready)
    assert set(told.nodes) <= {"node-1", "node-2"}


@settings(max_examples=30, deadline=None)
@given(pods, apps, apps)
def test_how_many_pods_are_behind_a_service(drawn: list[tuple[str, bool, str]], old: str, new: str) -> None:
    def service(app: str) -> Json:
        return builders.manifest("v1", "Service", "s", spec={"selector": {"app": app}, "ports": [{"port": 80}]})

    made = [pod(number, *one) for number, one in enumerate(drawn)]
    before = dray.load(*made, service(old))
    difference = compare(before, before.with_applied(service(new)), NOW)
    behind = [sum(app == one and ready and bool(node) for app, ready, node in drawn) for one in (old, new)]
    assert [(one.before, one.after) for one in difference.services] == ([] if old == new else [tuple(behind)])
