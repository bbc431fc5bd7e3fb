"""What holds for every test: one that is `async def` runs on an event loop of its own, and examples are made calmly.

Nothing else is needed to write one; what a test shares with others is an asynchronous context manager that it enters:

async def test_a_pod_is_bound() -> None:
    async with scheduler_world() as world:
        ...
"""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, settings

# Tests and what they import stay to the end: looking for garbage among them, again and again, is wasted.
gc.disable()
os.environ.pop("XDG_DATA_HOME", None)  # a test that says where home is says where state is
# Hundreds of processes are started: what one has compiled, the others need not, even where people want no such files.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A busy machine is no finding: how long an example takes says nothing unless the test measures it. And who has changed
# nothing gets the examples that were there before; `--hypothesis-profile exploring` looks for new ones.
settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.register_profile("exploring", settings.get_profile("steady"), derandomize=False)
settings.load_profile("steady")


@pytest.fixture(autouse=True, scope="session")
def _printed_documents_have_their_shape() -> Iterator[None]:
    """Whatever a command prints for programs in a test, whichever, is what its schema promises."""
    from dray.cli import output
    from dray.cli.shapes import schema

    validator = functools.cache(lambda kind: jsonschema_rs.validator_for(_closed(schema(kind))))

    def checked(value: object, kind: str) -> Any:
        made = document(value, kind)
        validator(kind).validate(json.loads(output.to_json(made)))
        return made

    document, output.document = output.document, checked
    yield
    output.document = document


def _closed(schema: Any) -> Any:
    """The same, in which an object has no other fields than those that are told."""
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(one) for key, one in schema.items()}
    return closed | {"additionalProperties": False} if isinstance(schema.get("properties"), dict) else closed


def pytest_collection_finish() -> None:
    """From here on there is garbage."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a coroutine test on a fresh loop, which has no tasks left when the test is over."""
    given = getattr(pyfuncitem.obj, "hypothesis", None)
    if given is not None and inspect.iscoroutinefunction(given.inner_test):
        given.inner_test = _run_each_time(given.inner_test)  # one loop per example, not per test
        return None
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    asyncio.run(pyfuncitem.obj(**wanted))
    return True


def _run_each_time(test: Any) -> Any:
    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(test(*arguments, **named))

    return run
