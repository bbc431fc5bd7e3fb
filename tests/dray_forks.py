"""The process that `dray_process` forks from: imports all of dray that may be forked, and becomes what it is asked for.

gRPC is not there yet: its library does not promise to work in a process that is forked once it is loaded, which then
may end with SIGSEGV. Who needs it loads it, and what it is used by, in 50 ms.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import sys
import warnings

import dray
from dray.cli.main import main

_ASIDE = ("dray.pytest_plugin", "dray.driver_scaffold.template", "dray.driver_test")
"""Not of any command, or with rules that stand in the order in which they are imported."""
_NOT_TO_FORK = "grpc"


def _import_everything() -> None:
    sys.modules[_NOT_TO_FORK] = None  # type: ignore[assignment]  # cannot be imported
    for module in pkgutil.walk_packages(dray.__path__, "dray."):
        if not module.name.endswith("__main__") and not module.name.startswith(_ASIDE):
            try:
                importlib.import_module(module.name)
            except ImportError as error:
                if error.name != _NOT_TO_FORK:
                    raise
    del sys.modules[_NOT_TO_FORK]


def _serve(requests: socket.socket, door: socket.socket) -> None:
    """Forks at every request, and tells who asked how it ended. Returns in those that are forked.

    Tests ask by `requests`, and say where to tell; who comes to the door (`forked_dray`) is told there.
    """
    running: dict[int, tuple[int, int]] = {}
    """By what says that a process has ended: its number, and where to tell."""
    assert _NOT_TO_FORK not in sys.modules
    assert len(os.listdir("/proc/self/task")) == 1, "a fork leaves the other threads behind, and what they hold"
    while True:
        for ready in select.select([requests.fileno(), door.fileno(), *running], [], [])[0]:
            if ready in running:
                pid, report = running.pop(ready)
                status = os.waitpid(pid, 0)[1]
                with contextlib.suppress(BrokenPipeError):
                    os.write(report, str(status).encode())
                os.close(ready)
                os.close(report)
                continue
            asking = requests if ready == requests.fileno() else door.accept()[0]
            request, streams, _, _ = socket.recv_fds(asking, 1 << 20, 4)
            if not request:
                sys.exit()
            pid = os.fork()
            if pid == 0:
                for inherited in (requests, door, asking):
                    inherited.detach()  # is closed with everything else
                _become(request, streams[:3])
                return
            with contextlib.suppress(BrokenPipeError):
                asking.send(str(pid).encode())
            report = streams[3] if asking is requests else asking.detach()
            for stream in streams[:3]:
                os.close(stream)
            running[os.pidfd_open(pid)] = (pid, report)


def _become(request: bytes, streams: list[int]) -> None:
    arguments, environment, directory = json.loads(request)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    sys.argv = ["dray", *arguments]
    faulthandler.enable()  # a crash in a library's C says where
    # Whoever runs the tests in the background may have had all of them ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # What an interpreter makes of its streams when it starts, and looks at then, as far as tests set it.
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    if "PYTHONUNBUFFERED" in environment:
        sys.stdout.reconfigure(write_through=True)
    if "ResourceWarning" in environment.get("PYTHONWARNINGS", ""):
        warnings.simplefilter("always", ResourceWarning)


if __name__ == "__main__":
    _import_everything()
    gc.collect()
    gc.freeze()  # what is never looked at stays shared
    _serve(*(socket.socket(fileno=int(number)) for number in sys.argv[1:]))
    main()
