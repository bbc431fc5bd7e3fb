"""What is different for pods: they are deleted, or labelled so that others count them as theirs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dray.allocator.reasons import Report
from dray.api.generated.core import Pod, Service
from dray.api.generated.policy import PodDisruptionBudget
from dray.api.meta import Object
from dray.api.pods import is_active
from dray.api.references import controller_of, full_name
from dray.eviction.budgets import Keepers
from dray.prose.wording import names, told_labels
from dray.snapshot.snapshot import Snapshot
from dray.what_if.service_changes import selects
from dray.what_if.workload_changes import Pair
from dray.what_if.workloads import MAKERS, TAKES, Maker, is_of, owner_of, title

MAKES_ANOTHER = "makes another"
"""A workload that stays makes one in place of it, which is told of as that workload's."""
NOBODY, GOES_TOO, UNKNOWN = "nobody makes another", "its owner goes, too", "not known"


class DeletedPod(Report, frozen=True, kw_only=True):
    """A pod that is gone."""

    pod: str
    node: str
    """Empty if it waited for one."""
    owner: str = ""
    comes_again: str
    """`makes another`, `nobody makes another`, `its owner goes, too`; `not known` of owners nobody here knows."""


class RelabelledPod(Report, frozen=True, kw_only=True):
    """A pod that stays, and is labelled otherwise."""

    pod: str
    labels: tuple[str, ...]
    effects: tuple[str, ...]
    """Which budgets, Services and workloads no longer count it as theirs, or do so now."""
    is_let_go: bool = False
    """Its workload makes another in its place, and nobody makes one in place of this one."""


def deleted_pods(differing: Iterable[Pair], before: Snapshot, after: Snapshot) -> Iterator[DeletedPod]:
    """The pods that are gone, and who makes others in their place."""
    gone = [here for here, there in differing if isinstance(here, Pod) and there is None and is_active(here)]
    if not gone:
        return
    were, are = _makers(before), _makers(after)
    for pod in gone:
        reference = controller_of(pod)
        owner = owner_of(pod, after, are)
        was = owner_of(pod, before, were) if owner is None else owner
        again = MAKES_ANOTHER
        if owner is None:
            again = GOES_TOO if was is not None else UNKNOWN if reference is not None else NOBODY
        named = f"{reference.kind} {pod.metadata.namespace}/{reference.name}" if reference is not None else ""
        yield DeletedPod(
            pod=full_name(pod),
            node=pod.spec.node_name,
            owner=named or (title(was) if was is not None else ""),
            comes_again=again,
        )


def relabelled_pods(differing: Iterable[Pair], after: Snapshot) -> Iterator[RelabelledPod]:
    """The pods that stay with other labels, and who notices."""
    pairs = [
        (here, there)
        for here, there in differing
        if isinstance(here, Pod) and isinstance(there, Pod) and here.metadata.labels != there.metadata.labels
    ]
    if not pairs:
        return
    keepers = Keepers(after.objects(PodDisruptionBudget))
    services = list(after.objects(Service))
    makers = _makers(after)
    for here, there in pairs:
        owner = owner_of(here, after, makers)
        is_let_go = owner is not None and is_of(here, owner) and not is_of(there, owner)
        effects = [
            *_told("under disruption budget", _budgets(keepers, here), _budgets(keepers, there)),
            *_told("behind Service", _services(services, here), _services(services, there)),
        ]
        if owner is not None and is_let_go:
            effects.append(f"{title(owner)} lets it go, and makes another")
        effects += _taken(makers, there, owner if not is_let_go else None)
        yield RelabelledPod(
            pod=full_name(there),
            labels=tuple(told_labels(here.metadata.labels, there.metadata.labels)),
            effects=tuple(effects),
            is_let_go=is_let_go,
        )


def _makers(snapshot: Snapshot) -> list[Maker]:
    return [one for one in snapshot.objects(Object) if isinstance(one, MAKERS)]


def _told(how: str, before: set[str], after: set[str]) -> Iterator[str]:
    if before - after:
        yield f"no longer {how} {names(sorted(before - after), 5)}"
    if after - before:
        yield f"now {how} {names(sorted(after - before), 5)}"


def _budgets(keepers: Keepers, pod: Pod) -> set[str]:
    return {full_name(one) for one in keepers.covering(pod)}


def _services(services: Iterable[Service], pod: Pod) -> set[str]:
    return {full_name(one) for one in services if selects(one, pod)}


def _taken(makers: Iterable[Maker], pod: Pod, owner: Maker | None) -> Iterator[str]:
    """Workloads that take it as theirs if it is nobody's."""
    for one in makers if owner is None else ():
        if isinstance(one, TAKES) and is_of(pod, one):
            yield f"{title(one)} takes it as its own"
