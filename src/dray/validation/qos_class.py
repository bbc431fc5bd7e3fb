"""The class of service of a pod: which pods a node under pressure gives up first."""

from __future__ import annotations

from typing import Final

from dray.api.generated.core import PodSpec
from dray.api.pods import containers_of
from dray.api.quantity import Quantity

COMPUTE: Final = ("cpu", "memory")


def qos_class(spec: PodSpec) -> str:
    """Guaranteed if every container limits cpu and memory to what it requests, BestEffort if nobody asks for any."""
    asks = spec.resources is not None and _asks(spec.resources.requests, spec.resources.limits)
    containers = containers_of(spec)
    if spec.resources is not None and asks:
        guaranteed = _is_guaranteed(spec.resources.requests, spec.resources.limits)
        return "Guaranteed" if guaranteed else "Burstable"
    if not any(_asks(entry.resources.requests, entry.resources.limits) for entry in containers):
        return "BestEffort"
    if all(_is_guaranteed(entry.resources.requests, entry.resources.limits) for entry in containers):
        return "Guaranteed"
    return "Burstable"


def _asks(requests: dict[str, Quantity], limits: dict[str, Quantity]) -> bool:
    return any(amounts[name].nanos > 0 for amounts in (requests, limits) for name in COMPUTE if name in amounts)


def _is_guaranteed(requests: dict[str, Quantity], limits: dict[str, Quantity]) -> bool:
    return all(
        name in limits and limits[name].nanos > 0 and requests.get(name, limits[name]) == limits[name]
        for name in COMPUTE
    )
