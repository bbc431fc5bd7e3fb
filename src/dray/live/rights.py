"""What somebody may look at: asked of the server, kind by kind, everywhere or in one namespace."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec

from dray.api.generated.authorization import ResourceAttributes
from dray.api.registry import Kind
from dray.client import Client, calls


class Sight(msgspec.Struct, frozen=True):
    """How much of a kind can be seen: everywhere (`namespace` empty), in one namespace, or nothing."""

    kind: Kind
    allowed: bool
    namespace: str = ""

    def told(self) -> str:
        """What is missing, for people; empty if nothing is."""
        what = self.kind.plural if not self.kind.group else f"{self.kind.plural}.{self.kind.group}"
        if not self.allowed:
            return f"you may not list and watch {what}"
        return f"you see {what} of namespace {self.namespace} only" if self.namespace else ""


async def may(client: Client, verb: str, kind: Kind, namespace: str = "") -> bool:
    """Whether the client's user may do it with a kind. Raises ApiError or OSError if the server does not tell."""
    asked = ResourceAttributes(verb=verb, group=kind.group, resource=kind.plural, namespace=namespace)
    return await calls.may(client, asked)


async def find_sights(client: Client, kinds: Iterable[Kind], namespace: str) -> tuple[Sight, ...]:
    """What the client's user may list and watch of each kind; namespaced ones in `namespace` if not everywhere."""
    return tuple(await asyncio.gather(*(_sight(client, kind, namespace) for kind in kinds)))


async def _sight(client: Client, kind: Kind, namespace: str) -> Sight:
    if await _may_follow(client, kind, ""):
        return Sight(kind, allowed=True)
    if kind.namespaced and namespace and await _may_follow(client, kind, namespace):
        return Sight(kind, allowed=True, namespace=namespace)
    return Sight(kind, allowed=False)


async def _may_follow(client: Client, kind: Kind, namespace: str) -> bool:
    return await may(client, "list", kind, namespace) and await may(client, "watch", kind, namespace)
