"""What is different for DaemonSets: the nodes that get a pod or lose it, because nodes or the DaemonSet are others.

Which nodes a DaemonSet is for is judged by what its controller asks (`scheduling.daemon_nodes`); whether its pod fits
there, by the scheduler. Pods that NoExecute taints make leave, and those of nodes that are gone, are told as evictions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from dray.api.generated.apps import DaemonSet
from dray.api.generated.core import Node, Pod
from dray.api.meta import Object
from dray.scheduling.daemon_nodes import DaemonNodes, spec_for, target_of
from dray.snapshot.snapshot import Snapshot
from dray.what_if.node_changes import Pairs
from dray.what_if.rollout import Bounds
from dray.what_if.workload_changes import MAX_TRIED, Pair, WorkloadChange, try_pods
from dray.what_if.workloads import ActivePods, pod_of, title


def compare_daemons(
    differing: Collection[Pair], nodes: Pairs, before: Snapshot, after: Snapshot
) -> Iterator[WorkloadChange]:
    """DaemonSets whose pods come or go."""
    gone = [here for here, there in differing if isinstance(here, DaemonSet) and there is None]
    changed = {id(there): here for here, there in differing if isinstance(there, DaemonSet)}
    touched = {*nodes, *(target_of(here) for here, there in differing if isinstance(here, Pod) and there is None)}
    for daemon_set in gone:
        had = len(ActivePods(before).of(daemon_set))
        yield WorkloadChange(workload=title(daemon_set), pods=had, wanted=0)
    concerned = [one for one in after.objects(DaemonSet) if touched or id(one) in changed]
    if not concerned:
        return
    pods, every = ActivePods(after), list(after.objects(Node))
    some = [node for node in every if node.metadata.name in touched]
    for daemon_set in concerned:
        is_different = id(daemon_set) in changed
        old = changed.get(id(daemon_set), daemon_set)
        yield from _change(old, daemon_set, pods.of(daemon_set), every if is_different else some, after)


def _change(
    old: Object | None, daemon_set: DaemonSet, pods: Sequence[Pod], nodes: Sequence[Node], after: Snapshot
) -> Iterator[WorkloadChange]:
    """What the controller does next on these nodes: nothing, if each has what it should have."""
    has = {target_of(pod): pod for pod in pods}
    judge = DaemonNodes(daemon_set).judge
    verdicts = {node.metadata.name: judge(node) for node in nodes}
    comes = [name for name, verdict in verdicts.items() if verdict.should_run and name not in has]
    goes = [name for name, verdict in verdicts.items() if not verdict.may_stay and name in has]
    is_new = isinstance(old, DaemonSet) and _is_new(old, daemon_set)
    anew = [name for name, verdict in verdicts.items() if is_new and verdict.may_stay and name in has]
    if not comes and not goes and not anew:
        return
    made = [pod_of(daemon_set, number, spec_for(daemon_set, name)) for number, name in enumerate([*comes, *anew])]
    leave = [has[name] for name in (*goes, *anew)]
    told = try_pods(after, made[:MAX_TRIED], leave, Bounds(len(made), 0, len(made)))
    yield WorkloadChange(
        workload=title(daemon_set),
        pods=len(has),
        wanted=len(has) + len(comes) - len(goes),
        replaced=bool(anew),
        fitting=told.fitting,
        tried=told.tried,
        why_not=told.why_not,
        victims=told.victims,
        comes_to=tuple(comes),
        goes_from=tuple(goes),
    )


def _is_new(here: DaemonSet, there: DaemonSet) -> bool:
    """Whether pods are made anew because the template is another one."""
    return here.spec.template != there.spec.template and there.spec.update_strategy.type != "OnDelete"
