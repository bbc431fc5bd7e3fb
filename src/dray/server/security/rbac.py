"""Role-based access control over the stored roles and bindings.

What is kept, and what is derived from it on demand:

    apply(kind, …) ─▶ cluster roles ──▶ rules of a role (aggregated ones put together)  ─┐ forgotten when a role changes
                      roles                                                              │
                      bindings ──▶ by (namespace, subject) ─▶ grant of (user, groups, namespace): its rules
                                                                └─▶ verdict per (verb, group, resource, subresource)

A grant and its verdicts are computed once and forgotten with any change of any role or binding; changes are rare,
requests are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from dray.api.aggregated_roles import aggregate
from dray.api.generated.rbac import (
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
    Subject,
)
from dray.api.recent import Bounded
from dray.api.registry import RBAC_GROUP
from dray.api.text_memory import LONGEST, text_length
from dray.server.security.authorization import Attributes, Decision
from dray.server.security.identity import Identity, service_account_user
from dray.server.security.rules import Rule, uncovered

MAX_GRANTS = 8192
MAX_VERDICTS = 4096
MOST_WORDS = 20_000
"""Verbs, groups, resources, names and paths in all rules that one caller has in a namespace; the rest does not count.
Whoever may make roles can make them without end, and every request asks what its sender may do."""
_MAX_PROBLEMS = 8
_MASTER = Decision(True)

Stored = Role | ClusterRole | RoleBinding | ClusterRoleBinding
_Key = tuple[str, str]


class _Verdict(msgspec.Struct, frozen=True):
    """The decision for any name, and those that only hold for one."""

    default: Decision
    by_name: dict[str, Decision]


class _Grant:
    """Every rule that applies to one (user, groups) in one namespace, and the verdicts already found."""

    __slots__ = ("denied", "rules", "verdicts")

    def __init__(self, rules: list[tuple[Rule, str]], problems: list[str]) -> None:
        self.rules = rules
        self.denied = Decision(False, _denial(problems))
        self.verdicts: Bounded[tuple[str, ...], _Verdict] = Bounded(MAX_VERDICTS)

    def decide(self, attributes: Attributes) -> Decision:
        if attributes.resource:
            key: tuple[str, ...] = (attributes.verb, attributes.group, attributes.resource, attributes.subresource)
        else:
            key = (attributes.verb, attributes.path)
        verdict = self.verdicts.get(key)
        if verdict is None:
            verdict = self._resource_verdict(*key) if attributes.resource else self._path_verdict(*key)
            if text_length(key) <= LONGEST:
                self.verdicts.keep(key, verdict)
        if verdict.by_name:
            return verdict.by_name.get(attributes.name, verdict.default)
        return verdict.default

    def _resource_verdict(self, verb: str, group: str, resource: str, subresource: str) -> _Verdict:
        by_name: dict[str, Decision] = {}
        for rule, source in self.rules:
            if rule.matches_resource(verb, group, resource, subresource):
                decision = Decision(True, source)
                if not rule.names:
                    return _Verdict(decision, {})
                for name in rule.names:
                    by_name.setdefault(name, decision)
        return _Verdict(self.denied, by_name)

    def _path_verdict(self, verb: str, path: str) -> _Verdict:
        for rule, source in self.rules:
            if rule.matches_path(verb, path):
                return _Verdict(Decision(True, source), {})
        return _Verdict(self.denied, {})


class Rbac:
    """The authorizer. Feed it every Role, ClusterRole, RoleBinding and ClusterRoleBinding through `apply`."""

    def __init__(self, objects: Iterable[Stored] = ()) -> None:
        self.generation = 0
        self._roles: dict[_Key, tuple[PolicyRule, ...]] = {}
        self._role_rules: dict[_Key, tuple[Rule, ...]] = {}
        self._cluster_roles: dict[str, ClusterRole] = {}
        self._cluster_rules: dict[_Key, tuple[Rule, ...]] = {}
        self._bindings: dict[_Key, RoleBinding | ClusterRoleBinding] = {}
        self._by_subject: dict[_Key, dict[str, Subject]] = {}
        self._grants: Bounded[tuple[str, tuple[str, ...], str], _Grant] = Bounded(MAX_GRANTS)
        self._bound_groups: frozenset[str] | None = None
        for obj in objects:
            self.apply(type(obj).__name__, obj.metadata.namespace, obj.metadata.name, obj)

    def apply(self, kind: str, namespace: str, name: str, obj: Stored | None) -> None:
        """An object of one of the four kinds is now `obj`, or is gone (None)."""
        if kind == "ClusterRole":
            self._cluster_rules.clear()
            if isinstance(obj, ClusterRole):
                self._cluster_roles[name] = obj
            else:
                self._cluster_roles.pop(name, None)
        elif kind == "Role":
            self._role_rules.pop((namespace, name), None)
            if isinstance(obj, Role):
                self._roles[namespace, name] = obj.rules
            else:
                self._roles.pop((namespace, name), None)
        elif kind in ("RoleBinding", "ClusterRoleBinding"):
            self._unbind((namespace, name))
            if isinstance(obj, RoleBinding | ClusterRoleBinding):
                self._bind((namespace, name), obj)
        else:
            raise ValueError(f"{kind} is not a kind of RBAC")
        self._grants.clear()
        self._bound_groups = None
        self.generation += 1

    def allowed(self, identity: Identity, attributes: Attributes) -> Decision:
        """Whether an identity may do this; `system:masters` may do everything."""
        key = (identity.user, identity.groups, attributes.namespace)
        grant = self._grants.get(key)
        if grant is None:
            grant = self._remember(key)
        decision = grant.decide(attributes)
        return _MASTER if not decision.allowed and identity.is_master else decision

    def rules_for(self, identity: Identity, namespace: str) -> tuple[PolicyRule, ...]:
        """Everything the identity may do in a namespace (empty: at the cluster scope)."""
        return tuple(rule.policy for rule, _ in self._grant(identity, namespace).rules)

    def missing_permissions(
        self, identity: Identity, rules: tuple[PolicyRule, ...], namespace: str = ""
    ) -> tuple[PolicyRule, ...]:
        """What of `rules` the identity may not do itself, in a namespace or (empty) everywhere."""
        return () if identity.is_master else uncovered(self.rules_of(identity, namespace), rules)

    def role_rules(self, reference: RoleRef, namespace: str) -> tuple[PolicyRule, ...] | None:
        """The rules that a binding in `namespace` (empty: a ClusterRoleBinding) would give; None without that role."""
        return self._policies_of(reference, namespace)

    def rules_of(self, identity: Identity, namespace: str) -> list[Rule]:
        """The same as `rules_for`, made ready for comparing."""
        return [rule for rule, _ in self._grant(identity, namespace).rules]

    def _grant(self, identity: Identity, namespace: str) -> _Grant:
        key = (identity.user, identity.groups, namespace)
        return self._grants.get(key) or self._remember(key)

    def _remember(self, key: tuple[str, tuple[str, ...], str]) -> _Grant:
        grant = self._compute(*key)
        if len(key[1]) <= LONGEST and text_length(key) <= LONGEST:
            self._grants.keep(key, grant)
        return grant

    def _compute(self, user: str, groups: tuple[str, ...], namespace: str) -> _Grant:
        rules: list[tuple[Rule, str]] = []
        problems: dict[str, None] = {}
        left = MOST_WORDS
        for binding, subject in self._bindings_of(user, groups, namespace):
            reference = binding.role_ref
            found = self._rules_of(reference, binding.metadata.namespace)
            if found is None:
                problems[f'{reference.kind.lower()}.{RBAC_GROUP} "{reference.name}" not found'] = None
                continue
            source = _source(binding, subject)
            for rule in found:
                left -= rule.words
                rules.append((rule, source))
                if left <= 0:
                    where = f"{binding.metadata.namespace}/{binding.metadata.name}".strip("/")
                    problems[f"rules of {user} beyond {MOST_WORDS} words do not count, from binding {where} on"] = None
                    return _Grant(rules, list(problems))
        return _Grant(rules, list(problems))

    def _bindings_of(
        self, user: str, groups: tuple[str, ...], namespace: str
    ) -> Iterator[tuple[RoleBinding | ClusterRoleBinding, Subject]]:
        bound = self._bound_groups
        if bound is None:
            keys = [key for _, key in self._by_subject if key.startswith("Group:")]
            bound = self._bound_groups = frozenset(key.removeprefix("Group:") for key in keys)
        # Reviews may ask about a hundred thousand groups: those that nobody gave anything are not looked up.
        subjects = [f"User:{user}", *[f"Group:{group}" for group in groups if group in bound]]
        for scope in ("", namespace) if namespace else ("",):
            seen: set[str] = set()
            for subject_key in subjects:
                for name, subject in self._by_subject.get((scope, subject_key), {}).items():
                    if name not in seen:
                        seen.add(name)
                        yield self._bindings[scope, name], subject

    def _rules_of(self, reference: RoleRef, namespace: str) -> tuple[Rule, ...] | None:
        """The rules that a reference gives, as many as can count; None without that role."""
        if reference.kind == "Role":
            known, key = self._role_rules, (namespace, reference.name)
        else:
            known, key = self._cluster_rules, ("", reference.name)
        rules = known.get(key)
        if rules is None:
            policies = self._policies_of(reference, namespace)
            if policies is None:
                return None
            rules = known[key] = tuple(_made_ready(policies))
        return rules

    def _policies_of(self, reference: RoleRef, namespace: str) -> tuple[PolicyRule, ...] | None:
        if reference.kind == "Role":
            return self._roles.get((namespace, reference.name)) if namespace else None
        if reference.kind != "ClusterRole" or reference.name not in self._cluster_roles:
            return None
        return tuple(aggregate(reference.name, self._cluster_roles))

    def _bind(self, key: _Key, binding: RoleBinding | ClusterRoleBinding) -> None:
        self._bindings[key] = binding
        namespace, name = key
        for subject in binding.subjects:
            subject_key = _subject_key(subject, namespace)
            if subject_key is not None:
                self._by_subject.setdefault((namespace, subject_key), {}).setdefault(name, subject)

    def _unbind(self, key: _Key) -> None:
        binding = self._bindings.pop(key, None)
        if binding is None:
            return
        namespace, name = key
        for subject in binding.subjects:
            subject_key = _subject_key(subject, namespace)
            bound = self._by_subject.get((namespace, subject_key)) if subject_key is not None else None
            if bound is not None and subject_key is not None:
                bound.pop(name, None)
                if not bound:
                    del self._by_subject[namespace, subject_key]


def _made_ready(policies: Iterable[PolicyRule]) -> Iterator[Rule]:
    left = MOST_WORDS
    for policy in policies:
        if left <= 0:
            return
        rule = Rule(policy)
        left -= rule.words
        yield rule


def _subject_key(subject: Subject, namespace: str) -> str | None:
    """How a subject is found again; a ServiceAccount is the user of that name, in the binding's namespace if unsaid."""
    if subject.kind in ("User", "Group"):
        return f"{subject.kind}:{subject.name}"
    namespace = subject.namespace or namespace
    if subject.kind == "ServiceAccount" and namespace:
        return f"User:{service_account_user(namespace, subject.name)}"
    return None


def _source(binding: RoleBinding | ClusterRoleBinding, subject: Subject) -> str:
    """The reason of a yes, as `kubectl auth can-i -v` and audit logs show it."""
    metadata = binding.metadata
    kind, name = "ClusterRoleBinding", metadata.name
    if metadata.namespace:
        kind, name = "RoleBinding", f"{metadata.name}/{metadata.namespace}"
    who = subject.name
    if subject.kind == "ServiceAccount":
        who = f"{subject.name}/{subject.namespace or metadata.namespace}"
    role = f'{binding.role_ref.kind} "{binding.role_ref.name}"'
    return f'RBAC: allowed by {kind} "{name}" of {role} to {subject.kind} "{who}"'


def _denial(problems: list[str]) -> str:
    """Why a no may be an accident: bindings that refer to roles which are not there."""
    if not problems:
        return ""
    shown = problems[:_MAX_PROBLEMS]
    if len(problems) > len(shown):
        shown.append(f"and {len(problems) - len(shown)} more")
    return f"RBAC: {shown[0]}" if len(shown) == 1 else f"RBAC: [{', '.join(shown)}]"
