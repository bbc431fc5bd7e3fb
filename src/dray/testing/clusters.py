"""Starts and stops clusters: on the loop of a coroutine, in a thread for plain tests, or in a process."""

from __future__ import annotations

import asyncio
import concurrent.futures
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from dray.all_in_one import Cluster as WholeCluster
from dray.all_in_one import ClusterSettings
from dray.server.instance import ServerSettings
from dray.simulation import load_profile
from dray.testing.clock import MovableClock
from dray.testing.documents import WAIT_SECONDS, AsyncCluster, Condition, Document, Manifest, connected
from dray.testing.faults import ApiFaults

T = TypeVar("T")

DEFAULT_PROFILE: Final = "gpu-8"
START_SECONDS: Final = 60.0
_MAIN: Final = "from dray.cli.main import main; main()"


@asynccontextmanager
async def async_cluster(
    nodes: int = 1, profile: str = DEFAULT_PROFILE, *, process: bool = False
) -> AsyncIterator[AsyncCluster]:
    """A cluster with so many simulated nodes, until the block ends; its state is gone then.

    With `process` it runs in a process of its own: slower to start, and no faults of the API or movable time.
    Raises ProfileError for a profile that does not exist, ValueError for a number of nodes that cannot be.
    """
    if not isinstance(nodes, int) or nodes < 0:
        raise ValueError(f"nodes is a number from 0 on, not {nodes!r}")
    with tempfile.TemporaryDirectory(prefix="dray-testing-", ignore_cleanup_errors=True) as name:
        directory = Path(name) / "state"
        run = _in_process(directory, nodes, profile) if process else _here(directory, nodes, profile)
        async with run as running:
            yield running


@contextmanager
def cluster(nodes: int = 1, profile: str = DEFAULT_PROFILE, *, process: bool = False) -> Iterator[Cluster]:
    """The same for plain functions: the cluster runs beside the test, in a thread or in a process."""
    with _Thread() as thread:
        context = async_cluster(nodes, profile, process=process)
        running = thread.run(context.__aenter__())
        try:
            yield Cluster(running, thread)
        finally:
            thread.run(context.__aexit__(None, None, None))


@asynccontextmanager
async def _here(directory: Path, nodes: int, profile: str) -> AsyncIterator[AsyncCluster]:
    clock, faults = MovableClock(), ApiFaults()
    settings = ServerSettings(directory=directory, port=0, around=faults.around)
    plan = ClusterSettings(server=settings, nodes=nodes, profile=load_profile(profile) if nodes else None)
    whole = WholeCluster(plan, clock)
    try:
        await whole.start_server()
        await whole.start_components()
        async with connected(whole.instance.kubeconfig, clock=clock, faults=faults) as running:
            yield running
    finally:
        await whole.stop()


@asynccontextmanager
async def _in_process(directory: Path, nodes: int, profile: str) -> AsyncIterator[AsyncCluster]:
    command = [sys.executable, "-c", _MAIN, "up", "--dir", str(directory), "--port", "0"]
    command += ["--nodes", str(nodes), "--profile", profile]
    log = directory.with_name("log")
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        await _until_ready(process, log)
        async with connected(directory / "kubeconfig") as running:
            yield running
    finally:
        process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(process.wait)


async def _until_ready(process: subprocess.Popen[bytes], log: Path) -> None:
    """Its first line about nodes says that everything is there."""
    async with asyncio.timeout(START_SECONDS):
        while not any(line.startswith("nodes ") for line in log.read_text().splitlines()):
            if process.poll() is not None:
                raise RuntimeError(f"the cluster did not start: {log.read_text().strip()}")
            await asyncio.sleep(0.02)


class _Thread:
    """An event loop in a thread of its own."""

    def __enter__(self) -> _Thread:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="dray-testing", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_ignored: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What a coroutine returns or raises, when it is done."""
        future: concurrent.futures.Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future.result()


class Cluster:
    """A running cluster, for plain functions: `AsyncCluster` without `await`."""

    def __init__(self, running: AsyncCluster, thread: _Thread) -> None:
        self._running = running
        self._thread = thread
        self.kubeconfig = running.kubeconfig
        self.client = running.client
        """A typed client (`dray.client`), as the admin, for `run`."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What a coroutine returns or raises on the cluster's own event loop, such as `run(client.list(PODS))`."""
        return self._thread.run(work)

    def apply(self, *manifests: Manifest, namespace: str = "default") -> list[Document]:
        """Creates or changes objects: YAML or JSON text, paths of files, documents. Raises ApiError."""
        return self._thread.run(self._running.apply(*manifests, namespace=namespace))

    def get(self, reference: str, namespace: str = "default") -> Document:
        """One object, such as `pod/trainer`. Raises ApiError (404)."""
        return self._thread.run(self._running.get(reference, namespace))

    def list(self, resource: str, namespace: str = "", *, labels: str = "") -> list[Document]:
        """All objects of a kind, in one namespace or everywhere."""
        return self._thread.run(self._running.list(resource, namespace, labels=labels))

    def patch(self, reference: str, patch: Mapping[str, Any], namespace: str = "default") -> Document:
        """Changes an object by a merge patch. Raises ApiError."""
        return self._thread.run(self._running.patch(reference, patch, namespace))

    def delete(self, reference: str, namespace: str = "default") -> None:
        """Deletes an object. Raises ApiError (404)."""
        self._thread.run(self._running.delete(reference, namespace))

    def wait(
        self,
        reference: str,
        condition: Condition | None = None,
        *,
        node: str = "",
        namespace: str = "default",
        timeout: float = WAIT_SECONDS,
    ) -> Document:
        """Waits until an object is as wanted; see `AsyncCluster.wait`. Raises WaitError."""
        wanted = self._running.wait(reference, condition, node=node, namespace=namespace, timeout=timeout)
        return self._thread.run(wanted)

    def advance(self, seconds: float) -> None:
        """Moves the cluster's time on."""
        self._thread.run(self._running.advance(seconds))

    def fail_requests(self, code: int = 500, *, method: str = "", path: str = "", times: int = 1) -> None:
        """The next requests over HTTP with a method, whose path contains a text, fail."""
        self._running.fail_requests(code, method=method, path=path, times=times)

    def break_watches(self) -> None:
        """All open watches break off."""

        async def break_now() -> None:
            self._running.break_watches()

        self._thread.run(break_now())

    def lose_node(self, name: str) -> None:
        """A simulated node falls silent, as if it had lost power."""
        self._thread.run(self._running.lose_node(name))

    def restore_node(self, name: str) -> None:
        """It is back."""
        self._thread.run(self._running.restore_node(name))

    def fail_device(self, node: str, device: str, *, effect: str = "NoExecute") -> None:
        """A device of a node fails: its driver taints it. Raises ValueError if the node has no such device."""
        self._thread.run(self._running.fail_device(node, device, effect=effect))

    def kubectl(self, *arguments: str, check: bool = True) -> str:
        """What kubectl prints. Raises CalledProcessError if it fails, unless `check` is off."""
        return self._thread.run(self._running.kubectl(*arguments, check=check))
