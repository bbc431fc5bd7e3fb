"""Role-based access control over the stored roles and bindings.

What is kept, and what is derived from it on demand:

    apply(kind, …) ─▶ cluster roles ──▶ rules of a role (aggregated ones put together)  ─┐ forgotten when a role changes
                      roles                                                              │
                      bindings ──▶ by (namespace, subject) ─▶ grant of (user, groups, namespace): its rules
                                                                └─▶ its verdict on (verb, group, resource, subresource)

A grant and its verdicts are computed once and forgotten with any change of any role or binding; changes are rare,
requests are not. Whoever may ask about others (LocalSubjectAccessReview) chooses what is remembered, and whoever may
make roles how much that is: all of it is bounded in bytes.
"""

from __future__ import annotations

from collections import Counter
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
from dray.api.recent import Recent
from dray.api.registry import RBAC_GROUP
from dray.api.text_memory import LONGEST, text_length
from dray.server.security.authorization import Attributes, Decision
from dray.server.security.identity import Identity, service_account_user
from dray.server.security.rules import LEAST_WORDS, Rule, uncovered

MAX_GRANTS = 8192
MAX_VERDICTS = 32_768
MOST_REMEMBERED = 16 * 1024 * 1024
"""Bytes of grants, and of verdicts; guessed, and rather too many."""
MOST_WORDS = 20_000
"""Verbs, groups, resources, names and paths in all rules that one caller has in a namespace, and `LEAST_WORDS` for each
binding; the rest does not count. Whoever may make roles can make them without end, and every request asks what its
sender may do."""
MOST_READY_WORDS = 5 * MOST_WORDS
"""In rules of roles that are kept ready for matching."""
_ENTRY_BYTES = 400
_RULE_BYTES = 64
_MAX_PROBLEMS = 8
_MASTER = Decision(True)

Stored = Role | ClusterRole | RoleBinding | ClusterRoleBinding
_Key = tuple[str, str]
_Caller = tuple[str, tuple[str, ...], str]
"""A user with groups, in a namespace."""


class _Verdict(msgspec.Struct, frozen=True):
    """The decision for any name, and the rules that are about some names only."""

    default: Decision
    named: tuple[tuple[Rule, str], ...] = ()

    def on(self, name: str) -> Decision:
        """The decision for a name."""
        for rule, source in self.named:
            if name in rule.names:
                return Decision(True, source)
        return self.default


class _Grant:
    """Every rule that applies to one (user, groups) in one namespace."""

    __slots__ = ("_denied", "rules")

    def __init__(self, rules: list[tuple[Rule, str]], problems: list[str]) -> None:
        self.rules = rules
        self._denied = Decision(False, _denial(problems))

    def verdict(self, *asked: str) -> _Verdict:
        """On (verb, group, resource, subresource), or on (verb, path)."""
        return self._resource_verdict(*asked) if len(asked) > 2 else self._path_verdict(*asked)

    def _resource_verdict(self, verb: str, group: str, resource: str, subresource: str) -> _Verdict:
        named: list[tuple[Rule, str]] = []
        for each in self.rules:
            rule, source = each
            if rule.matches_resource(verb, group, resource, subresource):
                if not rule.names:
                    return _Verdict(Decision(True, source))
                named.append(each)
        return _Verdict(self._denied, tuple(named))

    def _path_verdict(self, verb: str, path: str) -> _Verdict:
        for rule, source in self.rules:
            if rule.matches_path(verb, path):
                return _Verdict(Decision(True, source))
        return _Verdict(self._denied)


