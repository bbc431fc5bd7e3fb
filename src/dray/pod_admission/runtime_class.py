"""RuntimeClass: what the runtime of a pod needs for itself, and on which nodes there is such a runtime."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from dray.api.generated.core import PodSpec, Toleration
from dray.api.generated.node import RuntimeClass

OTHER_OVERHEAD = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
NO_OVERHEAD = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


class Mismatch(Exception):
    """A pod says something else than its class; the text says what."""


def with_class(spec: PodSpec, runtime: RuntimeClass) -> PodSpec:
    """The spec with the overhead and the nodes of its class. Raises Mismatch."""
    changes: dict[str, Any] = {}
    if runtime.overhead is not None:
        if spec.overhead and spec.overhead != runtime.overhead.pod_fixed:
            raise Mismatch(OTHER_OVERHEAD)
        changes["overhead"] = runtime.overhead.pod_fixed
    if runtime.scheduling is not None:
        for key, value in runtime.scheduling.node_selector.items():
            own = spec.node_selector.get(key, value)
            if own != value:
                raise Mismatch(
                    f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                    f"pod.spec.nodeSelector[{key}] = {own}"
                )
        changes["node_selector"] = {**spec.node_selector, **runtime.scheduling.node_selector}
        changes["tolerations"] = _merged(spec.tolerations, runtime.scheduling.tolerations)
    return replace(spec, **changes) if changes else spec


def check_overhead(spec: PodSpec, runtime: RuntimeClass | None) -> None:
    """Whether the overhead is that of the class. Raises Mismatch."""
    if runtime is not None and runtime.overhead is not None:
        if spec.overhead != runtime.overhead.pod_fixed:
            raise Mismatch(OTHER_OVERHEAD)
    elif spec.overhead:
        raise Mismatch(NO_OVERHEAD)


def _merged(first: tuple[Toleration, ...], second: tuple[Toleration, ...]) -> tuple[Toleration, ...]:
    """All tolerations but those that another one makes needless."""
    every = [*first, *second]
    kept: list[Toleration] = []
    for index, one in enumerate(every):
        # Of two that say the same, the first stays.
        others = [*kept, *(later for later in every[index + 1 :] if later != one)]
        if not any(_covers(other, one) for other in others):
            kept.append(one)
    return tuple(kept)


def _covers(wide: Toleration, narrow: Toleration) -> bool:
    """Whether whatever the narrow one tolerates, the wide one tolerates, for at least as long."""
    if wide.key and wide.key != narrow.key:
        return False
    if wide.effect and wide.effect != narrow.effect:
        return False
    if wide.toleration_seconds is not None and (
        narrow.toleration_seconds is None or wide.toleration_seconds < narrow.toleration_seconds
    ):
        return False
    if wide.operator == "Exists":
        return True
    return wide.key == narrow.key and narrow.operator == wide.operator and wide.value == narrow.value
