"""A store in memory."""

from __future__ import annotations

import pytest

from dray.store import MemoryBackend, Store


@pytest.fixture
def store() -> Store:
    return Store(MemoryBackend(), decode=lambda resource, data: (resource, data))
