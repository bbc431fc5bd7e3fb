"""What other labels of a namespace do: to pods that are made in it, and to those who find it by its labels. Pure.

What runs stays. Pods that wait and the next pods of workloads are tried elsewhere; here is who looks at the labels.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from dray.allocator.reasons import Report
from dray.api.generated.admissionregistration import (
    MatchResources,
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    MutatingWebhookConfiguration,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    ValidatingWebhookConfiguration,
)
from dray.api.generated.core import Namespace, Pod
from dray.api.labels import LabelSelector, SelectorError
from dray.api.meta import LabelSelector as StoredSelector
from dray.api.meta import Object, ObjectMeta
from dray.api.pods import is_active
from dray.api.references import full_name
from dray.api.well_known import NAMESPACE_NAME
from dray.prose.wording import count, names, told_labels
from dray.scheduling.pod_terms import PodTerms, Selection, read_terms
from dray.snapshot.snapshot import Snapshot
from dray.what_if.newcomers import enforced, judge
from dray.what_if.workloads import Maker, pod_of

ASKED = (
    *(ValidatingWebhookConfiguration, MutatingWebhookConfiguration, ValidatingAdmissionPolicy, MutatingAdmissionPolicy),
    *(ValidatingAdmissionPolicyBinding, MutatingAdmissionPolicyBinding),
)
"""Who is asked about objects, by the labels of their namespaces among others."""


class NamespaceChange(Report, frozen=True, kw_only=True):
    """A namespace that stays, and is labelled otherwise."""

    namespace: str
    labels: tuple[str, ...]
    effects: tuple[str, ...] = ()
    """Who notices."""


class _Relabelled(NamedTuple):
    old: Namespace
    new: Namespace

    def differs(self, selection: Selection) -> bool:
        """Whether somebody finds pods in it who did not, or no longer does."""
        name = self.new.metadata.name
        found = [selection.selects(name, {name: one.metadata.labels}) for one in self]
        return found[0] != found[1]


class Relabelled:
    """The namespaces that are labelled otherwise, and who notices."""

    def __init__(self, differing: Iterable[tuple[Object | None, Object | None]], after: Snapshot) -> None:
        self._after = after
        pairs = [
            _Relabelled(here if isinstance(here, Namespace) else _bare(there), there)
            for here, there in differing
            if isinstance(there, Namespace)
        ]
        self.pairs = {
            pair.new.metadata.name: pair for pair in pairs if pair.old.metadata.labels != pair.new.metadata.labels
        }

    def concern(self, maker: Maker) -> Iterator[str]:
        """The namespaces whose labels matter to the next pod of a workload."""
        terms = self._terms(pod_of(maker, 0)) if self.pairs else ()
        for name, pair in self.pairs.items():
            is_own = maker.metadata.namespace == name
            is_judged = is_own and enforced(pair.old) != enforced(pair.new)
            is_kept_away = is_own and any(pair.differs(one) for _, one in self._keeping_away)
            if is_judged or is_kept_away or any(pair.differs(one) for one in terms):
                yield name

    def changes(self) -> Iterator[NamespaceChange]:
        """What is told of each."""
        for name, pair in self.pairs.items():
            yield NamespaceChange(
                namespace=name,
                labels=tuple(told_labels(pair.old.metadata.labels, pair.new.metadata.labels)),
                effects=(*self._security(pair), *self._affinity(pair), *self._asked(pair)),
            )

    def _security(self, pair: _Relabelled) -> Iterator[str]:
        was, is_now = enforced(pair.old), enforced(pair.new)
        if was == is_now:
            return
        pods = [pod for pod in self._pods if pod.metadata.namespace == pair.new.metadata.name and pod.spec.containers]
        insecure = [full_name(pod) for pod in pods if judge(pod, is_now) is not None]
        told = f"Pod Security enforces {is_now} instead of {was}: "
        if insecure:
            told += f"of {count(len(pods), 'pod')} there, {len(insecure)} would not be let in again"
            yield f"{told} ({names(insecure, 3)})"
        else:
            yield f"{told}{'all pods there would be let in again' if pods else 'there are no pods yet'}"

    def _affinity(self, pair: _Relabelled) -> Iterator[str]:
        found = dict.fromkeys(full_name(pod) for pod in self._pods for one in self._terms(pod) if pair.differs(one))
        if found:
            yield f"affinity of {names(list(found), 3)} finds other pods there than before, when it is next asked"

    def _asked(self, pair: _Relabelled) -> Iterator[str]:
        """Who is asked about objects in it from now on, or no longer."""
        were, are = (self._asking(one.metadata.labels) for one in pair)
        for word, found in (("now asked about objects there", are - were), ("no longer asked", were - are)):
            if found:
                yield f"{word}: {names(sorted(found), 5)}"

    def _asking(self, labels: Mapping[str, str]) -> set[str]:
        return {
            f"{one.kind} {one.metadata.name}"
            for one in self._after.objects(Object)
            if isinstance(one, ASKED)
            if any(_matches(selector, labels) for selector in _selectors(one))
        }

    @cached_property
    def _pods(self) -> list[Pod]:
        return [pod for pod in self._after.objects(Pod) if is_active(pod)]

    @cached_property
    def _keeping_away(self) -> list[tuple[str, Selection]]:
        """Whom pods that are there keep away, by what they say themselves."""
        return [
            (full_name(pod), term.selection)
            for pod in self._pods
            if pod.spec.node_name and isinstance(terms := read_terms(pod), PodTerms)
            for term in terms.anti_affinity
        ]

    @staticmethod
    def _terms(pod: Pod) -> Collection[Selection]:
        terms = read_terms(pod)
        if not isinstance(terms, PodTerms):
            return ()
        return (*terms.selections(), *(one.term.selection for one in terms.preferred))


def _bare(namespace: Namespace) -> Namespace:
    """As whoever looks for it sees one that is not there: with the label that every namespace has."""
    name = namespace.metadata.name
    return Namespace(metadata=ObjectMeta(name=name, labels={NAMESPACE_NAME: name}))


def _selectors(obj: Object) -> Iterator[StoredSelector | None]:
    """By which labels of namespaces somebody is asked: one for each way to be."""
    if isinstance(obj, ValidatingWebhookConfiguration | MutatingWebhookConfiguration):
        yield from (one.namespace_selector for one in obj.webhooks)
    elif isinstance(obj, ValidatingAdmissionPolicy | MutatingAdmissionPolicy):
        yield _selector(obj.spec.match_constraints)
    elif isinstance(obj, ValidatingAdmissionPolicyBinding | MutatingAdmissionPolicyBinding):
        yield _selector(obj.spec.match_resources)


def _selector(resources: MatchResources | None) -> StoredSelector | None:
    return resources.namespace_selector if resources is not None else None


def _matches(selector: StoredSelector | None, labels: Mapping[str, str]) -> bool:
    try:
        return selector is None or LabelSelector.of(selector).matches(labels)
    except SelectorError:
        return True  # a fault of it, whatever the labels are
