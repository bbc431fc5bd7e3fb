"""What is remembered of a node's room is what a node that nobody asked before says."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import builders
from dray.api.generated.core import Node
from dray.scheduling.filters import resources
from dray.scheduling.node_info import NodeInfo
from dray.scheduling.pod_info import PodInfo, read_pod
from local_server import typed

NODE = builders.manifest("v1", "Node", "n", "", status={"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "5"}})
LARGER = builders.manifest("v1", "Node", "n", "", status={"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "9"}})


def node_of(manifest: builders.Manifest) -> Node:
    node = typed(manifest)
    assert isinstance(node, Node)
    return node


def asking(name: str, cpu: str) -> PodInfo:
    pod: Any = builders.pod(name)
    pod["metadata"]["uid"] = name
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu, "memory": "1Gi"}}
    made: Any = typed(pod)
    return read_pod(made)


SMALL, BIG = asking("small", "1"), asking("big", "3")
STEPS = st.lists(st.sampled_from(["add", "remove", "grow", "shrink", "ask small", "ask big"]), max_size=20)


@given(STEPS)
def test_room_is_as_if_nobody_had_asked_before(steps: list[str]) -> None:
    info, node, number = NodeInfo(node_of(NODE)), NODE, 0
    for step in steps:
        if step == "add":
            number += 1
            info.add(asking(f"p{number}", "500m"))
        elif step == "remove" and info.pods:
            info.remove(next(iter(info.pods)))
        elif step in ("grow", "shrink"):
            node = LARGER if step == "grow" else NODE
            info.update(node_of(node))
        elif step.startswith("ask"):
            asked = SMALL if step == "ask small" else BIG
            fresh = NodeInfo(node_of(node))
            for pod in info.pods.values():
                fresh.add(pod)
            assert info.room_left(asked.requests) == fresh.room_left(asked.requests)
            assert resources.check(asked, info) == resources.check(asked, fresh)
