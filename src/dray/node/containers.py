"""The containers of one pod: starts them, notes how they end, stops them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from dray.api.generated.core import Container, ContainerStatus, Pod
from dray.api.pods import containers_of
from dray.api.visible import visible_start
from dray.node import pod_status
from dray.node.environment import Environments
from dray.node.metrics import NodeMetrics
from dray.node.pod_plan import Ended, View
from dray.node.runtime import Order, Running, Runtime, StartFailed
from dray.reconcile import Clock

LONGEST_MESSAGE: Final = 1024
"""As long as that of an event."""


class _Slot:
    """What is known of one container."""

    def __init__(self) -> None:
        self.restarts = 0
        self.running: Running | None = None
        self.ended: Ended | None = None
        self.before: Ended | None = None
        self.start_failures = 0
        self.failed_at = 0.0
        self.reason = ""
        self.message = ""

    def view(self) -> View:
        """As plans and statuses see it."""
        self._settle()
        running = self.running
        return View(
            restarts=self.restarts,
            running_since=running.started_at if running is not None else None,
            identity=running.identity if running is not None else self.ended.identity if self.ended else "",
            ended=self.ended,
            before=self.before,
            start_failures=self.start_failures,
            failed_at=self.failed_at,
            reason=self.reason,
            message=self.message,
        )

    def next_attempt(self) -> int:
        """The number of the next start."""
        return self.restarts + 1 if self.ended is not None else self.restarts

    def started(self, running: Running) -> None:
        """A start went well."""
        self.restarts = running.attempt
        self.before, self.ended, self.running = self.ended, None, running
        self.start_failures, self.reason, self.message = 0, "", ""

    def failed(self, error: StartFailed, now: float) -> None:
        """A start did not."""
        self.start_failures += 1
        self.failed_at, self.reason, self.message = now, error.reason, _told(error)

    def read(self, status: ContainerStatus, found: Running | None, now: float) -> None:
        """What an agent before this one wrote, and what the runtime has found of the last run."""
        self.restarts = status.restart_count
        over, before = pod_status.ended(status.state.terminated), pod_status.ended(status.last_state.terminated)
        running = status.state.running
        if running is None or running.started_at is None:
            self.ended, self.before = (over, before) if over is not None else (before, None)
            return
        began, self.before = running.started_at.datetime().timestamp(), before
        if found is None:  # it ended while nobody was looking
            self.ended = Ended(None, began, now, status.container_id)
        elif found.identity == status.container_id:
            found.started_at = began

    def recovered(self, running: Running) -> None:
        """The last run, running or ended: unless its end was written down, this is what is known of it."""
        if self.ended is not None and self.ended.identity != running.identity:
            self.before = self.ended
        elif self.ended is not None and running.exit is not None:
            return
        self.restarts, self.running, self.ended = running.attempt, running, None

    def _settle(self) -> None:
        running = self.running
        if running is not None and running.exit is not None:
            end = running.exit
            self.ended = Ended(end.code, running.started_at, end.at, running.identity)
            self.running = None


class PodContainers:
    """`wake` is called whenever a container has ended."""

    def __init__(
        self,
        runtime: Runtime,
        environments: Environments,
        metrics: NodeMetrics,
        clock: Clock,
        wake: Callable[[], None],
    ) -> None:
        self._runtime = runtime
        self._environments = environments
        self._metrics = metrics
        self._clock = clock
        self._wake = wake
        self._slots: dict[str, _Slot] = {}
        self._terminated = False

    def recover(self, pod: Pod) -> None:
        """Finds the containers that an agent before this one has started. What it wrote of them stays so."""
        found = self._runtime.recover(pod, self._wake)
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
            self._slots.setdefault(status.name, _Slot()).read(status, found.get(status.name), self._clock.now())
        for name, running in found.items():
            self._slots.setdefault(name, _Slot()).recovered(running)

    def recover_stray(self, uid: str) -> None:
        """Finds what runs of a pod that nobody knows any more."""
        for running in self._runtime.recover_stray(uid, self._wake):
            slot = self._slots.setdefault(running.identity, _Slot())
            slot.running = running

    def views(self) -> dict[str, View]:
        """How all containers that were ever started stand."""
        return {name: slot.view() for name, slot in self._slots.items()}

    @property
    def any_running(self) -> bool:
        """Whether something has not ended."""
        return any(slot.view().running for slot in self._slots.values())

    async def start(self, pod: Pod, container: Container, cdi_ids: Iterable[str]) -> tuple[str, ...]:
        """Starts a container; warnings of its runtime. Raises StartFailed (which counts), ApiError or OSError."""
        slot = self._slots.setdefault(container.name, _Slot())
        try:
            environment = await self._environments.of(pod, container)
            order = Order(pod, container, slot.next_attempt(), environment, tuple(cdi_ids))
            slot.started(await self._runtime.start(order, self._wake))
        except StartFailed as error:
            self._metrics.start_failed(error.reason)
            slot.failed(error, self._clock.now())
            raise
        self._metrics.started()
        assert slot.running is not None
        return slot.running.warnings

    def refuse(self, pod: Pod, error: StartFailed) -> bool:
        """None of the pod's containers is going to start; whether that is news."""
        slots = [self._slots.setdefault(one.name, _Slot()) for one in containers_of(pod.spec)]
        if all(slot.message == _told(error) for slot in slots):
            return False
        for slot in slots:
            slot.failed(error, self._clock.now())
            self._metrics.start_failed(error.reason)
        return True

    def terminate(self) -> None:
        """Asks all containers to end, once."""
        if not self._terminated:
            self._terminated = True
            for running in self._all_running():
                self._runtime.terminate(running)

    def kill(self) -> None:
        """Ends all containers at once."""
        for running in self._all_running():
            self._runtime.kill(running)

    def _all_running(self) -> list[Running]:
        return [slot.running for slot in self._slots.values() if slot.view().running and slot.running is not None]


def _told(error: StartFailed) -> str:
    """Why a container did not start, as its status says it: a command may be megabytes long."""
    return visible_start(str(error), LONGEST_MESSAGE)
