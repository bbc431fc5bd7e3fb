"""API servers that tests start, restart and break: as a process of its own, or on a thread of the test's process."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from dray.server.instance import Instance, Settings
from live_server import LiveServer

DRAY = str(Path(sys.executable).with_name("dray"))
START_SECONDS = 30.0


def run_dray(*arguments: str | Path, timeout: float = 30.0) -> subprocess.CompletedProcess[str]:
    """A `dray` command, run to its end."""
    command = [DRAY, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


class ServerProcess:
    """`dray server` on a directory and a free port. Its logs are in `log`."""

    def __init__(self, directory: Path, *options: str) -> None:
        """Starts it, and waits until it listens."""
        self.directory = directory
        self.log = directory.with_name(directory.name + ".log")
        command = [DRAY, "server", "--dir", str(directory), "--port", "0", *options]
        with self.log.open("a") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        found = re.search(r"https?://\S+", line)
        if found is None:
            self._process.wait(START_SECONDS)
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
        self._end(10)

    def terminate(self) -> tuple[int, float]:
        """Asks it to end; its exit code, and the seconds that took."""
        began = time.monotonic()
        self._process.send_signal(signal.SIGTERM)
        self._end(20)
        return self._process.returncode, time.monotonic() - began

    def _end(self, timeout: float) -> None:
        self.client.close()
        self._process.wait(timeout)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.kill()


@contextlib.contextmanager
def server_on_thread(directory: Path, **settings: Any) -> Iterator[tuple[LiveServer, Instance]]:
    """A server of this process, quick to start; stopped at the end."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> Instance:
        instance = Instance(Settings(directory=directory, port=0, **settings))
        await instance.start()
        return instance

    try:
        instance = asyncio.run_coroutine_threadsafe(start(), loop).result(START_SECONDS)
        client = LiveServer(instance.url, directory)
        try:
            yield client, instance
        finally:
            client.close()
            asyncio.run_coroutine_threadsafe(instance.stop(0.5), loop).result(START_SECONDS)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
