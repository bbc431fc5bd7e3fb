"""Runs `async def` tests of the store on a fresh event loop, with a limit so that a lost wake-up fails, not hangs."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from dray.store import MemoryBackend, Store

LIMIT_SECONDS = 60


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**wanted), LIMIT_SECONDS))
    return True


@pytest.fixture
def store() -> Store:
    return Store(MemoryBackend(), decode=lambda resource, data: (resource, data))
