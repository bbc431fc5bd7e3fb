"""What a pod says about other pods: whose company it wants or avoids, and over what it is to be spread.

Read once per spec. Terms are values: equal ones of different pods share what is counted for them (`topology`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from dray.api.generated.core import Pod, PodAffinityTerm, PodSpec, TopologySpreadConstraint
from dray.api.labels import LabelSelector, LabelSelectorLike, Requirement, SelectorError
from dray.api.sharing import remembered
from dray.api.struct import encode_value
from dray.api.well_known import NAMESPACE_NAME
from dray.scheduling.reasons import TermUnreadable, TooManyTerms

Labels = Mapping[str, str]
MOST_VALUES = 10_000
"""Values of labels that a pod may name, of nodes and in its terms about other pods: each has to be read first."""
MOST_TERMS = 64
"""Terms about other pods that a pod may have: for each, the pods of all nodes are counted when it is first seen."""
MOST_TOPOLOGIES = 16
"""Different labels of nodes that these terms may go by: for each, every node is looked at, and sorted by its value."""

_encode = msgspec.json.Encoder(enc_hook=encode_value).encode

HONOR: Final = "Honor"
HARD_AFFINITY_WEIGHT: Final = 1
"""What a pod that requires the company of another is worth to that other one, as in kube-scheduler."""


class Selection(msgspec.Struct, frozen=True, cache_hash=True):
    """Which pods are meant: those with certain labels, in namespaces that are named or have certain labels."""

    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None
    labels: LabelSelector

    def matches(self, namespace: str, labels: Labels, namespaces: Mapping[str, Labels]) -> bool:
        """Whether a pod with these labels is meant; `namespaces` has the labels of all namespaces."""
        return self.selects(namespace, namespaces) and self.labels.matches(labels)

    def selects(self, namespace: str, namespaces: Mapping[str, Labels]) -> bool:
        """Whether pods of a namespace may be meant."""
        if namespace in self.namespaces:
            return True
        if self.namespace_selector is None:
            return False
        known = namespaces.get(namespace)
        return self.namespace_selector.matches({NAMESPACE_NAME: namespace} if known is None else known)


class Term(msgspec.Struct, frozen=True, cache_hash=True):
    """Pods in one domain: on nodes with the same value of the label `key`."""

    selection: Selection
    key: str


class Weighted(msgspec.Struct, frozen=True):
    """A term that is only preferred; what is to be avoided has a negative weight."""

    weight: int
    term: Term


class Spread(msgspec.Struct, frozen=True, cache_hash=True):
    """A topology spread constraint. `scope` is equal for pods for which the same nodes count."""

    selection: Selection
    key: str
    max_skew: int
    min_domains: int
    honors_affinity: bool
    honors_taints: bool
    keys: tuple[str, ...]
    """The keys of all constraints of its sort: only nodes that have them all count."""
    scope: bytes


ByKey = tuple[tuple[str, tuple[tuple[int, Selection], ...]], ...]
"""Weights and whom they are about, by topology key: what is asked of the same domains is asked at once."""


class PodTerms(msgspec.Struct, frozen=True):
    """Everything that a pod says about other pods."""

    affinity: tuple[Term, ...] = ()
    anti_affinity: tuple[Term, ...] = ()
    preferred: tuple[Weighted, ...] = ()
    spread: tuple[Spread, ...] = ()
    soft_spread: tuple[Spread, ...] = ()
    avoided: ByKey = ()
    """Whom it must not be with."""
    liked: ByKey = ()
    """With whom it would rather be, or rather not."""

    def selections(self) -> Iterable[Selection]:
        """Whom the requirements are about."""
        yield from (term.selection for term in (*self.affinity, *self.anti_affinity))
        yield from (spread.selection for spread in self.spread)

    @property
    def attraction(self) -> tuple[Weighted, ...]:
        """What the pod, where it is, is worth to others that come: kube-scheduler counts preferences both ways."""
        return (*self.preferred, *(Weighted(HARD_AFFINITY_WEIGHT, term) for term in self.affinity))


def read_terms(pod: Pod) -> PodTerms | TermUnreadable | TooManyTerms | None:
    """What a pod says about others; None if it says nothing, and what is wrong if it cannot be read."""
    keys = _label_keys(pod.spec)
    if keys is None or isinstance(keys, TooManyTerms):
        return keys
    labels = pod.metadata.labels
    known = tuple((key, labels[key]) for key in keys if key in labels)
    return _read(pod.spec, pod.metadata.namespace, known)


@remembered
def _label_keys(spec: PodSpec) -> tuple[str, ...] | TooManyTerms | None:
    """The pod's own labels that its terms are about (`matchLabelKeys`); None if there are no terms."""
    affinity = spec.affinity
    constraints = spec.topology_spread_constraints
    with_pods = affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)
    if not constraints and not with_pods:
        return None
    keys = {key for constraint in constraints for key in constraint.match_label_keys}
    count = len(constraints)
    selectors = [constraint.label_selector for constraint in constraints]
    topologies = {constraint.topology_key for constraint in constraints}
    for terms in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else ():
        if terms is not None:
            preferred = [one.pod_affinity_term for one in terms.preferred_during_scheduling_ignored_during_execution]
            several = (*terms.required_during_scheduling_ignored_during_execution, *preferred)
            count += len(several)
            for term in several:
                selectors += (term.label_selector, term.namespace_selector)
                keys.update(term.match_label_keys, term.mismatch_label_keys)
                topologies.add(term.topology_key)
    if count > MOST_TERMS:
        return TooManyTerms("pod affinity terms and topology spread constraints", count, MOST_TERMS)
    if len(topologies) > MOST_TOPOLOGIES:
        return TooManyTerms("topology keys in terms about other pods", len(topologies), MOST_TOPOLOGIES)
    values = sum(_count_values(one) for one in selectors)
    if values > MOST_VALUES:
        return TooManyTerms("values of labels in terms about other pods", values, MOST_VALUES)
    return tuple(sorted(keys))


