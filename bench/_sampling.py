"""Where the CPU time of a dray process goes, by part of the path of a pod: sampled by the process's own CPU clock.

A timer of the kernel goes off every few milliseconds of CPU time. Each time the main thread notes where it is, and adds
the CPU time that it has used since the last time: the parts sum up to what the thread has really used, and a busy
machine around it changes nothing. What C code does counts for the Python function that called it. Other threads are
counted whole.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import FrameType

EVERY_SECONDS = 0.002
MARK = signal.SIGUSR2
"""The first tells a sampled process to forget what it did so far, the second to write down what it did since."""

_INSIDE = "/src/dray/"
_WRITER = "dray-store-writer"
_OTHER = "other"

PARTS: dict[str, tuple[str, ...]] = {
    "accept": ("process/", "server/app.py", "server/api_server.py", "server/security/", "server/fairness.py"),
    "observe": ("server/observers/",),
    "decode": ("server/bodies/", "server/routes.py", "api/sharing.py"),
    "owners": ("server/verbs/field_owners.py", "server/patch/"),
    "validate": ("validation/", "server/custom/", "server/strategies.py"),
    "admit": ("server/admission/", "admission/", "pod_admission/", "server/verbs/quota.py"),
    "encode": ("server/objects.py", "server/answers/"),
    "store": ("store/", "server/indexes/"),
    "watch": ("server/verbs/watches.py",),
    "events": ("reconcile/recorder.py", "scheduler/announcements.py"),
    "decide": ("scheduling/", "allocator/", "tracker/", "cel/"),
    "bind": ("scheduler/binding.py", "server/subresources/"),
    "informers": ("client/",),
    "claims": ("controllers/resource_claim/",),
    "controllers": ("controllers/", "eviction/", "reconcile/"),
    "schedule": ("scheduler/",),
    "verbs": ("server/",),
}
"""The innermost frame that is of a part decides; of the parts, the first that it is of."""


class _Samples:
    """What a process has done, by stack."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stacks: Counter[str] = Counter()
        self._spent = 0
        self._threads: dict[int, int] = {}
        self._is_marked = False

    def mark(self, _signal: int, _frame: FrameType | None) -> None:
        """Begins, or ends."""
        if not self._is_marked:
            self._is_marked = True
            self._stacks.clear()
            self._spent = time.thread_time_ns()
            self._threads = {thread.ident or 0: _cpu_ns(thread) for thread in _others()}
            return
        signal.setitimer(signal.ITIMER_PROF, 0)
        for thread in _others():
            spent = _cpu_ns(thread) - self._threads.get(thread.ident or 0, 0)
            self._stacks[f"store/:{_WRITER}" if thread.name == _WRITER else f"thread:{thread.name}"] += spent
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps(self._stacks))
        part.rename(self._path)

    def take(self, _signal: int, frame: FrameType | None) -> None:
        """The main thread is here."""
        spent = time.thread_time_ns()
        self._stacks[_stack(frame)] += spent - self._spent
        self._spent = spent


def start(path: str) -> None:
    """Samples this process from the first mark until the second; the file then has nanoseconds by stack."""
    samples = _Samples(Path(path))
    signal.signal(MARK, samples.mark)
    signal.signal(signal.SIGPROF, samples.take)
    signal.setitimer(signal.ITIMER_PROF, EVERY_SECONDS, EVERY_SECONDS)


def parts(stacks: Mapping[str, int]) -> dict[str, int]:
    """Nanoseconds by part of the path of a pod, most first."""
    spent: Counter[str] = Counter()
    for stack, ns in stacks.items():
        spent[_part(stack)] += ns
    return dict(spent.most_common())


def _part(stack: str) -> str:
    for frame in reversed(stack.split(";")):
        for part, prefixes in PARTS.items():
            if frame.startswith(prefixes):
                return part
    return _OTHER


def _stack(frame: FrameType | None) -> str:
    """The frames inside of dray, outermost first, as file and function."""
    found = []
    while frame is not None:
        code = frame.f_code
        _, inside, file = code.co_filename.rpartition(_INSIDE)
        if inside:
            found.append(f"{file}:{code.co_qualname}")
        frame = frame.f_back
    return ";".join(reversed(found))


def _others() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread is not threading.main_thread()]


def _cpu_ns(thread: threading.Thread) -> int:
    return time.clock_gettime_ns(time.pthread_getcpuclockid(thread.ident or 0))
