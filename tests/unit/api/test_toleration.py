"""Tolerations of pods: one table for all who ask, and the scheduler and the evictions say the same."""

import pytest

from dray.api.generated.core import Taint, Toleration
from dray.api.toleration import read_number, seconds_left, tolerates
from dray.eviction.node_planner import NodePlanner
from dray.scheduling.decide import Chosen
from scheduler_objects import choose, cluster, node, pod

TABLE = [
    (Toleration(operator="Exists"), True),
    (Toleration(key="k", operator="Exists"), True),
    (Toleration(key="k", value="5"), True),
    (Toleration(key="k", operator="Equal", value="6"), False),
    (Toleration(key="other", operator="Exists"), False),
    (Toleration(key="k", operator="Exists", effect="NoSchedule"), False),
    (Toleration(key="k", operator="Gt", value="4"), True),
    (Toleration(key="k", operator="Gt", value="5"), False),
    (Toleration(key="k", operator="Lt", value="6"), True),
    (Toleration(key="k", operator="Lt", value="4"), False),
    (Toleration(key="k", operator="Lt", value="x"), False),
    (Toleration(key="k", operator="Unheard", value="5"), False),
]


@pytest.mark.req("3902-09")
@pytest.mark.parametrize(("toleration", "matches"), TABLE)
def test_which_tolerations_match(toleration: Toleration, matches: bool) -> None:
    assert tolerates(toleration, Taint(key="k", value="5", effect="NoExecute")) is matches


@pytest.mark.req("3902-09")
@pytest.mark.parametrize(("toleration", "matches"), TABLE)
def test_a_pod_goes_where_it_may_stay(toleration: Toleration, matches: bool) -> None:
    said = {name: value for name in ("key", "operator", "value", "effect") if (value := getattr(toleration, name))}
    taint = {"key": "k", "value": "5", "effect": "NoExecute"}
    wanted = pod(tolerations=[said])
    answer = choose(cluster(node("a", spec={"taints": [taint]})), wanted)
    assert isinstance(answer, Chosen) is matches
    evictions = NodePlanner()
    evictions.put_pod(pod(tolerations=[said], nodeName="a"), 0.0)
    evictions.put_node("a", [Taint(key="k", value="5", effect="NoExecute")], 0.0, {})
    evictions.finish(0.0)
    assert bool(list(evictions.take(0.0))) is not matches


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("-7", -7), ("9223372036854775807", 2**63 - 1), ("-9223372036854775808", -(2**63))],
)
def test_numbers_have_64_bits(text: str, number: int) -> None:
    assert read_number(text) == number


@pytest.mark.parametrize("text", ["", "x", "1_000", " 5", "+5", "05", "-0", "1.0", "9223372036854775808", "9" * 5000])
def test_what_is_no_number_compares_with_nothing(text: str) -> None:
    assert read_number(text) is None
    taint = Taint(key="k", value=text, effect="NoExecute")
    assert not any(tolerates(Toleration(key="k", operator=each, value="3"), taint) for each in ("Gt", "Lt"))


@pytest.mark.req("SVS-70")
def test_the_first_toleration_that_matches_says_how_long() -> None:
    taint = Taint(key="k", effect="NoExecute")
    short, long = (Toleration(key="k", operator="Exists", toleration_seconds=seconds) for seconds in (5, 50))
    assert seconds_left((short, long), taint) == 5
    assert seconds_left((long, short), taint) == 50
    assert seconds_left((Toleration(operator="Exists"), short), taint) == float("inf")
    assert seconds_left((), taint) == 0
