"""One switch that stops all evictions of a cluster at once: an annotation of the namespace kube-system. Pure.

Only dray's controllers and drains know it. Where those of Kubernetes evict, they go on, and that is said.
"""

from __future__ import annotations

from typing import Final

from dray.api.generated.core import Namespace
from dray.api.well_known import SYSTEM_NAMESPACE
from dray.eviction.told_limit import LIMIT_ANNOTATION

PLACE: Final = SYSTEM_NAMESPACE
STOP_ANNOTATION: Final = "dray.dev/stop-evictions"
"""Anything but `false`: nobody leaves, whatever taints, rules and drains say; new work is kept away as before."""
OTHERS_GO_ON: Final = (
    "kube-controller-manager does not know that switch: "
    "where its eviction controllers run, NoExecute taints go on evicting"
)


def is_stopped(namespace: Namespace | None) -> bool:
    """Whether somebody said stop."""
    return namespace is not None and namespace.metadata.annotations.get(STOP_ANNOTATION, "false") != "false"


def all_are_stopped(namespace: Namespace | None) -> bool:
    """Whether that is so for taints, too: who evicts for them is dray, whose controllers have told their limit."""
    return namespace is not None and is_stopped(namespace) and LIMIT_ANNOTATION in namespace.metadata.annotations


def tell_stop(namespace: Namespace | None) -> str:
    """Who does not leave any more; empty if nobody said stop."""
    if not is_stopped(namespace):
        return ""
    if all_are_stopped(namespace):
        return "all evictions are stopped: nobody leaves until `dray stop-evictions --resume`"
    return f"evictions by dray are stopped until `dray stop-evictions --resume`; {OTHERS_GO_ON}"
