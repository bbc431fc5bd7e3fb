from __future__ import annotations

import tracemalloc

import pytest

from dray.api.generated.rbac import (
    AggregationRule,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
    Subject,
)
from dray.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from dray.server.security import rbac as module
from dray.server.security.authorization import Attributes, Decision, denial_message, forbidden
from dray.server.security.identity import ANONYMOUS_IDENTITY, Identity, authenticated
from dray.server.security.rbac import Rbac, Stored
from dray.server.security.rules import LEAST_WORDS
from work import Counts, lines_run

ALICE = authenticated("alice", ("dev",))
BOB = authenticated("bob")
ROBOT = authenticated("system:serviceaccount:ns:robot", ("system:serviceaccounts", "system:serviceaccounts:ns"))


def policy(verbs: str, resources: str, groups: tuple[str, ...] = ("",), names: str = "") -> PolicyRule:
    return PolicyRule(
        verbs=tuple(verbs.split()),
        resources=tuple(resources.split()),
        api_groups=groups,
        resource_names=tuple(names.split()),
    )


def cluster_role(name: str, *rules: PolicyRule, labels: dict[str, str] | None = None) -> ClusterRole:
    return ClusterRole(metadata=ObjectMeta(name=name, labels=labels or {}), rules=rules)


def role(name: str, *rules: PolicyRule, namespace: str = "ns") -> Role:
    return Role(metadata=ObjectMeta(name=name, namespace=namespace), rules=rules)


def cluster_binding(role: str, kind: str, name: str, namespace: str = "", ref: str = "ClusterRole") -> Stored:
    return ClusterRoleBinding(
        metadata=ObjectMeta(name=f"bind-{role}"),
        role_ref=RoleRef(kind=ref, name=role),
        subjects=(Subject(kind=kind, name=name, namespace=namespace),),
    )


def binding(role: str, kind: str, name: str, namespace: str = "", ref: str = "Role") -> Stored:
    return RoleBinding(
        metadata=ObjectMeta(name=f"bind-{role}", namespace="ns"),
        role_ref=RoleRef(kind=ref, name=role),
        subjects=(Subject(kind=kind, name=name, namespace=namespace),),
    )


def asked(verb: str, resource: str, namespace: str = "", group: str = "", name: str = "") -> Attributes:
    resource, _, subresource = resource.partition("/")
    return Attributes(verb, group, resource, subresource, namespace, name)


@pytest.mark.parametrize(
    ("rule", "attributes", "allowed"),
    [
        (policy("get", "pods"), asked("get", "pods"), True),
        (policy("get", "pods"), asked("list", "pods"), False),
        (policy("get", "pods"), asked("get", "pods", group="apps"), False),
        (policy("get", "pods"), asked("get", "pods/status"), False),
        (policy("get", "pods/status"), asked("get", "pods"), False),
        (policy("get", "pods/status"), asked("get", "pods/status"), True),
        (policy("get", "*/status"), asked("get", "nodes/status"), True),
        (policy("get", "*/status"), asked("get", "nodes"), False),
        (policy("get", "*/status"), asked("get", "nodes/substatus"), False),
        (policy("get", "*"), asked("get", "pods/exec"), True),
        (policy("get", "pods/*"), asked("get", "pods/exec"), False),
        (policy("*", "pods"), asked("impersonate", "pods"), True),
        (policy("get", "pods", ("*",)), asked("get", "pods", group="anything.example.com"), True),
        (policy("get", "pods", ()), asked("get", "pods"), False),
        (policy("get", "pods", names="a b"), asked("get", "pods", name="b"), True),
        (policy("get", "pods", names="a b"), asked("get", "pods", name="c"), False),
        (policy("list", "pods", names="a b"), asked("list", "pods"), False),
        (policy("*", "*", ("*",)), asked("*", "*", group="*"), True),
        (policy("get list", "*", ("*",)), asked("*", "*", group="*"), False),
        (policy("*", "*", ("*",)), Attributes("get", path="/metrics"), False),
        (PolicyRule(non_resource_urls=("/metrics",), verbs=("get",)), Attributes("get", path="/metrics"), True),
        (PolicyRule(non_resource_urls=("/metrics",), verbs=("get",)), Attributes("get", path="/metrics/x"), False),
        (PolicyRule(non_resource_urls=("/api/*",), verbs=("get",)), Attributes("get", path="/api/v1"), True),
        (PolicyRule(non_resource_urls=("/api/*",), verbs=("get",)), Attributes("get", path="/api"), False),
        (PolicyRule(non_resource_urls=("*",), verbs=("*",)), Attributes("post", path="/x"), True),
        (PolicyRule(non_resource_urls=("/a*b",), verbs=("get",)), Attributes("get", path="/aXb"), False),
        (PolicyRule(non_resource_urls=("*",), verbs=("*",)), asked("get", "pods"), False),
    ],
)
def test_rules(rule: PolicyRule, attributes: Attributes, allowed: bool) -> None:
    rbac = Rbac([cluster_role("r", rule), cluster_binding("r", "User", "alice")])
    assert rbac.allowed(ALICE, attributes).allowed is allowed
    assert rbac.allowed(ALICE, attributes).allowed is allowed
    assert not rbac.allowed(BOB, attributes).allowed


