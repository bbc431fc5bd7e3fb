"""A server on a thread for all tests of a module that need no more of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dray.server.instance import Instance
from live_server import LiveServer
from server_process import server_on_thread


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LiveServer, Instance]]:
    with server_on_thread(tmp_path_factory.mktemp("state") / "state") as started:
        yield started


@pytest.fixture(scope="module")
def server(running: tuple[LiveServer, Instance]) -> LiveServer:
    """The same, or the one that a module starts in its own way, for requests."""
    return running[0]
