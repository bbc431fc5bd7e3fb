"""One server for all tests of a worker; every test gets a namespace of its own.

With `DRAY_TEST_STORE=etcd` the server keeps its data in a real etcd.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from live_server import Kubectl, LiveServer, running_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server process with TLS."""
    directory = tmp_path_factory.mktemp("server") / "state"
    if os.environ.get("DRAY_TEST_STORE", "lmdb") == "lmdb":
        with running_server(directory) as running:
            yield running
        return
    from etcd_world import running_etcd

    with (
        running_etcd(tmp_path_factory.mktemp("etcd")) as etcd,
        running_server(directory, "--store", f"etcd={etcd.urls[0]}") as running,
    ):
        yield running


@pytest.fixture(scope="session")
def kubectl(server: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """Stock kubectl as the admin of the server."""
    return Kubectl(server, tmp_path_factory.mktemp("home"))


@pytest.fixture
def namespace(server: LiveServer) -> str:
    """A fresh namespace."""
    return server.new_namespace()
