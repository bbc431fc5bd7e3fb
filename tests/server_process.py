"""API servers that tests start, restart and break: as a process of its own, or on a thread of the test's process."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from dray.process.clock import Clock
from dray.server.instance import Instance, ServerSettings
from dray_process import DrayProcess
from live_server import LiveServer
from patience import PATIENCE


class ServerProcess:
    """`dray server` on a directory and a free port. Its logs are in `log`."""

    def __init__(self, directory: Path, *options: str) -> None:
        """Starts it, and waits until it listens."""
        self.directory = directory
        self.log = directory.with_name(directory.name + ".log")
        with self.log.open("a") as log:
            self._process = DrayProcess(
                "server", "--dir", directory, "--port", "0", *options, stdout=subprocess.PIPE, stderr=log
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        found = re.search(r"https?://\S+", line)
        if found is None:
            self._process.wait(PATIENCE)
            raise AssertionError(f"the server did not start: {line}{self.log.read_text()}")
        self.url = found[0]

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rsplit(":", 1)[1])

    @cached_property
    def client(self) -> LiveServer:
        """Talks to it as the admin."""
        return LiveServer(self.url, self.directory)

    def kill(self) -> None:
        """Ends it at once, with no chance to tidy up."""
        self._process.kill()
        self._end()

    def signal(self, number: signal.Signals) -> None:
        """SIGSTOP, SIGCONT."""
        self._process.send_signal(number)

    def terminate(self) -> int:
        """Asks it to end; its exit code."""
        self._process.send_signal(signal.SIGTERM)
        self._end()
        assert self._process.returncode is not None
        return self._process.returncode

    def _end(self) -> None:
        self.client.close()
        self._process.wait(PATIENCE)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.kill()


@contextlib.contextmanager
def server_on_thread(
    directory: Path, *, clock: Clock | None = None, **settings: Any
) -> Iterator[tuple[LiveServer, Instance]]:
    """A server of this process, quick to start; stopped at the end."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> Instance:
        instance = Instance(ServerSettings(directory=directory, port=0, **settings), clock=clock)
        await instance.start()
        return instance

    try:
        instance = asyncio.run_coroutine_threadsafe(start(), loop).result(PATIENCE)
        client = LiveServer(instance.url, directory)
        try:
            yield client, instance
        finally:
            client.close()
            asyncio.run_coroutine_threadsafe(instance.stop(0.5), loop).result(PATIENCE)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
