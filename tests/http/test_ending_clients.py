"""Clients that end in the middle of something leave nothing behind: no socket, no message, no loop that cannot end."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import warnings
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from dray.api.registry import by_kind
from dray.client import Informer
from dray.client.http import HttpClient
from dray.client.kubeconfig import Connection, load_kubeconfig
from dray_process import DrayProcess
from live_server import LiveServer

KINDS = [by_kind("v1", kind) for kind in ("Pod", "Node", "Namespace", "ConfigMap", "Secret", "Event")]
SECONDS = 20.0

Run = Callable[[Coroutine[Any, Any, None]], None]


async def follow(connection: Connection, seconds: float | None) -> None:
    """Watches a few kinds at once, and leaves after so many seconds, or once everything is there."""
    async with HttpClient(connection) as client:
        informers = [Informer[Any](client, kind, sleep=asyncio.sleep) for kind in KINDS]
        tasks = [asyncio.create_task(informer.run()) for informer in informers]
        if seconds is None:
            await asyncio.gather(*(informer.synced() for informer in informers))
            await client.list(KINDS[0])  # so that the watches are open, or about to be
        else:
            await asyncio.sleep(seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_watches_that_are_left_at_any_moment_leave_no_socket(server: LiveServer, run: Run) -> None:
    connection = load_kubeconfig([server.kubeconfig])
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for moment in (None, *(0.002 * step for step in range(30)), None):
            run(follow(connection, moment))
        gc.collect()
    assert [str(one.message) for one in found if one.category is ResourceWarning] == []


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_a_request_that_is_cut_short_leaves_no_socket(server: LiveServer, run: Run) -> None:
    async def hurry() -> None:
        async with HttpClient(connection) as client:
            for step in range(20):
                try:
                    async with asyncio.timeout(0.001 * step):
                        await client.list(KINDS[0])
                except TimeoutError:
                    pass

    connection = load_kubeconfig([server.kubeconfig])
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run(hurry())
        gc.collect()
    assert [str(one.message) for one in found if one.category is ResourceWarning] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
@pytest.mark.parametrize(
    ("command", "sign"),
    [
        (["get", "devices", "-w"], ""),  # says something, whatever other tests have left
        (["get", "clusters", "-w"], ""),
        (["scheduler", "--lease", "ending-scheduler"], "leading as"),
        (["controllers", "--lease", "ending-controllers"], "leading as"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)
def test_a_command_that_is_told_to_stop_says_nothing(
    server: LiveServer, command: list[str], sign: str, number: signal.Signals, tmp_path: Path
) -> None:
    """As soon as it works: its informers are just about to connect, list and watch."""
    log = tmp_path / "log"
    words = (*command, "--kubeconfig", str(server.kubeconfig))
    warned = {**os.environ, "PYTHONWARNINGS": "always::ResourceWarning"}
    with log.open("w") as sink, DrayProcess(*words, stdout=subprocess.PIPE, stderr=sink, env=warned) as process:
        assert process.stdout is not None
        while sign not in (said := process.stdout.readline()):
            assert said, log.read_text()
        process.send_signal(number)
        assert process.wait(SECONDS) == 0, log.read_text()
    # A machine that is busy with something else is told of, and is not what is tried here.
    assert [line for line in log.read_text().splitlines() if "the event loop stood still" not in line] == []