class Rbac:
    """The authorizer. Feed it every Role, ClusterRole, RoleBinding and ClusterRoleBinding through `apply`."""

    def __init__(self, objects: Iterable[Stored] = ()) -> None:
        self.generation = 0
        self._roles: dict[_Key, tuple[PolicyRule, ...]] = {}
        self._role_rules: Recent[_Key, tuple[Rule, ...]] = Recent(MAX_GRANTS, MOST_READY_WORDS)
        self._cluster_roles: dict[str, ClusterRole] = {}
        self._cluster_rules: Recent[_Key, tuple[Rule, ...]] = Recent(MAX_GRANTS, MOST_READY_WORDS)
        self._bindings: dict[_Key, RoleBinding | ClusterRoleBinding] = {}
        self._by_subject: dict[_Key, dict[str, Subject]] = {}
        self._bound_groups: Counter[str] = Counter()
        """In how many namespaces a group is given something."""
        self._forget()
        for obj in objects:
            self.apply(type(obj).__name__, obj.metadata.namespace, obj.metadata.name, obj)

    def apply(self, kind: str, namespace: str, name: str, obj: Stored | None) -> None:
        """An object of one of the four kinds is now `obj`, or is gone (None)."""
        if kind == "ClusterRole":
            self._cluster_rules = Recent(MAX_GRANTS, MOST_READY_WORDS)
            if isinstance(obj, ClusterRole):
                self._cluster_roles[name] = obj
            else:
                self._cluster_roles.pop(name, None)
        elif kind == "Role":
            self._role_rules.drop((namespace, name))
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
        self._forget()
        self.generation += 1

    def _forget(self) -> None:
        """What was found out may be otherwise now."""
        self._grants: Recent[_Caller, _Grant] = Recent(MAX_GRANTS, MOST_REMEMBERED)
        self._verdicts: Recent[tuple[_Caller, tuple[str, ...]], _Verdict] = Recent(MAX_VERDICTS, MOST_REMEMBERED)

    def allowed(self, identity: Identity, attributes: Attributes) -> Decision:
        """Whether an identity may do this; `system:masters` may do everything."""
        caller = (identity.user, identity.groups, attributes.namespace)
        if attributes.resource:
            asked: tuple[str, ...] = (attributes.verb, attributes.group, attributes.resource, attributes.subresource)
        else:
            asked = (attributes.verb, attributes.path)
        verdict = self._verdicts.get((caller, asked)) or self._find_verdict(caller, asked)
        decision = verdict.on(attributes.name) if verdict.named else verdict.default
        return _MASTER if not decision.allowed and identity.is_master else decision

    def _find_verdict(self, caller: _Caller, asked: tuple[str, ...]) -> _Verdict:
        verdict = self._grant(caller).verdict(*asked)
        length = text_length(asked)
        if _is_short(caller) and length <= LONGEST:
            self._verdicts.put((caller, asked), verdict, _bytes(caller) + length + 8 * len(verdict.named))
        return verdict

    def rules_for(self, identity: Identity, namespace: str) -> tuple[PolicyRule, ...]:
        """Everything the identity may do in a namespace (empty: at the cluster scope)."""
        return tuple(rule.policy for rule in self.rules_of(identity, namespace))

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
        return [rule for rule, _ in self._grant((identity.user, identity.groups, namespace)).rules]

    def _grant(self, caller: _Caller) -> _Grant:
        grant = self._grants.get(caller)
        if grant is None:
            grant = self._compute(*caller)
            if _is_short(caller):
                self._grants.put(caller, grant, _bytes(caller) + _RULE_BYTES * len(grant.rules))
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
            source = _source(binding, subject)
            left -= LEAST_WORDS
            for rule in found or ():
                if left <= 0:
                    break
                left -= rule.words
                rules.append((rule, source))
            if left <= 0:
                where = f"{binding.metadata.namespace}/{binding.metadata.name}".strip("/")
                problems[f"rules of {user} beyond {MOST_WORDS} words do not count, from binding {where} on"] = None
                break
        return _Grant(rules, list(problems))

    def _bindings_of(
        self, user: str, groups: tuple[str, ...], namespace: str
    ) -> Iterator[tuple[RoleBinding | ClusterRoleBinding, Subject]]:
        bound = self._bound_groups
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
            rules = tuple(_made_ready(policies))
            known.put(key, rules, sum(rule.words for rule in rules))
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
            if subject_key is None:
                continue
            bound = self._by_subject.get((namespace, subject_key))
            if bound is None:
                bound = self._by_subject[namespace, subject_key] = {}
                if subject.kind == "Group":
                    self._bound_groups[subject.name] += 1
            bound.setdefault(name, subject)

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
                if bound:
                    continue
                del self._by_subject[namespace, subject_key]
                if subject.kind == "Group":
                    self._unbind_group(subject.name)

    def _unbind_group(self, name: str) -> None:
        self._bound_groups[name] -= 1
        if not self._bound_groups[name]:
            del self._bound_groups[name]


def _is_short(caller: _Caller) -> bool:
    return len(caller[1]) <= LONGEST and text_length(caller) <= LONGEST


def _bytes(caller: _Caller) -> int:
    return _ENTRY_BYTES + 8 * len(caller[1]) + text_length(caller)


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
