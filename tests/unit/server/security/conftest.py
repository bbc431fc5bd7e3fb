"""Fixtures: clock, stored objects, a signing key made once per run, the default roles."""

from __future__ import annotations

import pytest

from dray.server.security.certificates import create_private_key
from dray.server.security.default_roles import default_objects
from dray.server.security.rbac import Rbac
from dray.server.security.tokens import ServiceAccountTokens
from security_world import FakeClock, Objects


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def objects() -> Objects:
    return Objects()


@pytest.fixture(scope="session")
def signing_key() -> bytes:
    return create_private_key()


@pytest.fixture
def tokens(signing_key: bytes, objects: Objects, clock: FakeClock) -> ServiceAccountTokens:
    return ServiceAccountTokens(signing_key, objects, clock)


@pytest.fixture(scope="session")
def default_rbac() -> Rbac:
    """The default roles and bindings. Tests that change them make their own."""
    return Rbac(default_objects())
