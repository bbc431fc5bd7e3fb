"""How a new template of a StatefulSet spreads: from the highest number down to the partition. Pure."""

from __future__ import annotations

from dray.api.generated.apps import StatefulSet
from dray.api.generated.core import Pod
from dray.api.shares import resolve
from dray.controllers.stateful_set.members import ordinals, revision_of
from dray.controllers.stateful_set.plan import PARALLEL, StatefulSetState

ROLLING = "RollingUpdate"


def partition_of(stateful_set: StatefulSet) -> int:
    """How many pods, from the lowest number, keep the template that they have."""
    rolling = stateful_set.spec.update_strategy.rolling_update
    return (rolling.partition or 0) if rolling is not None else 0


def uses_current(stateful_set: StatefulSet, ordinal: int) -> bool:
    """Whether a pod that has to be made anew during an update comes from the template before."""
    strategy = stateful_set.spec.update_strategy
    start = ordinals(stateful_set).start
    if strategy.rolling_update is not None:
        return ordinal < start + partition_of(stateful_set)
    return strategy.type == ROLLING and ordinal < start + stateful_set.status.current_replicas


def plan_rollout(state: StatefulSetState) -> tuple[Pod, ...]:
    """The pods that go next to be made anew: as many as may be away, from the highest number.

    When all come at once, old pods that do not work anyway go at once, too.
    """
    stateful_set = state.stateful_set
    if stateful_set.spec.update_strategy.type != ROLLING:
        return ()
    numbers = ordinals(stateful_set)
    updated = numbers[partition_of(stateful_set) :]
    away = len(numbers) - sum(number in numbers and state.works(pod) for number, pod in state.pods.items())
    old = [
        pod
        for number, pod in sorted(state.pods.items(), reverse=True)
        if number in updated and revision_of(pod) != state.update and pod.metadata.deletion_timestamp is None
    ]
    room = max(_allowed(stateful_set) - away, 0)
    if stateful_set.spec.pod_management_policy != PARALLEL:
        return tuple(old[:room])
    useless = [pod for pod in old if not state.works(pod)]
    return (*useless, *[pod for pod in old if state.works(pod)][:room])


def _allowed(stateful_set: StatefulSet) -> int:
    """How many pods may be away during an update."""
    rolling = stateful_set.spec.update_strategy.rolling_update
    if rolling is None or rolling.max_unavailable is None:
        return 1
    return max(resolve(rolling.max_unavailable, len(ordinals(stateful_set)), up=False), 1)
