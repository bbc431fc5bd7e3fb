"""A worker for each pod of the node. Each has a task of its own: a driver that hangs holds up only its own pods."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from dray.api.generated.core import Pod
from dray.node.pod_worker import NodeServices, PodWorker
from dray.process.tasks import cancel_all

log = logging.getLogger(__name__)


class PodWorkers:
    """All workers by the uid of their pod."""

    def __init__(self, services: NodeServices) -> None:
        self._services = services
        self._workers: dict[str, tuple[PodWorker, asyncio.Task[None]]] = {}

    def __len__(self) -> int:
        return len(self._workers)

    def on_pod(self, old: Pod | None, new: Pod | None) -> None:
        """A pod of this node has changed (an informer's handler)."""
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            known = self._workers.get(old.metadata.uid)
            if known is not None:
                known[0].update(None)
        if new is not None:
            self._worker(new.metadata.uid).update(new)

    def take_down(self, uids: Iterable[str]) -> None:
        """Pods of which only traces are left are taken down, if nobody knows better."""
        for uid in uids:
            if uid not in self._workers:
                self._worker(uid).wake()

    def wake(self, uids: Iterable[str] | None = None) -> None:
        """Lets workers look again: those of some pods, or all."""
        wanted = self._workers if uids is None else [uid for uid in uids if uid in self._workers]
        for uid in wanted:
            self._workers[uid][0].wake()

    async def close(self) -> None:
        """Stops all workers; containers go on."""
        tasks = [task for _, task in self._workers.values()]
        await cancel_all(tasks)
        self._workers.clear()

    def _worker(self, uid: str) -> PodWorker:
        known = self._workers.get(uid)
        if known is not None:
            return known[0]
        worker = PodWorker(uid, self._services)
        task = asyncio.get_running_loop().create_task(worker.run())
        self._workers[uid] = (worker, task)
        task.add_done_callback(lambda done: self._ended(uid, done))
        return worker

    def _ended(self, uid: str, task: asyncio.Task[None]) -> None:
        self._workers.pop(uid, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("the worker of pod %s failed", uid, exc_info=error)
