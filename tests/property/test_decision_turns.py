"""No decision takes longer than a turn, whatever claims ask for, and in turns the same comes of it as at once."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import builders
from allocation_cluster import Cluster as Small
from allocation_strategies import NODES, clusters
from dray import cel
from dray.allocator import Options, allocate
from dray.allocator.aside import Aside
from dray.allocator.budget import Budget, TurnOver
from dray.allocator.problem import Problem
from dray.allocator.results import OutOfBudget, Refusal
from dray.allocator.search import NoWay, Search, solve
from dray.api.generated.core import Pod
from dray.scheduling.cluster import Cluster
from dray.scheduling.decide import Chosen, decide
from dray.scheduling.pod_info import read_pod
from dray.scheduling.refusal import Refused
from dray.scheduling.text import tell
from dray.tracker import Upsert
from hostile_claims import CASES, Case
from scheduler_objects import claim, device_class, node, pod

DEVICES = 256
SLICE_DEVICES = 64
TURN = 0.01
LONGEST = 0.04
"""Of processor time: what one decision takes is to be less than 20 ms, and a busy machine may take twice as long.
At once, the cases take seconds."""


@pytest.fixture
def no_collector() -> Iterator[None]:
    """What the garbage collector takes depends on all that other tests have left behind."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def build(made: Cluster, case: Case) -> Pod:
    """The cluster of a case, and the pod that has its claims."""
    devices, specs = case
    made.set_node(None, node("a"))
    made.set_class("gpu", device_class())
    made.track(Upsert(device_class()))
    parts = [devices[first : first + SLICE_DEVICES] for first in range(0, len(devices), SLICE_DEVICES)]
    pool = {"name": "a", "generation": 1, "resourceSliceCount": len(parts)}
    for number, part in enumerate(parts):
        spec = {"driver": builders.DRIVER, "nodeName": "a", "pool": pool, "devices": part}
        made.track(Upsert(builders.typed(builders.manifest(builders.V1, "ResourceSlice", f"s{number:02}", spec=spec))))
    names = [f"c{number}" for number in range(len(specs))]
    for name, spec in zip(names, specs, strict=True):
        meta = {"uid": f"uid-{name}"}
        made.set_claim(
            None, builders.typed(builders.manifest(builders.V1, "ResourceClaim", name, "ns", meta=meta, spec=spec))
        )
    return pod(claims=tuple(names))


def work(backlog: cel.Backlog, aside: Aside) -> None:
    """What is done beside the loop."""
    while (task := backlog.next()) is not None:
        if task.selector is None or task.view is None:
            cel.compile(task.expression, mode="stored")
        else:
            task.selector.outcomes.put(task.view, task.selector.work_out(task.view, lambda: 10**9))
        backlog.done(task)
    while (search := aside.next()) is not None:
        aside.went_on(search, 0.0, search.go_on(lambda: None))


def in_turns(case: Case, clock: Callable[[], float]) -> tuple[Chosen | Refused, list[float]]:
    """What is decided in the end, and how long each decision took."""
    backlog = cel.Backlog(clock)
    aside = Aside(backlog, None)
    options = Options(devices_judged=500, suspects_asked=20, aside=aside)
    here = Cluster(backlog=backlog)
    wanted = read_pod(build(here, case))
    spent = []
    for _ in range(10_000):
        backlog.begin_turn("ns", TURN)
        began = time.thread_time()
        answer = decide(here, wanted, options)
        spent.append(time.thread_time() - began)
        if isinstance(answer, Chosen) or not answer.needs_more_turns:
            return answer, spent
        work(backlog, aside)
    raise AssertionError("it never ends")


def at_once(case: Case) -> Chosen | Refused:
    here = Cluster()
    return decide(here, read_pod(build(here, case)), Options())


@pytest.mark.req("4381-106")
@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("case", CASES, ids=[case.__name__ for case in CASES])
def test_no_claim_takes_longer_than_a_turn_and_the_verdict_is_the_same(case: Callable[[int], Case]) -> None:
    answer, spent = in_turns(case(DEVICES), time.thread_time)
    assert sorted(spent)[-3:][0] < LONGEST, sorted(spent)[-10:]
    expected = at_once(case(DEVICES))
    if isinstance(expected, Chosen):
        assert answer == expected
    else:
        assert isinstance(answer, Refused)
        assert tell(answer) == tell(expected)


def test_more_is_found_out_in_every_turn_however_short() -> None:
    """A clock on which time passes only by being looked at, fast: a turn is over after some looks."""
    looks = 0.0

    def clock() -> float:
        nonlocal looks
        looks += TURN / 20
        return looks

    for case in CASES:
        made = case(40)
        answer, spent = in_turns(made, clock)
        assert type(answer) is type(at_once(made)), case.__name__
        assert len(spent) < 5_000


