"""One server for all tests of a worker; every test gets a namespace of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from live_server import Kubectl, LiveServer, running_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server process with TLS."""
    with running_server(tmp_path_factory.mktemp("server") / "state") as running:
        yield running


@pytest.fixture(scope="session")
def kubectl(server: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """Stock kubectl as the admin of the server."""
    return Kubectl(server, tmp_path_factory.mktemp("home"))


@pytest.fixture
def namespace(server: LiveServer) -> str:
    """A fresh namespace."""
    return server.new_namespace()
