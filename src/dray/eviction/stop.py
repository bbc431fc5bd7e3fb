"""One switch that stops all evictions of a cluster at once: an annotation of the namespace kube-system. Pure."""

from __future__ import annotations

from typing import Final

from dray.api.generated.core import Namespace
from dray.api.well_known import SYSTEM_NAMESPACE

PLACE: Final = SYSTEM_NAMESPACE
STOP_ANNOTATION: Final = "dray.dev/stop-evictions"
"""Anything but `false`: nobody leaves, whatever taints, rules and drains say; new work is kept away as before."""


def is_stopped(namespace: Namespace | None) -> bool:
    """Whether somebody said stop."""
    return namespace is not None and namespace.metadata.annotations.get(STOP_ANNOTATION, "false") != "false"
