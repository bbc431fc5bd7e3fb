"""A hub and clusters that join it, as processes of their own: started, killed, stopped, and asked."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dray_process import DrayProcess
from live_server import LiveServer
from patience import PATIENCE, eventually


class UpProcess:
    """A running `dray up`. What it prints is in `log`; `server` is there once it was waited for."""

    server: LiveServer | None = None

    def __init__(self, directory: Path, *options: str) -> None:
        """Starts it; `wait` until it is ready."""
        self.directory = directory
        self.log = directory.with_name(f"{directory.name}.log")
        self._from = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("a") as log:
            self.process = DrayProcess(
                "up", "--dir", directory, "--port", "0", *options, stdout=log, stderr=subprocess.STDOUT
            )

    @property
    def kubeconfig(self) -> Path:
        """The admin's way in."""
        return self.directory / "kubeconfig"

    def wait(self) -> UpProcess:
        """Returns once everything runs."""
        eventually(lambda: re.search(r"^nodes \d", self.said(), re.MULTILINE) or self.process.poll() is not None)
        assert self.process.poll() is None, self.said()
        found = re.search(r"https://\S+", self.said())
        assert found is not None
        self.server = LiveServer(found[0], self.directory)
        return self

    def said(self) -> str:
        """Everything that it has printed."""
        return self.log.read_text()[self._from :]

    def get(self, path: str) -> Any:
        """What a path answers with."""
        assert self.server is not None
        answer = self.server.request("GET", path)
        assert answer.code == 200, answer.body
        return answer.json

    def kill(self) -> None:
        """Ends it at once, with no chance to tidy up; no matter if it has ended already."""
        if self.server is not None:
            self.server.close()
        self.process.kill()
        self.process.wait(PATIENCE)

    def stop(self) -> None:
        """Ends it as Ctrl-C does."""
        if self.server is not None:
            self.server.close()
        self.process.send_signal(signal.SIGINT)
        self.process.wait(PATIENCE)
        assert self.process.returncode == 0, self.said()


@contextlib.contextmanager
def hub_and_clusters(directory: Path, *names: str) -> Iterator[dict[str, UpProcess]]:
    """Processes by name, the hub under `hub`; clusters have two simulated nodes each and a lease of one second."""
    running: dict[str, UpProcess] = {}
    try:
        running["hub"] = UpProcess(directory / "hub").wait()
        joining = ("--hub", str(running["hub"].kubeconfig), "--hub-lease", "1", "--nodes", "2")
        for name in names:
            running[name] = UpProcess(directory / name, "--cluster", name, *joining)
        for name in names:
            running[name].wait()
        yield running
    finally:
        for one in running.values():
            one.kill()
