"""A cluster as people look at it, live: devices as merged by the tracker, with who holds them; claims; nodes.

Works through any client, so it shows a real Kubernetes cluster as well. What a server does not serve (older ones know
no taint rules, only dray knows patches) is taken as not there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from dray.api.generated.core import Node, Pod
from dray.api.registry import Kind, by_kind
from dray.api.resource import ResourceClaim
from dray.api.resource.taint import EFFECT_NONE
from dray.api.status import ApiError
from dray.client import Client
from dray.cluster.following import Following
from dray.reconcile import Clock
from dray.tracker import DeviceId, EffectiveDevice, Remove, Tracker, Upsert

RESOURCE: Final = "resource.k8s.io/v1"
NODES: Final = by_kind("v1", "Node")
PODS: Final = by_kind("v1", "Pod")
CLAIMS: Final = by_kind(RESOURCE, "ResourceClaim")
TRACKED: Final = (by_kind(RESOURCE, "DeviceClass"), by_kind(RESOURCE, "ResourceSlice"))
OPTIONAL: Final = (
    by_kind(RESOURCE, "DeviceTaintRule"),
    by_kind("resource.k8s.io/v1alpha3", "ResourceSlicePatch"),
)


class DeviceRow(msgspec.Struct, frozen=True):
    """A device, and the claims (`namespace/name`) that hold it."""

    device: EffectiveDevice
    holders: tuple[str, ...]

    @property
    def is_tainted(self) -> bool:
        """Whether a taint keeps new claims away."""
        return any(tracked.effect != EFFECT_NONE for tracked in self.device.taints)


class LiveView(Following):
    """Fed by informers."""

    def __init__(self, client: Client, clock: Clock) -> None:
        super().__init__(client, clock)
        self._tracker = Tracker()
        self._holders: dict[DeviceId, dict[str, None]] = {}

    async def start(self) -> None:
        """Everything has been read once, and is kept current. Raises ApiError or OSError if it cannot be read."""
        for kind in (*TRACKED, *[kind for kind in OPTIONAL if await self._is_served(kind)]):
            self.follow(kind).on_change(self._on_tracked)
        self.follow(CLAIMS).on_change(self._on_claim)
        for kind in (NODES, PODS):
            self.follow(kind)
        await self.run_all()

    def devices(self) -> Iterator[DeviceRow]:
        """All devices, by driver, pool and position."""
        for device in self._tracker.devices():
            yield DeviceRow(device, tuple(self._holders.get(device.id, ())))

    def claims(self) -> list[ResourceClaim]:
        """All claims by place."""
        return self.in_order(CLAIMS)

    def nodes(self) -> list[Node]:
        """All nodes by name."""
        return self.in_order(NODES)

    def pods(self) -> list[Pod]:
        """All pods by place."""
        return self.in_order(PODS)

    async def _is_served(self, kind: Kind) -> bool:
        try:
            await self._client.list(kind)
        except ApiError as error:
            if error.code == 404:
                return False
            raise
        return True

    def _on_tracked(self, old: Any, new: Any) -> None:
        self._tracker.apply(Upsert(new) if new is not None else Remove.of(old))

    def _on_claim(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        for claim, holds in ((old, False), (new, True)):
            if claim is None or claim.status.allocation is None:
                continue
            name = f"{claim.metadata.namespace}/{claim.metadata.name}"
            for result in claim.status.allocation.devices.results:
                if result.admin_access:
                    continue
                holders = self._holders.setdefault(DeviceId(result.driver, result.pool, result.device), {})
                if holds:
                    holders[name] = None
                else:
                    holders.pop(name, None)