READ = policy("get", "pods")


@pytest.mark.parametrize(
    ("bound", "identity", "namespace", "allowed"),
    [
        (cluster_binding("c", "User", "alice"), ALICE, "ns", True),
        (cluster_binding("c", "User", "alice"), ALICE, "", True),
        (cluster_binding("c", "Group", "dev"), ALICE, "other", True),
        (cluster_binding("c", "User", "dev"), ALICE, "ns", False),
        (cluster_binding("c", "ServiceAccount", "robot", "ns"), ROBOT, "other", True),
        (cluster_binding("c", "ServiceAccount", "robot"), ROBOT, "ns", False),
        (cluster_binding("c", "ServiceAccount", "robot", "other"), ROBOT, "ns", False),
        (cluster_binding("c", "Group", "system:serviceaccounts:ns"), ROBOT, "ns", True),
        (cluster_binding("c", "Planet", "alice"), ALICE, "ns", False),
        (cluster_binding("r", "User", "alice", ref="Role"), ALICE, "ns", False),
        (binding("c", "User", "alice", ref="ClusterRole"), ALICE, "ns", True),
        (binding("c", "User", "alice", ref="ClusterRole"), ALICE, "other", False),
        (binding("c", "User", "alice", ref="ClusterRole"), ALICE, "", False),
        (binding("r", "Group", "dev"), ALICE, "ns", True),
        (binding("r", "ServiceAccount", "robot"), ROBOT, "ns", True),
        (binding("r", "User", "alice", ref="Comet"), ALICE, "ns", False),
    ],
)
def test_bindings(bound: Stored, identity: Identity, namespace: str, allowed: bool) -> None:
    rbac = Rbac([cluster_role("c", READ), role("r", READ), role("r", namespace="other"), bound])
    assert rbac.allowed(identity, asked("get", "pods", namespace)).allowed is allowed


def test_every_change_takes_effect_at_once() -> None:
    rbac = Rbac()
    question = asked("get", "pods", "ns")

    def answer() -> bool:
        return rbac.allowed(ALICE, question).allowed

    grant = binding("r", "User", "alice")
    assert not answer()
    rbac.apply("RoleBinding", "ns", "bind-r", grant)
    assert not answer()
    rbac.apply("Role", "ns", "r", role("r", READ))
    assert answer()
    rbac.apply("Role", "ns", "r", role("r", policy("list", "pods")))
    assert not answer()
    rbac.apply("Role", "ns", "r", role("r", READ))
    assert answer()
    rbac.apply("RoleBinding", "ns", "bind-r", binding("r", "User", "bob"))
    assert not answer()
    assert rbac.allowed(BOB, question).allowed
    rbac.apply("RoleBinding", "ns", "bind-r", grant)
    rbac.apply("RoleBinding", "ns", "bind-r", None)
    rbac.apply("RoleBinding", "ns", "bind-r", None)
    assert not answer()
    rbac.apply("ClusterRoleBinding", "", "bind-c", cluster_binding("c", "User", "alice"))
    rbac.apply("ClusterRole", "", "c", cluster_role("c", READ))
    assert answer()
    rbac.apply("ClusterRole", "", "c", None)
    assert not answer()


