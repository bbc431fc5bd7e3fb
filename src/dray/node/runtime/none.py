"""The runtime that runs nothing: containers start at once and go on until they are stopped. For tests and benches."""

from __future__ import annotations

from dray.api.generated.core import Pod
from dray.node.runtime.console import Console
from dray.node.runtime.interface import Exit, OnExit, Order, Running
from dray.reconcile import Clock


class NoRuntime:
    """Implements `Runtime`. What `start` was asked for can be seen in `orders`."""

    name = "none"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._exits: dict[Running, OnExit] = {}
        self.console: Console | None = None
        self.orders: dict[tuple[str, str], Order] = {}

    def refusal(self, _pod: Pod, /) -> str:
        """Nothing runs, so nothing has rights."""
        return ""

    async def start(self, order: Order, on_exit: OnExit) -> Running:
        """Nothing can go wrong here."""
        self.orders[order.pod.metadata.uid, order.container.name] = order
        identity = f"none://{order.pod.metadata.uid}/{order.container.name}/{order.attempt}"
        running = Running(identity, order.attempt, self._clock.now())
        self._exits[running] = on_exit
        return running

    def terminate(self, container: Running) -> None:
        """It ends at once, and well."""
        self.end(container, 0)

    def kill(self, container: Running) -> None:
        """It ends as if it had been killed."""
        self.end(container, 137)

    def end(self, container: Running, code: int) -> None:
        """Makes a container end by itself."""
        on_exit = self._exits.pop(container, None)
        if on_exit is not None:
            container.exit = Exit(code, self._clock.now())
            on_exit()

    def recover(self, pod: Pod, on_exit: OnExit, /) -> dict[str, Running]:
        """What the pod's status says to run, runs."""
        found = {}
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
            state = status.state.running
            if state is None or state.started_at is None:
                continue
            began = state.started_at.datetime().timestamp()
            found[status.name] = Running(status.container_id, status.restart_count, began)
            self._exits[found[status.name]] = on_exit
        return found

    def known_pods(self) -> set[str]:
        """Nothing is ever left."""
        return set()

    def recover_stray(self, _uid: str, _on_exit: OnExit, /) -> list[Running]:
        """Nothing is ever left."""
        return []

    def clean(self, uid: str) -> None:
        """Forgets what was asked for."""
        for key in [key for key in self.orders if key[0] == uid]:
            del self.orders[key]

    async def close(self) -> None:
        """Nothing to do."""
