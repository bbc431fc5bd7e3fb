"""One member of etcd for all tests of a worker; each test has a prefix of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from etcd_world import Etcd, running_etcd


@pytest.fixture(scope="session")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Etcd]:
    """A cluster of one."""
    with running_etcd(tmp_path_factory.mktemp("etcd")) as started:
        yield started


@pytest.fixture(params=["etcd", "one process"])
def place(request: pytest.FixtureRequest) -> Etcd | None:
    """etcd, for several servers, or None, for a server in memory."""
    found: Etcd | None = request.getfixturevalue("etcd") if request.param == "etcd" else None
    return found