def test_unknown_kinds_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="Pod is not a kind of RBAC"):
        Rbac().apply("Pod", "ns", "p", None)


def test_masters_may_do_everything_without_any_role() -> None:
    master = authenticated("root", ("system:masters",))
    assert Rbac().allowed(master, asked("delete", "nodes")).allowed
    assert Rbac().allowed(master, Attributes("post", path="/anything")).allowed


def test_the_reason_names_binding_role_and_subject() -> None:
    rbac = Rbac([cluster_role("c", READ), role("r", policy("list", "pods"))])
    rbac.apply("ClusterRoleBinding", "", "bind-c", cluster_binding("c", "Group", "dev"))
    rbac.apply("RoleBinding", "ns", "bind-r", binding("r", "ServiceAccount", "robot"))
    allowed = rbac.allowed(ALICE, asked("get", "pods"))
    assert allowed == Decision(True, 'RBAC: allowed by ClusterRoleBinding "bind-c" of ClusterRole "c" to Group "dev"')
    allowed = rbac.allowed(ROBOT, asked("list", "pods", "ns"))
    assert allowed.reason == 'RBAC: allowed by RoleBinding "bind-r/ns" of Role "r" to ServiceAccount "robot/ns"'


def test_a_binding_to_a_missing_role_is_said() -> None:
    rbac = Rbac([binding("gone", "User", "alice"), cluster_binding("lost", "User", "alice")])
    decision = rbac.allowed(ALICE, asked("get", "pods", "ns"))
    assert not decision.allowed
    lost, gone = 'clusterrole.rbac.authorization.k8s.io "lost"', 'role.rbac.authorization.k8s.io "gone"'
    assert decision.reason == f"RBAC: [{lost} not found, {gone} not found]"
    assert rbac.allowed(ALICE, asked("get", "pods")).reason == f"RBAC: {lost} not found"


def aggregated(name: str, *selectors: LabelSelector, labels: dict[str, str] | None = None) -> ClusterRole:
    return ClusterRole(
        metadata=ObjectMeta(name=name, labels=labels or {}),
        aggregation_rule=AggregationRule(cluster_role_selectors=selectors),
        rules=(policy("*", "*", ("*",)),),
    )


def labelled(**labels: str) -> LabelSelector:
    return LabelSelector(match_labels=labels)


def test_aggregated_roles_are_the_sum_of_the_chosen_ones_and_nothing_else() -> None:
    rbac = Rbac(
        [
            aggregated("outer", labelled(to="outer")),
            aggregated("inner", labelled(to="inner"), labels={"to": "outer"}),
            cluster_role("part", READ, labels={"to": "inner"}),
            cluster_binding("outer", "User", "alice"),
        ]
    )
    assert rbac.allowed(ALICE, asked("get", "pods")).allowed
    assert not rbac.allowed(ALICE, asked("delete", "pods")).allowed
    rbac.apply("ClusterRole", "", "more", cluster_role("more", policy("delete", "pods"), labels={"to": "outer"}))
    assert rbac.allowed(ALICE, asked("delete", "pods")).allowed
    rbac.apply("ClusterRole", "", "part", None)
    assert not rbac.allowed(ALICE, asked("get", "pods")).allowed


