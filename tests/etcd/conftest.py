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
