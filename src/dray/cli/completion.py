"""What the shell offers when TAB is pressed: nodes, pods, claims and rules of the cluster at hand, profiles.

Whatever goes wrong, nothing is offered: a shell is no place for error messages.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dray.api.registry import Kind
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


def profiles(incomplete: str) -> list[str]:
    """Names of the profiles that come with dray."""
    from dray.simulation.profile_files import shipped_profiles

    return [name for name in shipped_profiles() if name.startswith(incomplete)]


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


def _quietly(work: Callable[[HttpClient], Awaitable[list[str]]]) -> list[str]:
    from dray.cli import live

    with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(SystemExit, Exception):
        return live.call(work, "completion")
    return []