def outcome(run: Callable[[], Any]) -> Any:
    try:
        found = run()
    except (Refusal, OutOfBudget) as error:
        return type(error), str(error)
    return None if found is None else (found.last, found.options)


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(clusters(), st.integers(1, 5))
def test_a_search_that_is_interrupted_finds_the_same(manifests: list[dict[str, Any]], steps: int) -> None:
    here = Small(manifests)
    wanted = [claim for name, claim in sorted(here.claims.items()) if name.startswith("default/c")]
    for name in NODES:
        node_there = here.inventory.nodes.get(name)
        assert node_there is not None
        layout = here.inventory.layout(node_there)

        def pose(layout: Any = layout) -> Problem:
            shape = here.inventory.shape(wanted, here.classes)
            return Problem(layout, shape.claims, [one.metadata.name for one in wanted])

        def uninterrupted(pose: Callable[[], Problem] = pose) -> Any:
            return solve(pose(), Budget(Options()))

        def interrupted(pose: Callable[[], Problem] = pose, layout: Any = layout) -> Any:
            problem = pose()
            problem.freeze(layout.held())
            search, budget = Search(problem), Budget(Options(), None)
            left = steps

            def between() -> None:
                nonlocal left
                left -= 1
                if left < 0:
                    left = steps
                    raise TurnOver

            budget._between = between
            while True:
                try:
                    return search.run(budget)
                except TurnOver:
                    continue
                except NoWay as end:
                    raise end.refusal(problem) from None

        assert outcome(interrupted) == outcome(uninterrupted)


class TestAside:
    """What was put aside is found again as long as it is so, and not searched for without end."""

    def setup_method(self) -> None:
        self.backlog = cel.Backlog(time.monotonic)
        self.aside = Aside(self.backlog, 1.0)
        self.options = Options(aside=self.aside)
        self.here = Cluster(backlog=self.backlog)
        wanted = [{"name": f"r{n}", "exactly": {"deviceClassName": "gpu"}} for n in range(2)]
        constraint = {"matchAttribute": f"{builders.DRIVER}/g"}
        devices = [{"name": f"d{n}", "attributes": {"g": {"int": n // 3}}} for n in range(6)]
        build(self.here, (devices, [{"devices": {"requests": wanted, "constraints": [constraint]}}]))
        self.wanted = self.here.claims_of(pod(claims=("c0",))).claims

    def ask(self) -> str:
        self.backlog.begin_turn("ns", -1.0)  # over before it begins
        found = allocate(self.here.inventory, self.here.classes, self.wanted, "a", self.options)
        return type(found).__name__

    def judge(self) -> None:
        """The selector of the class is known."""
        self.backlog.begin_turn("ns", 60.0)
        allocate(self.here.inventory, self.here.classes, self.wanted, "a", Options())
        work(self.backlog, Aside(self.backlog, None))
        allocate(self.here.inventory, self.here.classes, self.wanted, "a", Options())

    def test_a_verdict_is_of_use_until_other_devices_are_held(self) -> None:
        self.judge()
        assert self.ask() == self.ask() == "Undecided"
        assert len(self.aside) == 1
        work(self.backlog, self.aside)
        assert self.ask() == self.ask() == "Allocated"
        held = claim("held", status=builders.allocated("d0", pool="a", on="a"))
        self.here.set_claim(None, held)
        assert self.ask() == "Undecided"
        work(self.backlog, self.aside)
        assert self.ask() == "Allocated"

    def test_what_took_as_long_as_it_may_is_given_up_until_it_is_forgotten(self) -> None:
        self.judge()
        assert self.ask() == "Undecided"
        search = self.aside.next()
        assert search is not None
        assert self.aside.left(search) == 1.0
        assert not self.aside.went_on(search, 0.6, None)
        again = self.aside.next()
        assert again is search
        assert self.aside.went_on(search, 0.6, None)
        assert self.ask() == "BudgetExceeded"
        self.here.set_claim(None, claim("held", status=builders.allocated("d0", pool="a", on="a")))
        assert self.ask() == "BudgetExceeded"
        assert self.aside.forget_given_up()
        assert self.ask() == "Undecided"

    def test_everybody_has_a_turn(self) -> None:
        self.judge()
        shape = self.here.inventory.shape(self.wanted, self.here.classes)
        at = self.here.inventory.nodes.get("a")
        assert at is not None
        layout = self.here.inventory.layout(at)
        for number, owner in enumerate(["one", "one", "two"]):
            self.backlog.begin_turn(owner, 1.0)
            self.here.set_claim(
                None, claim(f"held-{number}", status=builders.allocated(f"d{number}", pool="a", on="a"))
            )
            self.aside.put(shape, Problem(layout, shape.claims, ["c0"]), self.options)
        owners = []
        while (search := self.aside.next()) is not None:
            owners.append(search.owner)
        assert owners == ["one", "two", "one"]
