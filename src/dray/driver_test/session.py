"""A whole run of the kit, from options to a report: for the command and for the pytest plugin."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from dray.driver_test.report import DriverReport, Result
from dray.driver_test.rule import Rule
from dray.driver_test.stage import Serve, Stage, StageError, external_stage, own_stage
from dray.driver_test.subject import CommandSubject, RunningSubject, Subject
from dray.driver_test.trial import Trial, run_trial


class SessionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What to test, and how. Either `command`, or `socket` with the cluster that the driver belongs to.

    `serve` runs the API server of a driver that is started by its command.
    """

    serve: Serve

    command: str = ""
    socket: Path | None = None
    kubeconfig: Path | None = None
    node: str = "test-node"
    cdi_dir: Path = Path("/var/run/cdi")
    timeout: float = 45.0
    parameters: Any = None
    many: Mapping[str, str] = msgspec.field(default_factory=dict)


async def run(
    options: SessionOptions,
    rules: tuple[Rule, ...],
    heard: Callable[[Result], None] = lambda _: None,
    quoted: Callable[[str, tuple[str, ...]], None] = lambda _cause, _said: None,
) -> DriverReport:
    """Tests a driver; `heard` and `quoted` as in `run_trial`. Raises SubjectError or StageError if it cannot be."""
    async with _stage(options) as stage:
        stage.parameters = options.parameters
        trial = Trial(stage, _subject(options), socket=options.socket, timeout=options.timeout)
        trial.many = options.many
        return await run_trial(trial, rules, heard, quoted)


def _subject(options: SessionOptions) -> Subject:
    return RunningSubject(options.socket) if options.socket is not None else CommandSubject(options.command)


@contextlib.asynccontextmanager
async def _stage(options: SessionOptions) -> AsyncIterator[Stage]:
    if options.command:
        async with own_stage(options.serve, options.node) as stage:
            yield stage
    elif options.socket is None or options.kubeconfig is None:
        raise StageError("give a command, or a socket with the kubeconfig of the cluster that the driver belongs to")
    else:
        async with external_stage(options.kubeconfig, options.node, options.cdi_dir) as stage:
            yield stage
