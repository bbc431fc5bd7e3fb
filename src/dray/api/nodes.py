"""What nodes are marked with, and what follows from that and from their status alone."""

from __future__ import annotations

from typing import Final

from dray.api.conditions import READY, find_condition, is_true
from dray.api.generated.core import Node

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
QUARANTINE_SECONDS: Final = 40.0
"""So long a node is missing before its pods are removed: it may be about to register again."""
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"

SIMULATED: Final = "dray.dev/simulated"
"""Label: `true` on nodes that only pretend, and on slices that were published for them."""
SERVING_CERTIFICATE: Final = "dray.dev/serving-certificate"
"""The annotation in which a node says by what its certificate is to be known: a fingerprint."""
WEBSOCKETS: Final = "ExtendWebSocketsToKubelet"
"""The feature of a node that speaks WebSockets with clients itself, so that an API server need not translate."""


def is_simulated(node: Node) -> bool:
    """Whether nothing runs on the node: somebody plays its kubelet."""
    return node.metadata.labels.get(SIMULATED) == "true"


def is_ready(node: Node) -> bool:
    """Whether the node says that it can run pods."""
    return is_true(node.status.conditions, READY)


def is_known_unready(node: Node) -> bool:
    """Whether the node, or who watches over it, says that it cannot run pods. A node that says nothing may be ready:
    manifests leave the status out, and servers taint new nodes until they have spoken."""
    ready = find_condition(node.status.conditions, READY)
    if ready is not None and ready.status != "True":
        return True
    keeping = [taint.key for taint in node.spec.taints if taint.effect != "PreferNoSchedule"]
    return NOT_READY in keeping or UNREACHABLE in keeping
