"""Which requests a webhook, a policy or a binding is about: rules, and selectors of namespaces and objects.

What rules say of a sort of request is the same each time: it is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from dray.admission.request import DELETE, Request, Resource
from dray.api.labels import LabelSelector, SelectorError
from dray.api.meta import LabelSelector as StoredSelector
from dray.api.recent import Bounded

__all__ = ["BadSelector", "Matcher", "NamespaceMissing"]

ALL: Final = "*"
_REMEMBERED: Final = 1024
_EVERYTHING: Final = LabelSelector()

_Sort = tuple[str, Resource, str, bool]
"""`Request.sort`."""


class NamespaceMissing(Exception):
    """The namespace of a request is not there, so that nobody can say whether it is selected."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class BadSelector(Exception):
    """A selector of a webhook, policy or binding cannot be used."""


class _Rule(Protocol):
    """A rule of a webhook, or (with names) of a policy."""

    @property
    def api_groups(self) -> Sequence[str]: ...
    @property
    def api_versions(self) -> Sequence[str]: ...
    @property
    def operations(self) -> Sequence[str]: ...
    @property
    def resources(self) -> Sequence[str]: ...
    @property
    def scope(self) -> str | None: ...


class _Found(NamedTuple):
    """A resource that a rule is about, and for which names; all if there are none."""

    resource: Resource
    names: frozenset[str]


class Matcher:
    """Rules and selectors, compiled. Without rules (`None`) all requests match; an empty list matches none."""

    def __init__(
        self,
        rules: Sequence[_Rule] | None,
        *,
        excluded: Sequence[_Rule] = (),
        match_policy: str | None = None,
        namespaces: StoredSelector | None = None,
        objects: StoredSelector | None = None,
    ) -> None:
        self.fault = ""
        """What is wrong with the selectors, which makes it match nothing and everything."""
        self._rules = rules
        self._excluded = excluded
        self._is_exact = match_policy != "Equivalent"
        self._namespaces = self._objects = _EVERYTHING
        try:
            self._namespaces = _EVERYTHING if namespaces is None else LabelSelector.of(namespaces)
            self._objects = _EVERYTHING if objects is None else LabelSelector.of(objects)
        except SelectorError as error:
            self.fault = str(error)
        self._known: Bounded[_Sort, tuple[tuple[_Found, ...], tuple[_Found, ...]]] = Bounded(_REMEMBERED)
        selects = self._namespaces.requirements or self._objects.requirements
        self.takes_all: Final = rules is None and not excluded and not selects and not self.fault
        """Whether it says nothing, as most bindings: every request matches."""

    def match(
        self,
        request: Request,
        new: Any,
        old: Any,
        namespace_labels: Callable[[str], Mapping[str, str] | None],
    ) -> Resource | None:
        """The resource (in one of its versions) that a rule is about; None if the request is none of this matcher's.

        Raises NamespaceMissing, and BadSelector if only a selector could tell.
        """
        found = self._by_rules(request)
        if found is None:
            return None
        if self.fault:
            raise BadSelector(self.fault)
        if not self._selects_object(new, old):
            return None
        return found if self._selects_namespace(request, new, namespace_labels) else None

    def _by_rules(self, request: Request) -> Resource | None:
        sort = request.sort
        known = self._known.get(sort)
        if known is None:
            included = self._found(self._rules, sort, request.equivalents)
            excluded = self._found(self._excluded, sort, request.equivalents)
            known = self._known.keep(sort, (included, excluded))
        included, excluded = known
        for each in excluded:
            if not each.names or request.name in each.names:
                return None
        for each in included:
            if not each.names or request.name in each.names:
                return each.resource
        return None

    def _found(self, rules: Sequence[_Rule] | None, sort: _Sort, others: tuple[Resource, ...]) -> tuple[_Found, ...]:
        if rules is None:
            return (_Found(sort[1], frozenset()),)
        exact = ((rule, sort[1]) for rule in rules)
        equivalent = () if self._is_exact else ((rule, resource) for rule in rules for resource in others)
        return tuple(
            _Found(resource, frozenset(getattr(rule, "resource_names", ())))
            for rule, resource in (*exact, *equivalent)  # earlier rules first, for other versions too
            if _covers(rule, sort, resource)
        )

    def _selects_object(self, new: Any, old: Any) -> bool:
        if self._objects is _EVERYTHING or not self._objects.requirements:
            return True
        return any(obj is not None and self._objects.matches(obj.metadata.labels) for obj in (new, old))

    def _selects_namespace(
        self, request: Request, new: Any, labels_of: Callable[[str], Mapping[str, str] | None]
    ) -> bool:
        if self._namespaces is _EVERYTHING or not self._namespaces.requirements:
            return True
        if request.is_about_namespace and request.operation != DELETE and not request.subresource:
            return new is not None and self._namespaces.matches(new.metadata.labels)
        if not request.namespace:
            return True
        labels = labels_of(request.namespace)
        if labels is None:
            raise NamespaceMissing(request.namespace)
        return self._namespaces.matches(labels)


def _covers(rule: _Rule, sort: _Sort, resource: Resource) -> bool:
    operation, _, subresource, is_cluster_scoped = sort
    if rule.scope not in (None, "", ALL) and (rule.scope == "Cluster") is not is_cluster_scoped:
        return False
    return (
        _has(rule.operations, operation)
        and _has(rule.api_groups, resource.group)
        and _has(rule.api_versions, resource.version)
        and any(_names(text, resource.plural, subresource) for text in rule.resources)
    )


def _has(wanted: Sequence[str], value: str) -> bool:
    return ALL in wanted or value in wanted


def _names(text: str, plural: str, subresource: str) -> bool:
    resource, _, part = text.partition("/")
    return resource in (ALL, plural) and part in (ALL, subresource)
