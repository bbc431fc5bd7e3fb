"""What the built-in policies decide, and how the settings of policies are read."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from dray.api.durations import describe_duration, parse_duration
from dray.api.generated.core import Pod, PodCondition, PodSpec, PodStatus
from dray.api.meta import ObjectMeta, OwnerReference
from dray.eviction.builtin_policies import Checkpoint, Delete, RespectBudgets
from dray.eviction.policy import EvictionCause, Now, PolicyState, Siblings, Wait
from dray.eviction.replicas import Replicas
from dray.eviction.settings import Limit, PolicyChoice, SettingsError

DUE = 1_780_000_000.0
CAUSE = EvictionCause(kind="device", due=DUE, key="example.com/broken")


def pod(name: str = "p", *, ready: bool = True, owner: str = "set", **meta: object) -> Pod:
    owners = (OwnerReference(uid=owner, controller=True),) if owner else ()
    conditions = (PodCondition(type="Ready", status="True" if ready else "False"),)
    found = ObjectMeta(name=name, namespace="ns", uid=f"uid-{name}", owner_references=owners, **meta)  # type: ignore[arg-type]
    return Pod(metadata=found, spec=PodSpec(node_name="n"), status=PodStatus(phase="Running", conditions=conditions))


def siblings(ready: int, wanted: int = 3, evicting: int = 0) -> PolicyState:
    found = Siblings(live=ready, ready=ready, evicting=evicting, wanted=wanted)
    return PolicyState(since=DUE, siblings=found)


@pytest.mark.req("3902-14", "3902-24")
def test_delete_never_hesitates() -> None:
    assert Delete().decide(pod(), CAUSE, siblings(1), DUE) == Now()


@pytest.mark.parametrize(
    ("state", "ready", "goes"),
    [
        (siblings(3), True, True),
        (siblings(2), True, False),
        (siblings(3, evicting=1), True, False),
        (siblings(2), False, True),  # a pod that does not work is no loss
        (siblings(5), True, True),
        (PolicyState(since=DUE), True, True),
    ],
)
def test_pdb_waits_for_replacements(state: PolicyState, ready: bool, goes: bool) -> None:
    decision = RespectBudgets().decide(pod(ready=ready), CAUSE, state, DUE + 10)
    assert isinstance(decision, Now if goes else Wait)
    if isinstance(decision, Now):
        assert decision.respect_budgets


def test_pdb_stops_waiting_for_replacements_and_in_the_end_for_budgets() -> None:
    policy = RespectBudgets(deadline="10m", replacement_timeout="1m")
    assert isinstance(policy.decide(pod(), CAUSE, siblings(1), DUE + 59), Wait)
    assert policy.decide(pod(), CAUSE, siblings(1), DUE + 60) == Now(respect_budgets=True)
    assert policy.decide(pod(), CAUSE, siblings(1), DUE + 600) == Now("10 min are over")


@pytest.mark.parametrize(
    ("value", "is_safe"),
    [
        (None, False),
        ("true", True),
        ("", True),
        ("false", False),
        ("False", False),
        ("2026-05-28T20:26:40Z", True),  # the moment of the cause
        ("2026-05-28T20:26:39Z", False),
        ("2027-01-01T00:00:00+02:00", True),
        ("s3://bucket/checkpoint-7", True),
    ],
)
def test_checkpoint_reads_the_annotation(value: str | None, is_safe: bool) -> None:
    annotations = {} if value is None else {"dray.dev/checkpointed": value}
    decision = Checkpoint().decide(pod(annotations=annotations), CAUSE, PolicyState(), DUE + 1)
    assert isinstance(decision, Now if is_safe else Wait)


def test_checkpoint_waits_until_its_deadline_for_the_pods_that_it_is_about() -> None:
    policy = Checkpoint(deadline="90s", annotation="example.com/saved", selector="app in (db,cache)")
    wanted = pod(labels={"app": "db"})
    decision = policy.decide(wanted, CAUSE, PolicyState(), DUE + 89)
    assert isinstance(decision, Wait)
    assert decision.until == DUE + 90
    assert "example.com/saved" in decision.reason
    assert isinstance(policy.decide(wanted, CAUSE, PolicyState(), DUE + 90), Now)
    assert isinstance(policy.decide(pod(labels={"app": "web"}), CAUSE, PolicyState(), DUE), Now)


@pytest.mark.parametrize("options", [{"deadline": "soon"}, {"selector": "a in ("}])
def test_checkpoint_refuses_options_that_mean_nothing(options: dict[str, str]) -> None:
    with pytest.raises(ValueError):
        Checkpoint(**options)


def test_replicas_count_what_a_controller_has() -> None:
    replicas = Replicas()
    first, second = pod("a"), pod("b")
    for one in (first, second, pod("c", ready=False), pod("alone", owner="")):
        replicas.put(one)
    assert replicas.siblings(pod("alone", owner="")) is None
    assert replicas.siblings(first) == Siblings(live=3, ready=2, evicting=0, wanted=3)
    replicas.evicting(first, is_so=True)
    assert replicas.siblings(second) == Siblings(live=3, ready=2, evicting=1, wanted=3)
    replicas.drop(first)
    assert replicas.siblings(second) == Siblings(live=2, ready=1, evicting=0, wanted=3)
    replicas.put(pod("d"))
    replicas.put(pod("c"))
    assert replicas.siblings(second) == Siblings(live=3, ready=3, evicting=0, wanted=3)


def test_replicas_remember_how_many_there_were_while_replacements_are_missing() -> None:
    replicas = Replicas()
    first, second = pod("a"), pod("b")
    replicas.put(first)
    replicas.put(second)
    replicas.siblings(first)
    replicas.drop(first)  # nobody is pending now
    assert replicas.siblings(second) == Siblings(live=1, ready=1, evicting=0, wanted=2)
    replicas.stays(second)
    replicas.put(pod("c"))
    replicas.put(replace(second, status=replace(second.status, phase="Succeeded")))
    assert replicas.siblings(pod("c")) == Siblings(live=1, ready=1, evicting=0, wanted=1)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("1h30m", 5400), ("500ms", 0.5), ("1.5m", 90), ("0", 0), (" 2m ", 120)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "-5s", "5 s", "1d", "1h30", "1e3s", "9" * 40 + "s", "٣s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        parse_duration(text)


def test_durations_for_people() -> None:
    assert [describe_duration(seconds) for seconds in (0.5, 90, 600, 7200)] == ["0.5 s", "90 s", "10 min", "2 h"]


@pytest.mark.parametrize(
    ("text", "passed"),
    [("10", [11]), ("0", [1]), ("10%", [11]), ("0%", [1]), ("100%", []), ("12.5%", [13])],
)
def test_limits(text: str, passed: list[int]) -> None:
    limit = Limit.parse(text)
    assert str(limit) == text
    assert [pods for pods in range(102) if pods > limit.pods(100)][: len(passed)] == passed
    assert limit.pods(0) == (10 if text == "10" else 0)


@pytest.mark.parametrize("text", ["", "ten", "-1", "101%", "10 %", "%", "1e9", "9" * 30])
def test_what_is_no_limit(text: str) -> None:
    with pytest.raises(SettingsError, match="is no limit of evictions"):
        Limit.parse(text)


def test_a_choice_of_policy() -> None:
    assert PolicyChoice.parse("pdb") == PolicyChoice("pdb", {})
    chosen = PolicyChoice.parse("checkpoint=deadline:5m, annotation:example.com/saved")
    assert chosen == PolicyChoice("checkpoint", {"deadline": "5m", "annotation": "example.com/saved"})


@pytest.mark.parametrize("text", ["", "=a:b", "pdb=deadline", "pdb=deadline:1,deadline:2", "pdb=a b:1"])
def test_what_is_no_choice_of_policy(text: str) -> None:
    with pytest.raises(SettingsError):
        PolicyChoice.parse(text)
