"""A dray process that is measured: `dray server` or `dray up` of this checkout, or of another one beside it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from bench._sampling import MARK

HERE = Path(__file__).resolve().parents[1]
CPU_OF_ALL_THREADS = 2
"""The clock of another process, as clock_getcpuclockid(3) makes it of its number; it counts nanoseconds."""

LEFT_FOR_LATER_SECONDS = 1.5
"""A server reads the rules of all kinds a second after it has started."""
RESTING_SECONDS = 0.03
"""CPU time in a second of who does nothing but look at the clock now and then."""


def cpu_seconds(pid: int) -> float:
    """What a process has computed so far, for itself and in the kernel."""
    return time.clock_gettime(~pid << 3 | CPU_OF_ALL_THREADS)


class Address(NamedTuple):
    """Where a server is, and what opens it: all that clients in other processes need."""

    port: int
    token: str


class Dray:
    """A process on a state directory, from its birth until `until` begins a line that it prints."""

    def __init__(
        self,
        command: list[str],
        directory: Path,
        until: str = "",
        checkout: Path = HERE,
        samples: Path | None = None,
        turns: Path | None = None,
    ) -> None:
        """With `samples`, a file that is not there yet, it can tell what it did (`sampled`).

        Long turns of its loop are written to `turns`, at some cost: see `bench._measured`.
        """
        began = time.perf_counter()
        self._samples = samples
        begin = "from dray.cli.main import main; main()"
        if samples is not None:
            sampling = f"from bench._sampling import start; start({str(samples)!r})"
            begin = f"import sys; sys.path.append({str(HERE)!r}); {sampling}; {begin}"
        line = [
            sys.executable,
            *(["-c", begin] if turns is None else ["-m", "bench._measured", str(turns)]),
            *command,
            "--dir",
            str(directory),
            "--port",
            "0",
        ]
        environment = os.environ | {"PYTHONPATH": str(checkout / "src")}
        self._process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=environment)
        self.port = 0
        self.greeting = self._read(until)
        self.seconds = time.perf_counter() - began
        self.token = (directory / "admin-token").read_text().strip()

    def _read(self, until: str) -> str:
        """The line that says that it is there; its port is in one before, or in that one."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not self.port and "https://" in line:
                self.port = int(line.split("https://")[1].split()[0].rsplit(":", 1)[1])
            if self.port and line.startswith(until):
                return line
        raise RuntimeError(f"the process ended with code {self._process.wait()} before it was ready")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def cpu_seconds(self) -> float:
        """What the process has computed so far, for itself and in the kernel: what others do does not count."""
        return cpu_seconds(self._process.pid)

    def settle(self) -> None:
        """Waits until the process rests: what a start leaves for later is no part of what a load costs."""
        time.sleep(LEFT_FOR_LATER_SECONDS)
        for _ in range(20):
            before = self.cpu_seconds()
            time.sleep(1)
            if self.cpu_seconds() - before < RESTING_SECONDS:
                return

    def begin_sampling(self) -> None:
        """What it did so far does not count."""
        self._process.send_signal(MARK)

    def sampled(self) -> dict[str, int]:
        """Nanoseconds of CPU by stack since `begin_sampling`."""
        assert self._samples is not None
        self._process.send_signal(MARK)
        while not self._samples.exists():
            time.sleep(0.01)
        found: dict[str, int] = json.loads(self._samples.read_text())
        return found

    def memory(self) -> int:
        """The process's own memory in bytes, without what it maps from files."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        fields = dict(line.split(":", 1) for line in status.splitlines())
        return int(fields["RssAnon"].split()[0]) * 1024

    def stop(self) -> None:
        """Ends the process as an operator would."""
        self._process.send_signal(signal.SIGTERM)
        self._process.communicate(timeout=20)
