"""A store in memory."""

from __future__ import annotations

import pytest

from dray.store import LocalStore, MemoryBackend, Store


@pytest.fixture
def store() -> Store:
    return LocalStore(MemoryBackend(), decode=lambda resource, data: (resource, data))