def test_aggregated_roles_may_choose_one_another_in_a_circle_and_in_long_chains() -> None:
    rbac = Rbac(
        [
            aggregated("a", labelled(to="a"), labels={"to": "b"}),
            aggregated("b", labelled(to="b"), labels={"to": "a"}),
            cluster_role("part", READ, labels={"to": "b"}),
            cluster_binding("a", "User", "alice"),
        ]
    )
    assert rbac.allowed(ALICE, asked("get", "pods")).allowed
    chain = [aggregated(f"r{n}", labelled(to=f"r{n}"), labels={"to": f"r{n - 1}"}) for n in range(300)]
    part = cluster_role("part", READ, labels={"to": "r299"})
    assert Rbac([*chain, part, cluster_binding("r0", "User", "alice")]).allowed(ALICE, asked("get", "pods")).allowed


def test_a_selector_that_makes_no_sense_gives_nothing() -> None:
    broken = LabelSelector(match_expressions=(LabelSelectorRequirement(key="a", operator="Near"),))
    rbac = Rbac([aggregated("x", broken), cluster_role("part", READ), cluster_binding("x", "User", "alice")])
    assert not rbac.allowed(ALICE, asked("get", "pods")).allowed


def test_caches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_GRANTS", 3)
    monkeypatch.setattr(module, "MAX_VERDICTS", 3)
    rbac = Rbac([cluster_role("r", READ), cluster_binding("r", "Group", "system:authenticated")])
    for number in range(20):
        assert rbac.allowed(authenticated(f"user-{number}"), asked("get", "pods")).allowed
        assert not rbac.allowed(ALICE, asked("get", f"kind-{number}")).allowed
        assert rbac.allowed(ALICE, asked("get", "pods")).allowed
    assert len(rbac._grants) <= 3
    assert len(rbac._verdicts) <= 3


@pytest.mark.parametrize(
    "rules",
    [
        (policy("get", "pods services", names=" ".join(f"n-{number}" for number in range(19_000))),),
        tuple(policy("get", "pods", names=f"n-{number}") for number in range(4_900)),
    ],
    ids=["names", "rules"],
)
def test_what_is_remembered_of_many_is_bounded_in_bytes(rules: tuple[PolicyRule, ...]) -> None:
    """Who may make roles may ask about users without end, each of whom has them by a group."""
    rbac = Rbac([role("r", *rules), binding("r", "Group", "dev")])
    assert rbac.allowed(ALICE, asked("get", "pods", "ns", name="n-7")).allowed
    tracemalloc.start()
    try:
        for number in range(150):
            user = authenticated(f"user-{number}", ("dev",))
            assert rbac.allowed(user, asked("get", "pods", "ns", name="n-7")).allowed
            assert not rbac.allowed(user, asked("get", "pods", "ns", name="m-7")).allowed
            rbac.allowed(user, asked("get", "services", "ns", name="n-7"))
        assert tracemalloc.get_traced_memory()[0] < 3 * module.MOST_REMEMBERED
    finally:
        tracemalloc.stop()


def test_roles_that_are_ready_for_matching_are_bounded() -> None:
    rules = tuple(policy("get", "pods", names=f"n-{number}") for number in range(2_000))
    roles = [role(f"r-{number}", *rules) for number in range(20)]
    rbac = Rbac([*roles, *(binding(f"r-{number}", "User", f"user-{number}") for number in range(20))])
    for number in range(20):
        assert rbac.allowed(authenticated(f"user-{number}"), asked("get", "pods", "ns", name="n-7")).allowed
        assert rbac._role_rules.size <= module.MOST_READY_WORDS
    rbac.apply("Role", "ns", "r-19", role("r-19"))
    assert not rbac.allowed(authenticated("user-19"), asked("get", "pods", "ns", name="n-7")).allowed


