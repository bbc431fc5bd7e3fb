"""Where pods may stand, and who goes for whom."""

from __future__ import annotations

from typing import Any

from patience import eventually
from peer_world import Body, World

HOST = "kubernetes.io/hostname"


def _labelled(world: World, name: str, app: str, **spec: Any) -> None:
    wanted = {**world.spec(), **spec}
    world.create(f"/api/v1/namespaces/{world.name}/pods", "v1", "Pod", name, wanted, labels={"app": app})


def _near(app: str, **more: Any) -> Body:
    return {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": app}}, **more}


def _required(term: Body) -> Body:
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def _node_affinity(key: str, operator: str, *values: str) -> Body:
    terms = [{"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def _cpu(amount: str) -> list[Body]:
    return [{"name": "c", "image": "i", "resources": {"requests": {"cpu": amount}}}]


def pods_that_avoid_each_other_stand_apart(world: World) -> None:
    for name in "abc":
        _labelled(world, name, "x", affinity={"podAntiAffinity": _required(_near("x"))})
    eventually(lambda: sum(bool(world.node_of(name)) for name in "abc") == 2)
    assert {world.node_of(name) for name in "abc"} == {"", *world.nodes}
    world.refused(next(name for name in "abc" if not world.node_of(name)))


def a_pod_goes_where_its_company_is(world: World) -> None:
    _labelled(world, "first", "x", nodeName=world.nodes[1])
    _labelled(world, "second", "y", affinity={"podAffinity": _required(_near("x"))})
    assert world.bound("second") == world.nodes[1]


def a_pod_waits_for_its_company(world: World) -> None:
    _labelled(world, "second", "y", affinity={"podAffinity": _required(_near("x"))})
    world.refused("second")
    _labelled(world, "first", "x")
    assert world.bound("second") == world.bound("first")


def company_counts_in_other_namespaces(world: World) -> None:
    other = f"{world.name}-other"
    world.create("/api/v1/namespaces", "v1", "Namespace", other, labels={"team": world.name})
    world.create(
        f"/api/v1/namespaces/{other}/pods", "v1", "Pod", "first", {**world.spec(), "nodeName": world.nodes[1]},
        labels={"app": "x"},
    )  # fmt: skip
    term = _near("x", namespaceSelector={"matchLabels": {"team": world.name}})
    _labelled(world, "second", "y", affinity={"podAntiAffinity": _required(term)})
    assert world.bound("second") == world.nodes[0]


def pods_are_spread(world: World) -> None:
    constraint = _near("x", maxSkew=1, whenUnsatisfiable="DoNotSchedule")
    for name in "abcd":
        _labelled(world, name, "x", topologySpreadConstraints=[constraint])
    where = [world.bound(name) for name in "abcd"]
    assert sorted(map(where.count, world.nodes)) == [2, 2]


def domains_that_are_missing_count_as_empty(world: World) -> None:
    constraint = _near("x", maxSkew=1, minDomains=3, whenUnsatisfiable="DoNotSchedule")
    for name in "abc":
        _labelled(world, name, "x", topologySpreadConstraints=[constraint])
    eventually(lambda: sum(bool(world.node_of(name)) for name in "abc") == 2)
    world.refused(next(name for name in "abc" if not world.node_of(name)))


def a_pod_chooses_its_node_by_label(world: World) -> None:
    world.pod("p", affinity=_node_affinity(HOST, "In", world.nodes[1]))
    assert world.bound("p") == world.nodes[1]


def labels_are_compared_as_numbers(world: World) -> None:
    world.merge(f"/api/v1/nodes/{world.nodes[1]}", {"metadata": {"labels": {"size": "20"}}})
    world.pod("p", affinity=_node_affinity("size", "Gt", "10"))
    assert world.bound("p") == world.nodes[1]


def a_preferred_node_is_taken(world: World) -> None:
    expression = {"key": HOST, "operator": "In", "values": [world.nodes[1]]}
    preference = {"weight": 100, "preference": {"matchExpressions": [expression]}}
    world.pod("p", affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preference]}})
    assert world.bound("p") == world.nodes[1]


