"""What the shell offers when TAB is pressed: what the cluster at hand has, clusters of this machine, profiles.

Whatever goes wrong, nothing is offered: a shell is no place for error messages.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dray.api.registry import Kind
    from dray.api.resource import ResourceSlice
    from dray.client.http import HttpClient

SECONDS: Final = 2.0
MOST: Final = 200


def nodes(incomplete: str) -> list[str]:
    """Names of nodes."""
    from dray.api.kinds import NODES

    return _objects(NODES, incomplete)


def drains(incomplete: str) -> list[str]:
    """`node/NAME` of nodes and `rule/NAME` of rules."""
    from dray.api.kinds import NODES, RULES

    kind, word = (RULES, "rule/") if incomplete.startswith("rule/") else (NODES, "node/")
    return [f"{word}{name}" for name in _objects(kind, incomplete.removeprefix(word))]


def pods(incomplete: str) -> list[str]:
    """`namespace/name` of pods."""
    from dray.api.kinds import PODS

    return _objects(PODS, incomplete)


def claims(incomplete: str) -> list[str]:
    """`namespace/name` of claims."""
    from dray.api.kinds import CLAIMS

    return _objects(CLAIMS, incomplete)


def classes(incomplete: str) -> list[str]:
    """Names of device classes."""
    from dray.api.kinds import CLASSES

    return _objects(CLASSES, incomplete)


def drivers(incomplete: str) -> list[str]:
    """Names of drivers that have devices."""
    return _in_slices(lambda found: [found.spec.driver], incomplete)


def pools(incomplete: str) -> list[str]:
    """Names of pools of devices."""
    return _in_slices(lambda found: [found.spec.pool.name], incomplete)


def devices(incomplete: str) -> list[str]:
    """Names of devices, each once; several pools may have one of that name."""
    return _in_slices(lambda found: [device.name for device in found.spec.devices], incomplete)


def running(incomplete: str) -> list[str]:
    """Names of the clusters of this machine that run."""
    return _clusters(incomplete, runs=True)


def stopped(incomplete: str) -> list[str]:
    """Names of the clusters of this machine that do not run, and can be started again."""
    return _clusters(incomplete, runs=False)


def profiles(incomplete: str) -> list[str]:
    """Names of the profiles that come with dray."""
    from dray.simulation.profile_files import shipped_profiles

    return [name for name in shipped_profiles() if name.startswith(incomplete)]


def _clusters(incomplete: str, *, runs: bool) -> list[str]:
    from dray.cli import clusters

    place = clusters.place()
    found = [one.name for one in clusters.find_all() if bool(one.pid) is runs and one.directory.parent == place]
    return [name for name in found if name.startswith(incomplete)][:MOST]


def _objects(kind: Kind, incomplete: str) -> list[str]:
    async def names(client: HttpClient) -> list[str]:
        import asyncio

        async with asyncio.timeout(SECONDS):
            found = (await client.list(kind)).items
        return [
            f"{one.metadata.namespace}/{one.metadata.name}" if one.metadata.namespace else one.metadata.name
            for one in found
        ]

    return [name for name in _quietly(names) if name.startswith(incomplete)][:MOST]


def _in_slices(pick: Callable[[ResourceSlice], list[str]], incomplete: str) -> list[str]:
    from dray.api.kinds import SLICES
    from dray.api.resource import ResourceSlice

    async def names(client: HttpClient) -> list[str]:
        import asyncio

        async with asyncio.timeout(SECONDS):
            found = (await client.list(SLICES)).items
        slices = [one for one in found if isinstance(one, ResourceSlice)]
        return sorted({name for one in slices for name in pick(one)})

    return [name for name in _quietly(names) if name.startswith(incomplete)][:MOST]


def _quietly(work: Callable[[HttpClient], Awaitable[list[str]]]) -> list[str]:
    from dray.cli import live

    with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(SystemExit, Exception):
        return live.call(work, "completion")
    return []