def _count_values(selector: LabelSelectorLike | None) -> int:
    if selector is None:
        return 0
    return len(selector.match_labels) + sum(1 + len(one.values) for one in selector.match_expressions)


@remembered
def _read(spec: PodSpec, namespace: str, own: tuple[tuple[str, str], ...]) -> PodTerms | TermUnreadable:
    labels = dict(own)
    affinity = spec.affinity
    with_pods = affinity.pod_affinity if affinity is not None else None
    without = affinity.pod_anti_affinity if affinity is not None else None
    try:
        wanted = with_pods.required_during_scheduling_ignored_during_execution if with_pods is not None else ()
        avoided = without.required_during_scheduling_ignored_during_execution if without is not None else ()
        liked = with_pods.preferred_during_scheduling_ignored_during_execution if with_pods is not None else ()
        disliked = without.preferred_during_scheduling_ignored_during_execution if without is not None else ()
        preferred = [Weighted(one.weight, _term(one.pod_affinity_term, namespace, labels)) for one in liked]
        preferred += [Weighted(-one.weight, _term(one.pod_affinity_term, namespace, labels)) for one in disliked]
        anti_affinity = [_term(term, namespace, labels) for term in avoided]
        return PodTerms(
            affinity=tuple(_term(term, namespace, labels) for term in wanted),
            anti_affinity=tuple(anti_affinity),
            preferred=tuple(preferred),
            spread=_spreads(spec, "DoNotSchedule", namespace, labels),
            soft_spread=_spreads(spec, "ScheduleAnyway", namespace, labels),
            avoided=_by_key(Weighted(1, term) for term in anti_affinity),
            liked=_by_key(preferred),
        )
    except SelectorError as error:
        return TermUnreadable(str(error))


def _by_key(terms: Iterable[Weighted]) -> ByKey:
    found: dict[str, list[tuple[int, Selection]]] = {}
    for one in terms:
        found.setdefault(one.term.key, []).append((one.weight, one.term.selection))
    return tuple([(key, tuple(weights)) for key, weights in found.items()])


def _term(term: PodAffinityTerm, namespace: str, labels: Labels) -> Term:
    selector = LabelSelector.of(term.label_selector)
    selector = _narrowed(selector, term.match_label_keys, "In", labels)
    selector = _narrowed(selector, term.mismatch_label_keys, "NotIn", labels)
    by_labels = LabelSelector.of(term.namespace_selector) if term.namespace_selector is not None else None
    is_own = not term.namespaces and by_labels is None
    return Term(
        Selection(frozenset((namespace,) if is_own else term.namespaces), by_labels, selector), term.topology_key
    )


def _narrowed(selector: LabelSelector, keys: Iterable[str], operator: str, labels: Labels) -> LabelSelector:
    """With the pod's own values of some labels. Keys that are in the selector were put there by an API server."""
    there = {requirement.key for requirement in selector.requirements}
    more = [Requirement.of(key, operator, (labels[key],)) for key in keys if key in labels and key not in there]
    return LabelSelector((*selector.requirements, *more), selector.matches_nothing) if more else selector


def _spreads(spec: PodSpec, action: str, namespace: str, labels: Labels) -> tuple[Spread, ...]:
    asked = [constraint for constraint in spec.topology_spread_constraints if constraint.when_unsatisfiable == action]
    keys = tuple(sorted({constraint.topology_key for constraint in asked}))
    return tuple([_spread(constraint, spec, keys, namespace, labels) for constraint in asked])


def _spread(
    constraint: TopologySpreadConstraint, spec: PodSpec, keys: tuple[str, ...], namespace: str, labels: Labels
) -> Spread:
    selector = _narrowed(LabelSelector.of(constraint.label_selector), constraint.match_label_keys, "In", labels)
    honors_affinity = (constraint.node_affinity_policy or HONOR) == HONOR
    honors_taints = constraint.node_taints_policy == HONOR
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    scope = (
        keys,
        (spec.node_selector, required) if honors_affinity else None,
        spec.tolerations if honors_taints else None,
    )
    return Spread(
        Selection(frozenset((namespace,)), None, selector),
        constraint.topology_key,
        constraint.max_skew,
        constraint.min_domains or 1,
        honors_affinity,
        honors_taints,
        keys,
        _encode(scope),
    )
