from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dray.api.generated.rbac import PolicyRule, RoleBinding
from dray.server.security import escalation
from dray.server.security.authorization import Attributes
from dray.server.security.default_roles import default_objects
from dray.server.security.default_roles.building import (
    aggregated_role,
    cluster_binding,
    cluster_role,
    rule,
    system_binding,
    system_role,
    users,
)
from dray.server.security.identity import authenticated
from dray.server.security.rbac import MOST_WORDS, Rbac
from dray.server.security.rules import MAX_COMPARISONS, MAX_SINGLE_RIGHTS, Rule, uncovered
from work import lines_run


def check_role_write(*arguments: Any) -> str | None:
    found = escalation.check_role_write(*arguments)
    return found.refusal() if isinstance(found, escalation.Question) else found


def check_binding_write(*arguments: Any) -> str | None:
    found = escalation.check_binding_write(*arguments)
    return found.refusal() if isinstance(found, escalation.Question) else found


ROOT = authenticated("root", ("system:masters",))
ALICE = authenticated("alice")
EVE = authenticated("eve")


@pytest.fixture(scope="module")
def rbac() -> Rbac:
    """alice may read pods; eve may escalate and bind; carol is cluster-admin by a binding."""
    return Rbac(
        [
            *default_objects(),
            cluster_role("pod-reader", rule("get list", "core", "pods"), rule("get", "core", "pods/log")),
            cluster_binding("pod-reader", users("alice")),
            cluster_role(
                "escalator",
                rule("escalate", "rbac.authorization.k8s.io", "roles clusterroles"),
                rule("bind", "rbac.authorization.k8s.io", "clusterroles", names="cluster-admin"),
            ),
            cluster_binding("escalator", users("eve")),
            cluster_binding("cluster-admin", users("carol"), name="carol"),
        ]
    )


WITHIN = system_role("r", rule("get", "core", "pods"), rule("get", "core", "pods/log"))
BEYOND = system_role("r", rule("get delete create", "core", "pods secrets"))


def test_nobody_grants_what_they_do_not_have(rbac: Rbac) -> None:
    assert check_role_write(rbac, ALICE, None, WITHIN) is None
    assert check_role_write(rbac, ALICE, None, BEYOND) == (
        'user "alice" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n'
        '{APIGroups:[""], Resources:["pods"], Verbs:["delete" "create"]}\n'
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "delete" "create"]}'
    )
    for exempt in (ROOT, EVE, authenticated("carol")):
        assert check_role_write(rbac, exempt, None, BEYOND) is None


def test_metadata_of_a_larger_role_may_change(rbac: Rbac) -> None:
    annotated = replace(BEYOND, metadata=replace(BEYOND.metadata, finalizers=("x",)))
    assert check_role_write(rbac, ALICE, BEYOND, annotated) is None
    relabelled = replace(BEYOND, metadata=replace(BEYOND.metadata, labels={"a": "b"}))
    assert check_role_write(rbac, ALICE, BEYOND, relabelled) is not None
    assert check_role_write(rbac, ALICE, WITHIN, BEYOND) is not None


def test_aggregation_is_for_cluster_admins(rbac: Rbac) -> None:
    role = aggregated_role("mine")
    message = "must have cluster-admin privileges to use the aggregationRule"
    assert check_role_write(rbac, ALICE, None, role) == message
    assert check_role_write(rbac, ALICE, role, replace(role, aggregation_rule=None)) == message
    assert check_role_write(rbac, authenticated("carol"), None, role) is None


def test_binding_needs_the_rights_or_the_verb(rbac: Rbac) -> None:
    reader, admin = cluster_binding("pod-reader", users("mallory")), cluster_binding("cluster-admin", users("mallory"))
    assert check_binding_write(rbac, ALICE, None, reader) is None
    denied = check_binding_write(rbac, ALICE, None, admin)
    assert denied is not None
    assert 'Verbs:["*"]' in denied
    assert check_binding_write(rbac, EVE, None, admin) is None
    assert check_binding_write(rbac, EVE, None, reader) is not None
    assert check_binding_write(rbac, ROOT, None, admin) is None
    assert check_binding_write(rbac, ALICE, reader, replace(reader, subjects=users("x"))) is None
    assert check_binding_write(rbac, ALICE, admin, replace(admin, subjects=users("x"))) is not None
    assert check_binding_write(rbac, ALICE, admin, admin) is None


def test_binding_to_a_role_that_is_not_there(rbac: Rbac) -> None:
    binding: RoleBinding = system_binding("gone", users("mallory"))
    assert check_binding_write(rbac, ALICE, None, binding) == 'role.rbac.authorization.k8s.io "gone" not found'


