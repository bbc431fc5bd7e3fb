"""The limit of open files: raised for the agent, and as it was for containers."""

from __future__ import annotations

import contextlib
import logging
import resource
from collections.abc import Iterator

import pytest

from dray.process import open_files
from process_world import MACHINE, log, process_world, shell


@pytest.fixture(autouse=True)
def unchanged() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_agent_may_open_as_many_files_as_the_system_lets_it() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    assert open_files.raise_limit(2000, "500 pods") == hard
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)


def test_a_limit_that_is_too_low_is_said(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (256, 512))
    monkeypatch.setattr(resource, "setrlimit", lambda _which, _limits: None)
    with caplog.at_level(logging.WARNING):
        assert open_files.raise_limit(2000, "500 pods") == 512
    assert "only 512 files can be open at once" in caplog.text


async def test_containers_start_with_the_limits_that_the_agent_started_with() -> None:
    soft, hard = MACHINE.open_files

    async with process_world() as world:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft - 7, 64), hard))
        pod = await world.pod("p", containers=shell("ulimit -Sn; ulimit -Hn"))
        await world.phase("p", "Succeeded")
        assert log(world, pod).split() == [str(soft), str(hard)]


async def test_a_container_has_a_terminal_also_when_the_agent_has_a_thousand_files_open() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    async with process_world() as world:
        with contextlib.ExitStack() as stack:
            for _ in range(1100):
                stack.enter_context(open("/dev/null"))
            pod = await world.pod("p", containers=shell("[ -t 1 ] && echo shown", tty=True, stdin=True))
            await world.phase("p", "Succeeded")
            await world.until(lambda: "shown" in log(world, pod))
