"""Kills a real server at random moments of a write storm: what was acknowledged is there, and nothing is half there."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from patience import PATIENCE, eventually_async
from server_process import ServerProcess
from write_storm import Storm

SEED = 20_261_116


async def _rage_and_kill(storm: Storm, process: ServerProcess, writes: int) -> None:
    """Kills it while it writes, some time after so many writes: how long they take is up to the machine."""
    enough = storm.acknowledged + writes
    raging = asyncio.ensure_future(storm.rage(process.url, process.client.token))
    await eventually_async(lambda: storm.acknowledged >= enough or raging.done())
    process.kill()
    await asyncio.wait_for(raging, PATIENCE)


async def survive(directory: Path, kills: int, seed: int) -> Storm:
    """A storm over so many lives of a server, checked after each of its deaths."""
    storm, moments = Storm(seed), random.Random(seed)
    for _ in range(kills):
        with ServerProcess(directory, "--insecure-http") as process:
            await storm.check(process.url, process.client.token)
            await _rage_and_kill(storm, process, moments.randint(5, 60))
    with ServerProcess(directory, "--insecure-http") as process:
        await storm.check(process.url, process.client.token)
        assert process.terminate() == 0
    assert "Traceback" not in process.log.read_text()
    return storm


@pytest.mark.req("4381-38")
async def test_acknowledged_writes_survive_sigkill(tmp_path: Path) -> None:
    storm = await survive(tmp_path / "state", kills=6, seed=SEED)
    assert storm.acknowledged > 60


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
async def test_acknowledged_writes_survive_a_thousand_kills(tmp_path: Path, seed: int) -> None:
    storm = await survive(tmp_path / "state", kills=50, seed=SEED + seed)
    assert storm.acknowledged > 50 * 20
