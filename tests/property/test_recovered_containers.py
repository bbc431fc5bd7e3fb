"""What an agent has written of containers stays so when another one takes over, whatever the runtime remembers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import builders
from dray.api.generated.core import Pod
from dray.node import pod_status
from dray.node.containers import PodContainers
from dray.node.environment import Environments
from dray.node.metrics import NodeMetrics
from dray.node.pod_plan import Ended, View
from dray.node.runtime.interface import Exit, OnExit, Running
from dray.node.runtime.none import NoRuntime
from dray.reconcile import VirtualClock

NOW = 1_750_000_000.0
ADDRESS = "10.0.0.1"

moments = st.floats(0, 3)
lengths = st.floats(0, 3) | st.floats(700, 900)
codes = st.sampled_from([0, 1, 137])


class Memory(NoRuntime):
    """A runtime that knows of the last runs of containers what it is told."""

    def __init__(self, clock: VirtualClock, runs: dict[str, Running]) -> None:
        super().__init__(clock)
        self._runs = runs

    def recover(self, _pod: Pod, _on_exit: OnExit, /) -> dict[str, Running]:
        return dict(self._runs)


@st.composite
def lives(draw: st.DrawFn, name: str) -> tuple[View, Running | None]:
    """A container after some runs, and what the runtime finds of the last one: times of its own, and maybe no code."""
    runs = draw(st.integers(0, 3))
    if not runs:
        return View(), None
    began = [NOW - 5000 + 1000 * number + draw(moments) for number in range(runs)]
    ids = [f"process://{name}/{number}" for number in range(runs)]
    ends = [Ended(draw(codes), at, at + draw(lengths), one) for at, one in zip(began, ids, strict=True)]
    running = draw(st.booleans())
    view = View(
        restarts=runs - 1,
        identity=ids[-1],
        running_since=began[-1] if running else None,
        ended=None if running else ends[-1],
        before=ends[-2] if runs > 1 else None,
    )
    found = Running(ids[-1], runs - 1, began[-1] - draw(moments))
    if not running:
        found.exit = Exit(draw(st.none() | st.just(ends[-1].code)), ends[-1].finished_at + draw(moments))
    return view, found


def pod_of(*containers: str, policy: str = "Always", init: str = "") -> Pod:
    listed = [builders.container(name) for name in containers]
    first = [builders.container(init)] if init else []
    return builders.typed(builders.pod(restartPolicy=policy, initContainers=first, containers=listed), Pod)


def recovered(pod: Pod, runs: dict[str, Running]) -> PodContainers:
    """As an agent finds a pod that another one has started."""
    clock = VirtualClock(NOW + 50)
    runtime = Memory(clock, runs)
    found = PodContainers(runtime, Environments(None), NodeMetrics(dict), clock, lambda: None)  # type: ignore[arg-type]
    found.recover(pod)
    return found


@given(lives("init"), lives("a"), lives("b"), st.sampled_from(["Always", "OnFailure", "Never"]))
def test_the_status_of_a_pod_outlives_the_agent(
    init: tuple[View, Running | None], a: tuple[View, Running | None], b: tuple[View, Running | None], policy: str
) -> None:
    lived = {"init": init, "a": a, "b": b}
    pod = pod_of("a", "b", policy=policy, init="init")
    views = {name: view for name, (view, _) in lived.items()}
    written = replace(pod, status=pod_status.status(pod, views, ADDRESS, NOW, {}))
    found = recovered(written, {name: run for name, (_, run) in lived.items() if run is not None})
    assert pod_status.status(written, found.views(), ADDRESS, NOW + 50, {}) == written.status
    forgotten = recovered(written, {})
    again = replace(pod, status=pod_status.status(written, forgotten.views(), ADDRESS, NOW + 50, {}))
    assert pod_status.status(again, recovered(again, {}).views(), ADDRESS, NOW + 99, {}) == again.status


FIRST = Ended(1, NOW - 60, NOW - 50, "process://a/0")


@pytest.mark.parametrize("written", [View(), View(identity=FIRST.identity, ended=FIRST)], ids=["nothing", "the first"])
@pytest.mark.parametrize("code", [None, 3])
def test_a_run_of_which_nothing_was_written_yet_is_found(written: View, code: int | None) -> None:
    pod = pod_of("a")
    pod = replace(pod, status=pod_status.status(pod, {"a": written}, ADDRESS, NOW, {}))
    run = Running("process://a/1", 1, NOW - 10)
    run.exit = Exit(code, NOW - 5) if code is not None else None
    view = recovered(pod, {"a": run}).views()["a"]
    assert (view.restarts, view.identity, view.before) == (1, "process://a/1", written.ended)
    assert view.running is (code is None)
    assert view.ended == (Ended(3, NOW - 10, NOW - 5, "process://a/1") if code is not None else None)


def test_a_container_that_was_given_up_and_lives_is_not_started_again() -> None:
    """Its files could not be read for a while: it was written that nobody knows how it ended."""
    pod = pod_of("a")
    lost = View(identity=FIRST.identity, ended=replace(FIRST, code=None))
    pod = replace(pod, status=pod_status.status(pod, {"a": lost}, ADDRESS, NOW, {}))
    assert recovered(pod, {"a": Running(FIRST.identity, 0, FIRST.started_at)}).views()["a"].running