def test_rights_in_a_namespace_count_there_only() -> None:
    rbac = Rbac([system_role("r", rule("get", "core", "pods")), system_binding("r", users("alice"))])
    wanted = (rule("get", "core", "pods"),)
    assert rbac.missing_permissions(ALICE, wanted, "kube-system") == ()
    assert rbac.missing_permissions(ALICE, wanted, "default") == wanted
    assert rbac.missing_permissions(ALICE, wanted) == wanted
    assert rbac.missing_permissions(ROOT, wanted) == ()


def test_a_rule_that_stands_for_billions_of_rights_costs_nothing() -> None:
    many = tuple(f"x{number}" for number in range(3000))
    bomb = PolicyRule(api_groups=many, resources=many, verbs=many, resource_names=many)
    assert len(many) ** 4 > MAX_SINGLE_RIGHTS
    assert uncovered([Rule(rule("get", "core", "pods"))], [bomb]) == (bomb,)
    assert uncovered([Rule(rule("*", "*", "*"))], [bomb]) == ()


_texts = {
    "verbs": ("get", "list", "*"),
    "groups": ("", "apps", "*"),
    "resources": ("pods", "pods/log", "nodes/log", "*/log", "*"),
    "names": ("a", "b"),
    "paths": ("/a", "/a/b", "/a/*", "*"),
}


def _some(key: str, least: int = 0) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(_texts[key]), min_size=least, max_size=2, unique=True).map(tuple)


_rules = st.builds(
    PolicyRule,
    verbs=_some("verbs", 1),
    api_groups=_some("groups", 1),
    resources=_some("resources", 1),
    resource_names=_some("names"),
) | st.builds(PolicyRule, verbs=_some("verbs", 1), non_resource_urls=_some("paths", 1))

_REQUESTS = list(product(("get", "list", "watch"), ("", "apps", "x"), ("pods", "nodes"), ("", "log"), ("", "a", "c")))
_PATHS = list(product(("get", "list", "watch"), ("/a", "/a/", "/a/b", "/a/c", "/d")))


@given(st.lists(_rules, max_size=3), st.lists(_rules, min_size=1, max_size=2))
def test_what_is_covered_allows_no_request_that_its_owner_may_not_make(
    own: list[PolicyRule], wanted: list[PolicyRule]
) -> None:
    """Against a brute-force twin: if nothing is missing, the owner may make every request that the new rules allow."""
    missing = uncovered([Rule(item) for item in own], wanted)

    def allows(rules: list[PolicyRule], request: tuple[str, ...]) -> bool:
        compiled = [Rule(item) for item in rules]
        if len(request) == 2:
            return any(item.matches_path(*request) for item in compiled)
        verb, group, resource, subresource, name = request
        return any(
            item.matches_resource(verb, group, resource, subresource) and (not item.names or name in item.names)
            for item in compiled
        )

    for request in (*_REQUESTS, *_PATHS):
        if allows(wanted, request) and not allows(own, request):
            assert missing
            assert allows(list(missing), request)


@given(st.lists(_rules, min_size=1, max_size=3))
def test_everybody_may_grant_what_they_have(own: list[PolicyRule]) -> None:
    assert uncovered([Rule(item) for item in own], own) == ()


def test_comparing_rights_is_bounded_however_many_rules_there_are_on_both_sides() -> None:
    """Whoever is the admin of a namespace may write roles of megabytes, and bind as many to themselves."""
    wide = PolicyRule(
        api_groups=tuple(f"g{n}" for n in range(60)), resources=tuple(f"r{n}" for n in range(60)), verbs=("get", "list")
    )
    own = [Rule(rule("get", "core", "pods", names=f"n-{number}")) for number in range(1000)]
    counted = lines_run(lambda: uncovered(own, [wide] * 1000))
    assert sum(counted.values()) < 40 * MAX_SINGLE_RIGHTS
    many = [rule("list", "core", "pods", names=f"n-{number}") for number in range(3000)]
    counted = lines_run(lambda: uncovered(own, many))
    assert sum(counted.values()) < 20 * MAX_COMPARISONS
    assert len(uncovered(own, many)) == len(many)  # what is not looked at is not given


def test_rules_beyond_all_measure_do_not_count() -> None:
    """And those of the whole cluster come before those of a namespace, where somebody else may make them."""
    rules = [rule("get", "core", "pods", names=f"n-{number}") for number in range(MOST_WORDS)]
    roles = [system_role(f"r{number}", *rules) for number in range(3)]
    rbac = Rbac([*roles, *(system_binding(role.metadata.name, users("alice")) for role in roles)])
    found = rbac.rules_for(ALICE, "kube-system")
    assert 0 < len(found) <= MOST_WORDS // 4
    denied = rbac.allowed(ALICE, Attributes("get", "", "pods", "", "kube-system", "n-19999"))
    assert not denied.allowed
    assert denied.reason.endswith(f"beyond {MOST_WORDS} words do not count, from binding kube-system/r0 on")
    assert rbac.allowed(ALICE, Attributes("get", "", "pods", "", "kube-system", "n-0")).allowed