def test_a_question_after_a_change_costs_no_more_the_more_subjects_others_have() -> None:
    """Roles of one tenant change, and all others are asked about anew."""

    def work(count: int) -> Counts:
        subjects = tuple(Subject(kind="Group", name=f"g-{number}") for number in range(count))
        many = RoleBinding(metadata=ObjectMeta(name="many", namespace="other"), subjects=subjects)
        rbac = Rbac([role("r", READ), binding("r", "User", "alice"), many])

        def ask() -> None:
            rbac.apply("Role", "other", "x", role("x", READ, namespace="other"))
            assert rbac.allowed(ALICE, asked("get", "pods", "ns")).allowed

        return lines_run(ask)

    assert work(2000) == work(1000)


@pytest.mark.parametrize("rules", [(), (READ,), None], ids=["no-rules", "rules", "no-role"])
def test_bindings_count_for_something_whatever_they_give(rules: tuple[PolicyRule, ...] | None) -> None:
    """They can be made without end, too, and each question goes through them."""
    given = [] if rules is None else [role("r", *rules)]

    def bound(number: int) -> Stored:
        return RoleBinding(
            metadata=ObjectMeta(name=f"b-{number}", namespace="ns"),
            role_ref=RoleRef(kind="Role", name="r"),
            subjects=(Subject(kind="Group", name="dev"),),
        )

    most = module.MOST_WORDS // LEAST_WORDS
    rbac = Rbac([*given, *(bound(number) for number in range(3 * most))])
    counted = lines_run(lambda: rbac.allowed(ALICE, asked("get", "pods", "ns")))
    assert max(counted.values()) <= 2 * most
    reason = rbac.allowed(ALICE, asked("delete", "pods", "ns")).reason
    assert f"rules of alice beyond {module.MOST_WORDS} words do not count, from binding ns/b-" in reason


def test_a_group_is_found_as_long_as_any_namespace_has_it() -> None:
    rbac = Rbac([cluster_role("c", READ), binding("c", "Group", "dev", ref="ClusterRole")])
    rbac.apply("ClusterRoleBinding", "", "bind-c", cluster_binding("c", "Group", "dev"))
    rbac.apply("RoleBinding", "ns", "bind-c", None)
    assert rbac.allowed(ALICE, asked("get", "pods")).allowed
    rbac.apply("ClusterRoleBinding", "", "bind-c", None)
    assert not rbac.allowed(ALICE, asked("get", "pods")).allowed
    assert not rbac._bound_groups
    rbac.apply("RoleBinding", "ns", "bind-c", binding("c", "Group", "dev", ref="ClusterRole"))
    assert rbac.allowed(ALICE, asked("get", "pods", "ns")).allowed


@pytest.mark.parametrize(
    ("identity", "attributes", "message"),
    [
        (
            ALICE,
            asked("list", "pods", "default"),
            'User "alice" cannot list resource "pods" in API group "" in the namespace "default"',
        ),
        (
            ALICE,
            asked("get", "nodes/status", group="g.example.com"),
            'User "alice" cannot get resource "nodes/status" in API group "g.example.com" at the cluster scope',
        ),
        (ANONYMOUS_IDENTITY, Attributes("get", path="/api"), 'User "system:anonymous" cannot get path "/api"'),
        (ALICE, Attributes("get", path="/<b>&"), 'User "alice" cannot get path "/&lt;b&gt;&amp;"'),
    ],
)
def test_refusals_are_worded_as_in_kubernetes(identity: Identity, attributes: Attributes, message: str) -> None:
    assert denial_message(identity, attributes) == message


def test_the_status_of_a_refusal() -> None:
    refusal = forbidden(ALICE, asked("get", "deployments", "ns", "apps", "web"), Decision(False, "RBAC: broken"))
    status = refusal.status
    assert (status.code, status.reason) == (403, "Forbidden")
    assert status.message == (
        'deployments.apps "web" is forbidden: User "alice" cannot get resource "deployments" in API group "apps" '
        'in the namespace "ns": RBAC: broken'
    )
    assert status.details is not None
    assert (status.details.name, status.details.group, status.details.kind) == ("web", "apps", "deployments")
    path = forbidden(ALICE, Attributes("get", path="/api"), Decision(False)).status
    assert path.message == 'forbidden: User "alice" cannot get path "/api"'
