"""The API server of a driver's trial: gives `dray.driver_test`, which knows clients only, a server to test against."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from dray.driver_test import Served
from dray.server.instance import Instance, ServerSettings
from dray.server.security.identity import MASTERS, authenticated


@asynccontextmanager
async def serve_trial(directory: Path) -> AsyncIterator[Served]:
    """Serves on a free port of loopback, with its state in a directory (a `driver_test.Serve`)."""
    instance = Instance(ServerSettings(directory=directory, port=0))
    try:
        await instance.start()
        yield Served(instance.client_of(authenticated("driver-test", (MASTERS,))), instance.kubeconfig)
    finally:
        await instance.stop(0.5)
