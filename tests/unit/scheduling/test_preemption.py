"""Who would have to go for a pod that has no node: kube-scheduler's rules, and devices that victims free."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from dray.allocator import Options
from dray.api.generated.core import Pod
from dray.process.clock import as_time
from dray.scheduling import preemption
from dray.scheduling.cluster import Cluster
from dray.scheduling.decide import Chosen, decide
from dray.scheduling.pod_info import PodInfo, read_pod
from dray.scheduling.preemption import find_victims
from dray.scheduling.refusal import Preempts, Refused
from dray.scheduling.text import tell
from scheduler_objects import (
    allocated,
    chosen_node,
    claim,
    cluster,
    device_class,
    node,
    pod,
    refusal,
    resource_slice,
    typed,
)

NO_VICTIMS = "No preemption victims found for incoming pod"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def low(name: str, on: str = "a", *, cpu: str = "2", priority: int = 0, started: int = 0, **fields: Any) -> Pod:
    made = pod(name, cpu=cpu, priority=priority, nodeName=on, **fields)
    return replace(made, status=replace(made.status, start_time=as_time(started))) if started else made


def high(name: str = "high", *, cpu: str = "3", priority: int = 10, **fields: Any) -> Pod:
    return pod(name, cpu=cpu, priority=priority, **fields)


def asked(here: Cluster, wanted: Pod) -> Refused:
    return find_victims(here, read_pod(wanted), Options(), refusal(here, wanted))


def victims(here: Cluster, wanted: Pod) -> str:
    found = asked(here, wanted).preemption
    assert isinstance(found, Preempts), found
    return f"{found.node}: {' '.join(sorted(one.name.name for one in found.victims))}"


def budget(name: str, allowed: int, **labels: str) -> Any:
    meta = {"name": name, "namespace": "ns"}
    spec = {"selector": {"matchLabels": labels}}
    status = {"disruptionsAllowed": allowed}
    return typed(
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": spec, "status": status}
    )


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ([low("l1", cpu="2"), low("l2", cpu="1"), low("b1", "b", cpu="4", priority=5)], "a: l1"),
        # Those that need not go stay, the more important first.
        (
            [
                low("l1", cpu="1"),
                low("l2", cpu="1", priority=1),
                low("l3", cpu="2", priority=1),
                low("b", "b", priority=9),
            ],
            "a: l1 l3",
        ),
        # The lowest highest priority, the lowest sum, the fewest, the youngest.
        ([low("x", cpu="3", priority=3), low("y", "b", cpu="3", priority=2)], "b: y"),
        ([low("x", cpu="2"), low("x2", cpu="2"), low("y", "b", cpu="3")], "b: y"),
        ([low("x", cpu="3", started=50), low("y", "b", cpu="3", started=60)], "b: y"),
        ([low("x", cpu="3", started=70), low("y", "b", cpu="3", started=60)], "a: x"),
    ],
)
def test_who_goes(there: list[Pod], expected: str) -> None:
    assert victims(cluster(node("a"), node("b"), *there), high()) == expected


def test_budgets_are_kept_where_others_can_go_instead() -> None:
    here = cluster(node("a"), node("b"), low("x", cpu="3", labels={"app": "x"}), low("y", "b", cpu="3", priority=9))
    assert victims(here, high()) == "a: x"
    here.budgets.change(None, budget("one", 0, app="x"))
    assert victims(here, high()) == "b: y"
    here.budgets.change(budget("one", 0, app="x"), budget("one", 1, app="x"))
    assert victims(here, high()) == "a: x"
    here.budgets.change(budget("one", 1, app="x"), None)
    alone = cluster(node("a"), low("x", cpu="2", labels={"app": "x"}), low("y", cpu="2"))
    alone.budgets.change(None, budget("one", 0, app="x"))
    assert victims(alone, high(cpu="2")) == "a: y"
    assert victims(alone, high(cpu="4")) == "a: x y", "a budget is violated rather than a pod left waiting"


def test_pods_that_keep_others_away_go() -> None:
    term = {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "web"}}}
    alone = {"podAntiAffinity": {REQUIRED: [term]}}
    here = cluster(
        node("a", labels={"host": "a"}),
        low("web", cpu="1", labels={"app": "web"}),
        low("db", cpu="1", labels={"app": "db"}),
    )
    assert victims(here, high(cpu="1", labels={"app": "web"}, affinity=alone)) == "a: web"
    spread = {"maxSkew": 1, "topologyKey": "host", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2}
    evenly = [{**spread, "labelSelector": term["labelSelector"]}]
    assert victims(here, high(cpu="1", labels={"app": "web"}, topologySpreadConstraints=evenly)) == "a: web"


def test_pods_that_hold_devices_go_for_one_that_needs_them() -> None:
    holder = low("holder", cpu="1", claims=("held",))
    used = {**allocated("gpu-0", "a"), "reservedFor": [{"resource": "pods", "name": "holder", "uid": "uid-holder"}]}
    here = cluster(
        node("a"),
        node("b"),
        resource_slice("a", "gpu-0"),
        device_class(),
        claim("c"),
        claim("held", status=used),
        holder,
    )
    here.set_pod(low("plain", cpu="1"), "uid-plain")
    assert victims(here, high(cpu="1", claims=("c",))) == "a: holder"
    assert isinstance(refusal(here, high(cpu="1", claims=("c",))), Refused), "nothing was really taken away"
    shared = {**used, "reservedFor": [*used["reservedFor"], {"resource": "pods", "name": "o", "uid": "uid-other"}]}
    here.set_claim(None, claim("held", status=shared))
    assert not isinstance(asked(here, high(cpu="1", claims=("c",))).preemption, Preempts), "others use the claim, too"


@pytest.mark.parametrize(
    ("there", "wanted", "says"),
    [
        ([low("x", cpu="4", priority=10)], high(), ""),
        (
            [low("x", cpu="1")],
            high(cpu="9"),
            f"0/2 nodes are available: 1 {NO_VICTIMS}, 1 Preemption is not helpful for scheduling.",
        ),
        ([low("x", cpu="4")], high(preemptionPolicy="Never"), "not eligible due to preemptionPolicy=Never."),
    ],
)
def test_why_nobody_goes(there: list[Pod], wanted: Pod, says: str) -> None:
    message = tell(asked(cluster(node("a"), node("c", spec={"unschedulable": True}), *there), wanted))
    counts = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."
    assert message == (f"{counts} preemption: {says}" if says else counts)


def test_a_pod_waits_for_those_that_it_made_go_and_then_takes_their_node() -> None:
    here = cluster(node("a"), node("b"), low("x", "b", cpu="4"), low("y", "a", cpu="4", priority=9))
    waiting = read_pod(high())
    found = asked(here, high()).preemption
    assert isinstance(found, Preempts)
    here.nominations.set(waiting, found.node)
    here.send_away(found.victims[0])
    assert "terminating pod on the nominated node" in tell(asked(here, high()))
    here.set_pod(None, "uid-x")
    # Nobody less important takes the room meanwhile, and those that are more important do.
    assert isinstance(decide(here, read_pod(high("low", priority=1)), Options()), Refused)
    assert chosen_node(here, high("higher", priority=20)) == "b"
    here.set_pod(None, "uid-y")
    assert chosen_node(here, high()) == "b", "where it waits for room, however empty others are"
    assert isinstance(decide(here, read_pod(high("low", priority=1)), Options()), Chosen)


def test_nobody_else_goes_while_the_devices_of_those_that_went_are_not_free_yet() -> None:
    """The pod is gone first, and its claim is released a moment later."""

    def held(by: str, device: str, on: str) -> Any:
        user = {"resource": "pods", "name": by, "uid": f"uid-{by}"}
        return claim(f"held-{by}", status={**allocated(device, on), "reservedFor": [user]})

    here = cluster(
        *(node(on) for on in "ab"),
        *(resource_slice(on, "gpu-0") for on in "ab"),
        device_class(),
        claim("c"),
        held("x", "gpu-0", "a"),
        held("y", "gpu-0", "b"),
        low("x", "a", cpu="1", claims=("held-x",)),
        low("y", "b", cpu="1", priority=5, claims=("held-y",)),
    )
    wanted = high(cpu="1", claims=("c",))
    assert victims(here, wanted) == "a: x"
    here.nominations.set(read_pod(wanted), "a")
    here.set_pod(None, "uid-x")
    assert "terminating pod on the nominated node" in tell(asked(here, wanted))
    plain = high("plain", cpu="4")
    here.nominations.set(read_pod(plain), "b")
    assert victims(here, high("plain", cpu="4")) == "b: y", "who needs no device does not wait for one"
    here.nominations.drop(plain.metadata.uid)
    gone = held("x", "gpu-0", "a")
    here.set_claim(gone, None)
    assert chosen_node(here, wanted) == "a"


def test_devices_that_come_free_one_by_one_are_kept_for_who_waits_for_them() -> None:
    here = cluster(
        *(node(on) for on in "ab"),
        *(resource_slice(on, "gpu-0", "gpu-1") for on in "ab"),
        device_class(),
        claim("two", count=2),
        claim("one"),
        claim("other", status=allocated("gpu-0", "b")),
        claim("held", status=allocated("gpu-1", "a")),
    )
    wanted = high(cpu="1", claims=("two",))
    here.nominations.set(read_pod(wanted), "a")
    assert chosen_node(here, high("low", priority=1, claims=("one",))) == "b", "one is free on both"
    here.set_claim(None, claim("more", status=allocated("gpu-1", "b")))
    kept = refusal(here, high("low", priority=1, claims=("one",)))
    assert "1 node(s) keep their devices for other pods that wait for them, as important or more" in tell(kept)
    assert chosen_node(here, high("higher", priority=20, claims=("one",))) == "a"
    here.set_claim(claim("held", status=allocated("gpu-1", "a")), None)
    assert chosen_node(here, wanted) == "a"
    here.nominations.drop("uid-high")
    assert chosen_node(here, high("low", priority=1, claims=("one",))) == "a"


def test_who_has_its_devices_already_keeps_no_others_on_its_node() -> None:
    here = cluster(node("a"), resource_slice("a", "gpu-0", "gpu-1"), device_class(), claim("one"), claim("held"))
    waiting = high(cpu="1", claims=("held",))
    here.nominations.set(read_pod(waiting), "a")
    assert "keep their devices" in tell(refusal(here, high("low", priority=1, claims=("one",))))
    user = {"resource": "pods", "name": waiting.metadata.name, "uid": waiting.metadata.uid}
    here.set_claim(claim("held"), claim("held", status={**allocated("gpu-0", "a"), "reservedFor": [user]}))
    assert chosen_node(here, high("low", priority=1, claims=("one",))) == "a", "a volume is still being made for it"


def test_room_that_another_was_promised_is_not_promised_twice() -> None:
    here = cluster(node("a"), node("b"), low("x", "a", cpu="4"), low("y", "b", cpu="4", priority=5))
    assert victims(here, high("first")) == "a: x"
    here.nominations.set(read_pod(high("first")), "a")
    assert victims(here, high("second")) == "b: y"
    assert victims(here, high("more-important", priority=20)) == "a: x"


WEB = {"app": "web"}
ABOUT_WEB = {"topologyKey": "zone", "labelSelector": {"matchLabels": WEB}}


@pytest.mark.parametrize(
    ("there", "fields"),
    [
        ("b", {"topologySpreadConstraints": [{**ABOUT_WEB, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]}),
        ("c", {"affinity": {"podAffinity": {REQUIRED: [ABOUT_WEB]}}}),
    ],
)
def test_a_pod_that_waits_for_a_node_opens_no_other_to_others(there: str, fields: dict[str, Any]) -> None:
    zones = {"a": "x", "b": "y" if there == "b" else "x", "c": "z" if there == "c" else "y"}
    nodes = [node(name, labels={"zone": zone}) for name, zone in zones.items()]
    here = cluster(*nodes, low("x", "a", cpu="4"), low("full", "c", cpu="3"), low("web", there, cpu="1", labels=WEB))
    wanted = pod("wanted", cpu="1", labels=WEB, **fields)
    assert isinstance(decide(here, read_pod(wanted), Options()), Refused)
    promised = high("promised", labels=WEB)
    here.nominations.set(read_pod(promised), "a")
    assert isinstance(decide(here, read_pod(wanted), Options()), Refused)
    here.set_pod(None, "uid-x")
    here.set_pod(replace(promised, spec=replace(promised.spec, node_name="a", priority=0)), "uid-promised")
    assert isinstance(decide(here, read_pod(wanted), Options()), Chosen)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3), st.sampled_from("ab")), max_size=6),
    st.integers(1, 4),
)
def test_counting_room_finds_whom_trying_finds(there: list[tuple[int, int, str]], cpu: int) -> None:
    here = cluster(node("a"), node("b"))
    for number, (size, priority, on) in enumerate(there):
        here.set_pod(low(f"p{number}", on, cpu=str(size), priority=priority), f"uid-p{number}")
    wanted = high(cpu=str(cpu), priority=3)
    if isinstance(decide(here, read_pod(wanted), Options()), Chosen):
        return
    counted = asked(here, wanted).preemption
    before = {info.name: (dict(info.used), set(info.pods)) for info in here.nodes}
    search = preemption._Search(here, read_pod(wanted), Options(), 3)
    for info in here.nodes:
        potential = sorted((one for one in info.pods.values() if priority_of(one) < 3), key=preemption.importance)
        tried = search._in_the_way(info, potential)
        if isinstance(counted, Preempts) and counted.node == info.name:
            assert isinstance(tried, list)
            assert {one.name for one in tried} == {one.name for one in counted.victims}
    assert before == {info.name: (dict(info.used), set(info.pods)) for info in here.nodes}


def priority_of(one: PodInfo) -> int:
    return one.pod.spec.priority or 0


@pytest.mark.parametrize("order", [("first", "second"), ("second", "first")])
def test_of_equals_the_same_goes_whoever_was_heard_of_first(order: tuple[str, str]) -> None:
    pods = [low(name, started=7) for name in order]
    assert victims(cluster(node("a", cpu="4"), *pods), high(cpu="2")) == "a: second"


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_of_equal_nodes_the_same_is_chosen_whichever_came_first(order: str) -> None:
    here = cluster(*(node(name, cpu="2") for name in order), *(low(f"on-{name}", name, started=7) for name in order))
    assert victims(here, high(cpu="2")) == "a: on-a"
