"""Rules of zones and of silence, as tables."""

import pytest

from dray.api.generated.core import Node, NodeCondition, NodeSpec, NodeStatus, Taint
from dray.api.meta import ObjectMeta
from dray.api.times import Time
from dray.controllers.node_lifecycle.disruption import Count, Disruption, ZoneState, judge
from dray.controllers.node_lifecycle.health import is_silent, observe, silenced
from dray.controllers.node_lifecycle.taints import plan_taints
from dray.controllers.settings import NodeLifecycleSettings

WHEN = Time("2026-06-01T12:00:00Z")
SETTINGS = NodeLifecycleSettings()


@pytest.mark.req("3902-11", "3902-24")
@pytest.mark.parametrize(
    ("ready", "unready", "state"),
    [
        (0, 0, ZoneState.NORMAL),
        (0, 1, ZoneState.FULL),
        (1, 2, ZoneState.NORMAL),
        (1, 3, ZoneState.PARTIAL),
        (9, 11, ZoneState.PARTIAL),
        (10, 10, ZoneState.NORMAL),
    ],
)
def test_the_state_of_a_zone(ready: int, unready: int, state: ZoneState) -> None:
    assert judge(Count(ready, unready), SETTINGS) is state


@pytest.mark.req("3902-24")
@pytest.mark.parametrize(
    ("counts", "seconds_between"),
    [
        ({"a": Count(10, 2)}, 10),
        ({"a": Count(20, 40)}, 100),
        ({"a": Count(10, 20)}, None),
        ({"a": Count(0, 5), "b": Count(1, 0)}, 10),
        ({"a": Count(0, 5)}, None),
    ],
)
def test_the_rate_at_which_nodes_are_tainted(counts: dict[str, Count], seconds_between: float | None) -> None:
    disruption = Disruption(SETTINGS)
    disruption.update(counts)
    disruption.add("n1", "a")
    disruption.add("n2", "a")
    if seconds_between is None:
        assert disruption.take(0.0) == []
        assert disruption.wait(0.0) is None
        return
    assert disruption.take(0.0) == ["n1"]
    assert disruption.take(seconds_between - 0.1) == []
    assert disruption.wait(0.0) == pytest.approx(seconds_between)
    assert disruption.take(seconds_between) == ["n2"]


def test_a_node_that_recovers_leaves_the_line() -> None:
    disruption = Disruption(SETTINGS)
    disruption.update({"a": Count(10, 2)})
    disruption.add("n1", "a")
    disruption.remove("n1")
    assert disruption.take(0.0) == []


def node(*conditions: NodeCondition, taints: tuple[Taint, ...] = ()) -> Node:
    meta = ObjectMeta(name="n", creation_timestamp=WHEN)
    return Node(metadata=meta, spec=NodeSpec(taints=taints), status=NodeStatus(conditions=conditions))


def ready(status: str = "True", heartbeat: Time = WHEN) -> NodeCondition:
    return NodeCondition(type="Ready", status=status, last_heartbeat_time=heartbeat, last_transition_time=WHEN)


@pytest.mark.req("3902-02")
def test_our_own_verdict_is_no_sign_of_life_a_new_heartbeat_is() -> None:
    sign = observe(None, node(ready()), None, 0.0, 100.0)
    assert not is_silent(sign, node(ready()), 150.0, SETTINGS)
    assert is_silent(sign, node(ready()), 150.1, SETTINGS)
    marked = node(*silenced(node(ready()), Time("2026-06-01T12:01:00Z")))
    assert observe(sign, marked, None, 0.0, 151.0) == sign
    later = node(ready(heartbeat=Time("2026-06-01T12:01:00Z")))
    assert observe(sign, later, None, 0.0, 151.0).seen == 151.0


@pytest.mark.req("3902-02")
def test_taints_that_are_right_keep_their_time() -> None:
    old = Taint(key="node.kubernetes.io/not-ready", effect="NoExecute", time_added=WHEN)
    now = Time("2026-06-01T13:00:00Z")
    planned = plan_taints(node(ready("False"), taints=(old,)), may_execute=True, now=now)
    assert planned == (old, Taint(key=old.key, effect="NoSchedule", time_added=now))
    assert plan_taints(node(ready(), taints=planned), may_execute=True, now=now) == ()