def a_tainted_node_takes_who_tolerates_it(world: World) -> None:
    taint = {"key": "example.com/kept", "value": "x", "effect": "NoSchedule"}
    for node in world.nodes:
        world.merge(f"/api/v1/nodes/{node}", {"spec": {"taints": [taint]}})
    world.pod("p")
    world.refused("p")
    world.pod("q", tolerations=[{"key": "example.com/kept", "operator": "Equal", "value": "x"}])
    world.bound("q")


def patience_with_a_tainted_node_ends(world: World) -> None:
    toleration = {"key": "example.com/out", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
    world.pod("p", tolerations=[toleration])
    node = world.bound("p")
    world.merge(f"/api/v1/nodes/{node}", {"spec": {"taints": [{"key": "example.com/out", "effect": "NoExecute"}]}})
    eventually(lambda: world.leaving("p"), "the pod was not evicted")


def what_is_full_takes_nothing(world: World) -> None:
    for name in "ab":
        world.pod(name, containers=_cpu("6"))
        world.bound(name)
    world.pod("c", containers=_cpu("6"))
    assert "Insufficient cpu" in world.refused("c")
    world.kill("a")
    world.bound("c")


def the_largest_step_of_a_pod_counts(world: World) -> None:
    first = {"name": "i", "image": "i", "resources": {"requests": {"cpu": "9"}}}
    world.pod("p", initContainers=[first])
    assert "Insufficient cpu" in world.refused("p")


def a_port_of_a_node_is_given_once(world: World) -> None:
    container = {"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 8080}]}
    for name in "abc":
        world.pod(name, containers=[container])
    eventually(lambda: sum(bool(world.node_of(name)) for name in "abc") == 2)
    world.refused(next(name for name in "abc" if not world.node_of(name)))


def somebody_else_schedules_some_pods(world: World) -> None:
    world.pod("p", schedulerName="somebody-else")
    world.pod("q")
    world.bound("q")
    assert not world.node_of("p")


def _priority(world: World, value: int, policy: str = "PreemptLowerPriority") -> str:
    name = f"{world.name}-{value}-{policy.lower()}"
    body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    world.server.ask("POST", path, {**body, "value": value, "preemptionPolicy": policy})
    return name


def _fill(world: World) -> None:
    for name in "ab":
        world.pod(name, containers=_cpu("6"))
        world.bound(name)


def the_less_important_make_way(world: World) -> None:
    _fill(world)
    world.pod("urgent", containers=_cpu("6"), priorityClassName=_priority(world, 1000))
    eventually(lambda: world.leaving("a") or world.leaving("b"), "nobody went")
    gone = next(name for name in "ab" if world.leaving(name))
    world.kill(gone)
    world.bound("urgent")
    assert not all(world.leaving(name) for name in "ab")


def the_least_important_goes(world: World) -> None:
    world.pod("a", containers=_cpu("6"), priorityClassName=_priority(world, 10))
    world.bound("a")
    world.pod("b", containers=_cpu("6"), priorityClassName=_priority(world, 20))
    world.bound("b")
    world.pod("urgent", containers=_cpu("6"), priorityClassName=_priority(world, 1000))
    eventually(lambda: world.leaving("a"), "the least important stayed")
    assert not world.leaving("b")


def the_polite_wait(world: World) -> None:
    _fill(world)
    world.pod("polite", containers=_cpu("6"), priorityClassName=_priority(world, 1000, "Never"))
    world.refused("polite")
    assert not any(world.leaving(name) for name in "ab")


def as_important_is_not_more_important(world: World) -> None:
    _fill(world)
    world.pod("p", containers=_cpu("6"))
    world.refused("p")
    assert not any(world.leaving(name) for name in "ab")


def a_node_that_comes_takes_who_waits(world: World) -> None:
    world.pod("p", nodeSelector={HOST: f"{world.name}-late"})
    world.refused("p")
    world.add_node(f"{world.name}-late")
    assert world.bound("p") == f"{world.name}-late"
