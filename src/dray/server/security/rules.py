"""What one RBAC rule allows, and whether a set of rules covers another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from dray.api.generated.rbac import PolicyRule

ALL = "*"
LEAST_WORDS = 4
"""What a rule counts for, however little it says."""
MAX_SINGLE_RIGHTS = 20_000
"""A rule of a few kilobytes can stand for billions of single rights. So many of all rules together are looked at one by
one; beyond this, each rule must be covered as a whole."""
MAX_COMPARISONS = 200_000
"""Of a rule, or of a single right, with one that somebody has. What is left after these is not covered."""


class Rule:
    """A PolicyRule made ready for matching. Each test costs the same whatever the size of the rule."""

    __slots__ = ("_groups", "_paths", "_prefixes", "_resources", "_verbs", "names", "policy")

    def __init__(self, policy: PolicyRule) -> None:
        self.policy = policy
        self.names = frozenset(policy.resource_names)
        self._verbs = frozenset(policy.verbs)
        self._groups = frozenset(policy.api_groups)
        self._resources = frozenset(policy.resources)
        self._paths = frozenset(policy.non_resource_urls)
        self._prefixes = tuple(path.rstrip(ALL) for path in self._paths if path.endswith(ALL))

    @property
    def words(self) -> int:
        """How much it says."""
        return count_words(self.policy)

    def matches_resource(self, verb: str, group: str, resource: str, subresource: str) -> bool:
        """Whether the rule is about this; which names of it, if not all, is in `names`.

        `resource` covers its subresources only as `*`; `*/sub` is that subresource of every resource.
        """
        if not (ALL in self._verbs or verb in self._verbs) or not (ALL in self._groups or group in self._groups):
            return False
        if ALL in self._resources:
            return True
        if not subresource:
            return resource in self._resources
        return f"{resource}/{subresource}" in self._resources or f"*/{subresource}" in self._resources

    def matches_path(self, verb: str, path: str) -> bool:
        """Whether the rule allows a verb on a path that is no resource; a trailing `*` matches any rest."""
        if not (ALL in self._verbs or verb in self._verbs):
            return False
        return path in self._paths or any(path.startswith(prefix) for prefix in self._prefixes)

    def covers(self, other: Rule) -> bool:
        """Whether whatever `other` allows this rule allows, too."""
        if not _holds_all(self._verbs, other._verbs):
            return False
        if other._paths and not all(self._covers_path(path) for path in other._paths):
            return False
        if not other._resources:
            return True
        if self.names and not (other.names and other.names <= self.names):
            return False
        return _holds_all(self._groups, other._groups) and self._covers_resources(other._resources)

    def _covers_path(self, path: str) -> bool:
        return path in self._paths or any(path.startswith(prefix) for prefix in self._prefixes)

    def _covers_resources(self, resources: frozenset[str]) -> bool:
        if ALL in self._resources:
            return True
        return all(
            resource in self._resources or ("/" in resource and f"*/{resource.partition('/')[2]}" in self._resources)
            for resource in resources
        )


def count_words(policy: PolicyRule) -> int:
    """How much a rule says."""
    lists = (policy.resource_names, policy.verbs, policy.api_groups, policy.resources, policy.non_resource_urls)
    return max(LEAST_WORDS, sum(map(len, lists)))


def _holds_all(own: frozenset[str], wanted: frozenset[str]) -> bool:
    return ALL in own or wanted <= own


def uncovered(own: Sequence[Rule], wanted: Iterable[PolicyRule]) -> tuple[PolicyRule, ...]:
    """What `wanted` allows and `own` does not, verbs of one resource put together; empty if all is covered."""
    missing: list[PolicyRule] = []
    index = _Index(own)
    rights = MAX_SINGLE_RIGHTS
    for policy in wanted:
        if index.covers(policy):
            continue
        rights -= (count := _count_single_rights(policy))
        if count == 1 or rights < 0:
            missing.append(policy)
        else:
            missing.extend(single for single in _single_rights(policy) if not index.covers(single))
    return _compact(missing)


class _Index:
    """The rules that somebody has, by the resources that they are about: others need not be looked at."""

    def __init__(self, own: Sequence[Rule]) -> None:
        self._by_resource: dict[str, list[Rule]] = {}
        self._with_paths = [rule for rule in own if rule.policy.non_resource_urls]
        self._left = MAX_COMPARISONS
        for rule in own:
            for resource in dict.fromkeys(rule.policy.resources):
                self._by_resource.setdefault(resource, []).append(rule)

    def covers(self, policy: PolicyRule) -> bool:
        """Whether one of the rules allows all that another does; no longer, once there were too many questions."""
        rule = Rule(policy)
        cost = 1 + rule.words // 16
        for candidate in self._candidates(policy):
            self._left -= cost
            if self._left < 0:
                return False
            if candidate.covers(rule):
                return True
        return False

    def _candidates(self, policy: PolicyRule) -> Iterator[Rule]:
        """The rules that may cover it: they are about its first resource, or about paths if it is about none."""
        if not policy.resources:
            yield from self._with_paths
            return
        first = policy.resources[0]
        tokens = (ALL, first, f"*/{first.partition('/')[2]}") if "/" in first else (ALL, first)
        for token in dict.fromkeys(tokens):
            yield from self._by_resource.get(token, ())


def _count_single_rights(policy: PolicyRule) -> int:
    per_verb = len(policy.api_groups) * len(policy.resources) * max(1, len(policy.resource_names))
    return len(policy.verbs) * (per_verb + len(policy.non_resource_urls))


def _single_rights(policy: PolicyRule) -> Iterator[PolicyRule]:
    """The rule taken apart. Each part is covered by one rule or by none, never by two together."""
    names: tuple[tuple[str, ...], ...] = tuple((name,) for name in policy.resource_names) or ((),)
    for group, resource, verb, name in product(policy.api_groups, policy.resources, policy.verbs, names):
        yield PolicyRule(api_groups=(group,), resources=(resource,), verbs=(verb,), resource_names=name)
    for path, verb in product(policy.non_resource_urls, policy.verbs):
        yield PolicyRule(non_resource_urls=(path,), verbs=(verb,))


def _compact(rules: Iterable[PolicyRule]) -> tuple[PolicyRule, ...]:
    verbs: dict[tuple[tuple[str, ...], ...], dict[str, None]] = {}
    for rule in rules:
        about = (rule.api_groups, rule.resources, rule.resource_names, rule.non_resource_urls)
        verbs.setdefault(about, {}).update(dict.fromkeys(rule.verbs))
    return tuple(
        PolicyRule(
            api_groups=groups, resources=resources, resource_names=names, non_resource_urls=paths, verbs=tuple(allowed)
        )
        for (groups, resources, names, paths), allowed in verbs.items()
    )


def describe(rule: PolicyRule) -> str:
    """A rule on one line, as refusals to grant it show it."""
    parts = (
        ("APIGroups", rule.api_groups),
        ("Resources", rule.resources),
        ("NonResourceURLs", rule.non_resource_urls),
        ("ResourceNames", rule.resource_names),
        ("Verbs", rule.verbs),
    )
    return "{" + ", ".join(f"{label}:{quoted(values)}" for label, values in parts if values) + "}"


def quoted(values: Iterable[str]) -> str:
    """A list of texts as Kubernetes prints it: `["a" "b"]`."""
    return "[" + " ".join(f'"{value}"' for value in values) + "]"
