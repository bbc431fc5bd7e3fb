"""`dray` on a loop that measures its own turns: `python -m bench._measured FILE COMMAND …` writes down the long ones.

A turn is what the loop does between two looks at its sockets: nobody else is served meanwhile. What counts is the time
that it takes, less the time in which other programs had the processors, so that a busy machine changes little. A thread
that keeps the interpreter for long counts, and so does Python's garbage collector. With each long turn comes where all
threads were when it became long.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import threading
import time
from collections.abc import Coroutine
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

import uvloop

LONG_SECONDS = 0.010
"""Turns from which on they are written down."""
LOOK_SECONDS = 0.005
"""How often it is looked whether a turn has become long."""
FRAMES = 6


def _waited() -> float:
    """How many seconds this thread has been ready to run while other programs ran."""
    return int(Path(f"/proc/self/task/{threading.get_native_id()}/schedstat").read_text().split()[1]) / 1e9


class Loop(asyncio.SelectorEventLoop):
    """Writes down turns that take long, with what ran in them."""

    def __init__(self, out: TextIO) -> None:
        super().__init__()
        self._out = out
        self._collecting = 0.0
        self._began = (0.0, 0.0, 0.0)
        self._parts: list[tuple[float, str]] = []
        self._collected = 0.0
        self._is_turning = False
        self._stacks: dict[str, str] = {}
        gc.callbacks.append(self._on_garbage)
        threading.Thread(target=self._look_often, name="look", daemon=True).start()

    def _look_often(self) -> None:
        while not self._out.closed:
            time.sleep(LOOK_SECONDS)
            if self._is_turning and not self._stacks and time.perf_counter() - self._began[0] > LONG_SECONDS:
                names = {thread.ident: thread.name for thread in threading.enumerate()}
                frames = sys._current_frames()
                self._stacks = {names.get(one, ""): _stack(frame) for one, frame in frames.items()}
                self._stacks.pop("look", None)

    def _on_garbage(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._collecting = time.perf_counter()
        else:
            seconds = time.perf_counter() - self._collecting
            self._collected += seconds
            if seconds > LONG_SECONDS:
                self._write({"garbage": info["generation"], "seconds": round(seconds, 4)})

    def _process_events(self, event_list: Any) -> None:
        """The look at the sockets is over: the turn begins."""
        self._began = (time.perf_counter(), time.thread_time(), _waited())
        self._parts = []
        self._collected = 0.0
        self._stacks = {}
        self._is_turning = True
        super()._process_events(event_list)  # type: ignore[misc]

    def _run_once(self) -> None:
        super()._run_once()  # type: ignore[misc]
        self._is_turning = False
        wall, cpu, waited = self._began
        took = time.perf_counter() - wall
        if took < LONG_SECONDS:
            return
        took -= _waited() - waited
        used = time.thread_time() - cpu
        if took > LONG_SECONDS:
            parts = sorted(self._parts, reverse=True)[:3]
            self._write(
                {
                    "seconds": round(took, 4),
                    "cpu": round(used, 4),
                    "garbage_seconds": round(self._collected, 4),
                    "parts": [(round(seconds, 4), name) for seconds, name in parts],
                    "stacks": self._stacks,
                }
            )

    def _write(self, what: dict[str, Any]) -> None:
        if self._out.closed:
            return
        self._out.write(json.dumps({"at": time.monotonic()} | what) + "\n")
        self._out.flush()

    def note(self, seconds: float, callback: Any) -> None:
        """A callback of this turn took so long."""
        self._parts.append((seconds, _name(callback)))


def _stack(frame: FrameType | None) -> str:
    """Where a thread is, the innermost function first."""
    names: list[str] = []
    while frame is not None and len(names) < FRAMES:
        names.append(f"{Path(frame.f_code.co_filename).stem}:{frame.f_lineno} {frame.f_code.co_name}")
        frame = frame.f_back
    return " < ".join(names)


def _name(callback: Any) -> str:
    own = getattr(callback, "__self__", None)
    if isinstance(own, asyncio.Task):
        coroutine: Any = own.get_coro()
        names = [getattr(coroutine, "__qualname__", str(coroutine))]
        while (inner := getattr(coroutine, "cr_await", None)) is not None and hasattr(inner, "__qualname__"):
            coroutine = inner
            names.append(coroutine.__qualname__)
        return " > ".join(names[-4:])
    return str(getattr(callback, "__qualname__", callback))


def _measure_handles() -> None:
    run = asyncio.Handle._run

    def measured(self: asyncio.Handle) -> None:
        began = time.thread_time()
        callback = self._callback  # type: ignore[attr-defined]
        run(self)
        if (seconds := time.thread_time() - began) > LONG_SECONDS / 5:
            loop = asyncio.get_running_loop()
            if isinstance(loop, Loop):  # threads may have loops of their own
                loop.note(seconds, callback)

    asyncio.Handle._run = measured  # type: ignore[method-assign]


def main() -> None:
    """Runs a command of dray on such a loop."""
    file = Path(sys.argv[1])
    sys.argv = ["dray", *sys.argv[2:]]

    def run(main: Coroutine[Any, Any, Any]) -> Any:
        _measure_handles()
        with file.open("a") as out, asyncio.Runner(loop_factory=lambda: Loop(out)) as runner:
            return runner.run(main)

    uvloop.run = run  # type: ignore[assignment]
    from dray.cli.main import main as dray

    dray()


if __name__ == "__main__":
    main()
