"""How many pods of a group there are, and have nodes, is known at any time without looking at all of them: a group may
have thousands, and each of their events asks (issue 14)."""

from __future__ import annotations

import random
from typing import Any

import pytest

import builders
from dray.api.generated.core import Pod
from dray.api.references import ObjectName
from dray.scheduling.cluster import Cluster
from dray.scheduling.pod_info import read_pod

GROUPS = ("a", "b")


def _pod(uid: str, choice: random.Random) -> Pod:
    spec: dict[str, Any] = {"schedulingGates": [{"name": "wait"}]} if choice.random() < 0.3 else {}
    if (group := choice.choice((*GROUPS, ""))) != "":
        spec["schedulingGroup"] = {"podGroupName": group}
    leaves = {"deletionTimestamp": "2026-06-01T12:00:00Z"} if choice.random() < 0.2 else {}
    phase = choice.choice(("Pending", "Running", "Succeeded"))
    node = choice.choice(("", "node-1"))
    return builders.typed(
        builders.pod(uid, node=node, meta={"uid": uid, **leaves}, status={"phase": phase}, **spec), Pod
    )


@pytest.mark.parametrize("seed", range(20))
def test_what_is_counted_is_what_there_is(seed: int) -> None:
    choice = random.Random(seed)
    cluster = Cluster()
    assumed: list[Pod] = []
    for _ in range(200):
        uid = f"pod-{choice.randrange(12)}"
        pod = None if choice.random() < 0.2 else _pod(uid, choice)
        cluster.set_pod(pod, uid)
        if pod is not None and not pod.spec.node_name and choice.random() < 0.5:
            cluster.assume(read_pod(pod), "node-2", {})
            assumed.append(pod)
        if assumed and choice.random() < 0.3:
            cluster.take_back(read_pod(assumed.pop(choice.randrange(len(assumed)))), {})
        for group in GROUPS:
            name = ObjectName("default", group)
            members = cluster.groups.members(name).values()
            assert cluster.groups.number_placed(name) == len(cluster.nodes_of_group(name))
            assert cluster.groups.number_without_gates(name) == sum(not one.spec.scheduling_gates for one in members)
