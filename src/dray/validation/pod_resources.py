"""What a pod asks for as a whole: all its containers at once, or an init container before them, whichever is more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from dray.api.generated.core import Container, PodSpec
from dray.api.quantity import Quantity
from dray.api.sharing import remembered

ZERO: Final = Quantity.of_int(0)
_OF_PODS: Final = ("cpu", "memory")
"""What a pod can ask for as a whole, whatever its containers ask for."""

Amounts = dict[str, Quantity]


@remembered
def requests_of(spec: PodSpec) -> Mapping[str, Quantity]:
    """The requests, without the overhead of its runtime."""
    return _total(spec, limits=False)


@remembered
def limits_of(spec: PodSpec) -> Mapping[str, Quantity]:
    """The limits, without the overhead of its runtime."""
    return _total(spec, limits=True)


def _total(spec: PodSpec, *, limits: bool) -> Amounts:
    total = _at_its_peak(spec, limits=limits)
    if spec.resources is not None:
        own = spec.resources.limits if limits else spec.resources.requests
        total.update((name, own[name]) for name in _OF_PODS if name in own)
    return total


def _at_its_peak(spec: PodSpec, *, limits: bool) -> Amounts:
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers:
        asked = _amounts(container, limits=limits)
        if container.restart_policy == "Always":
            sidecars = total_of((sidecars, asked))
            asked = {}
        peak = _larger(peak, total_of((sidecars, asked)))
    running = total_of((sidecars, *(_amounts(container, limits=limits) for container in spec.containers)))
    return _larger(running, peak)


def _amounts(container: Container, *, limits: bool) -> Mapping[str, Quantity]:
    return container.resources.limits if limits else container.resources.requests


def total_of(parts: Iterable[Mapping[str, Quantity]]) -> Amounts:
    """Amounts added up."""
    total: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total[name] + amount if name in total else amount
    return total


def _larger(first: Amounts, second: Amounts) -> Amounts:
    return {name: max(first.get(name, ZERO), second.get(name, ZERO)) for name in {**first, **second}}
