"""A DRA driver written straight on the gRPC contracts, that keeps all rules, or breaks the ones it is told to."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

import grpc
import grpc.aio
from msgspec.structs import replace

from dray.api.meta import ObjectMeta, OwnerReference
from dray.api.registry import by_kind
from dray.api.resource import Device, ResourceClaim, ResourcePool, ResourceSlice, ResourceSliceSpec
from dray.api.status import ApiError
from dray.client import Client, Informer
from dray.driver_test.stage import Places
from dray.plugins import contracts, unix
from dray.plugins.generated import dra_v1_pb2 as dra
from dray.plugins.generated import health_v1_pb2 as health
from dray.plugins.generated import registration_pb2 as registration
from dray.reconcile import RealClock

NAME = "small.example.com"
SLICE = by_kind("resource.k8s.io/v1", "ResourceSlice")
CLAIM = by_kind("resource.k8s.io/v1", "ResourceClaim")
NODE = by_kind("v1", "Node")
PER_SLICE = 100


class Refused(Exception):
    """A claim that cannot be prepared."""


class SmallDriver:
    """A `dray.driver_test.Subject` in this process. `breaks` names what it does wrong."""

    can_restart = True

    def __init__(self, client: Client, *breaks: str, devices: int = 3) -> None:
        self.client = client
        self.breaks = set(breaks)
        self.devices = devices
        self.ended = ""
        self._numbers = itertools.count()
        self._servers: list[grpc.aio.Server] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self._prepared: dict[str, Any] = {}
        self._failed: set[str] = set()
        self._busy: set[str] = set()
        self._once: set[str] = set()
        self._generation = 0

    async def start(self, places: Places, extra: Mapping[str, str]) -> None:
        """Listens and publishes."""
        self.places = places
        self.ended = ""
        self.count = int(extra.get("DEVICES", self.devices))
        self._file = places.plugin / "state.json"
        self._prepared = json.loads(self._file.read_text()) if self._file.exists() else {}
        self._endpoint = places.plugin / "dra.sock"
        self._registration = places.registry / "small-reg.sock"
        self._servers = [
            await unix.listen(self._endpoint, contracts.services(*self._dra_handlers())),
            await unix.listen(
                self._registration,
                contracts.services(
                    contracts.answer(contracts.GET_INFO, self._get_info),
                    contracts.answer(contracts.NOTIFY, self._notify),
                ),
            ),
        ]
        self._tasks = [asyncio.create_task(self._publish())]
        self._endings: list[asyncio.Task[None]] = []  # awaited, never cancelled: gRPC ends a server that is ending once

    def problem(self) -> str:
        """Why it has ended."""
        return self.ended

    def said(self) -> tuple[str, ...]:
        """Its last words."""
        return (self.ended,) if self.ended else ()

    def check_start(self, *, registered: bool) -> None:
        """It can always be started."""

    async def kill(self) -> None:
        """Ends at once."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*self._endings)
        for server in self._servers:
            await server.stop(None)
        self._servers = []

    async def stop(self, patience: float) -> bool:
        """Ends in order."""
        del patience
        await self.kill()
        if "keeps-sockets" in self.breaks:
            await unix.listen(self._registration, ())
        return "hangs-on-stop" not in self.breaks

    async def _get_info(self, _request: Any, _context: Any) -> registration.PluginInfo:
        versions = ["v1.DRAPlugin", "v1beta1.DRAPlugin"]
        if "one-version" in self.breaks:
            versions = ["v1.DRAPlugin"]
        if "no-version" in self.breaks:
            versions = ["1.0.0"]
        if self.breaks & {"silent-health", "foreign-health", "unserved-health", "failing-health"}:
            versions.append("v1.DRAResourceHealth")
        return registration.PluginInfo(
            type="DevicePlugin" if "type" in self.breaks else "DRAPlugin",
            name="Not_A_Name" if "name" in self.breaks else NAME,
            endpoint="dra.sock" if "relative-endpoint" in self.breaks else str(self._endpoint),
            supported_versions=versions,
        )

    async def _notify(self, status: Any, context: Any) -> registration.RegistrationStatusResponse:
        if not status.plugin_registered:
            if "ends-when-refused" in self.breaks:
                self.ended = "the driver ended with code 1: refused"
                self._endings.append(asyncio.create_task(self._servers[1].stop(None)))
            await context.abort(grpc.StatusCode.UNKNOWN, "refused")
        return registration.RegistrationStatusResponse()

    def _dra_handlers(self) -> list[contracts.Handler]:
        served = ["v1.DRAPlugin"] if "unserved-version" in self.breaks else list(contracts.DRA_SERVICES)
        found = [contracts.answer(contracts.UNPREPARE[it], self._unprepare_all) for it in served]
        found += [contracts.answer(contracts.PREPARE[it], self._prepare_in(it)) for it in served]
        if self.breaks & {"silent-health", "foreign-health", "failing-health"}:
            found.append(contracts.answer_stream(contracts.WATCH_HEALTH["v1.DRAResourceHealth"], self._health))
        return found

    async def _health(self, _request: Any, context: Any) -> AsyncIterator[health.NodeWatchResourcesResponse]:
        if "failing-health" in self.breaks:
            await context.abort(grpc.StatusCode.INTERNAL, "no idea")
        if "silent-health" in self.breaks:
            await asyncio.sleep(3600)
        identifier = health.DeviceIdentifier(pool_name="nowhere", device_name="nothing")
        yield health.NodeWatchResourcesResponse(devices=[health.DeviceHealth(device=identifier)])

    def _prepare_in(self, version: str) -> Any:
        async def prepare(request: Any, context: Any) -> dra.NodePrepareResourcesResponse:
            answer = dra.NodePrepareResourcesResponse()
            if "fails-when-empty" in self.breaks and not request.claims:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no claims")
            for claim in request.claims:
                entry = answer.claims[claim.uid]
                try:
                    for device in await self._prepare(claim):
                        entry.devices.add(**device)
                except Refused as error:
                    entry.error = str(error)
                if "beta-differs" in self.breaks and version == "v1beta1.DRAPlugin":
                    entry.devices[0].cdi_device_ids.append("example.com/x=beta")
                if "first-claim-only" in self.breaks:
                    break
            return answer

        return prepare

    async def _prepare(self, claim: Any) -> list[dict[str, Any]]:
        uid = claim.uid
        if "ends-on-strange-input" in self.breaks and "/" in uid:
            self._end("the driver ended with code 139: it said nothing")
        if "ends-on-unknown-claim" in self.breaks and claim.name == "no-such-claim":
            self._end("the driver ended with code 139: it said nothing")
        if "not-reentrant" in self.breaks and uid in self._busy:
            raise Refused("busy")
        if "prepares-once" in self.breaks and uid in self._once:
            raise Refused("used up")
        self._busy.add(uid)
        try:
            await asyncio.sleep(0.01)
            if uid in self._prepared and "fresh-ids" not in self.breaks:
                return cast(list[dict[str, Any]], self._prepared[uid])
            if "sticky-failure" in self.breaks and uid in self._failed:
                raise Refused("it failed before")
            devices = await self._fetch(claim)
            if "prepares-nothing" in self.breaks:
                raise Refused("the card is on fire")
            self._prepared[uid] = [self._ready(uid, pool, device) for pool, device in devices]
            self._save()
            return cast(list[dict[str, Any]], self._prepared[uid])
        except Refused:
            self._failed.add(uid)
            raise
        finally:
            self._busy.discard(uid)

    def _end(self, how: str) -> None:
        self.ended = how
        self._endings += [asyncio.create_task(server.stop(None)) for server in self._servers]

    async def _fetch(self, claim: Any) -> list[tuple[str, str]]:
        try:
            found = cast(ResourceClaim, await self.client.get(CLAIM, claim.namespace, claim.name))
        except ApiError:
            if "prepares-anything" in self.breaks:
                return []
            raise Refused("not found") from None
        if found.metadata.uid != claim.uid and "no-uid-check" not in self.breaks:
            raise Refused("another claim")
        if found.status.allocation is None:
            raise Refused("not allocated")
        devices = [(it.pool, it.device) for it in found.status.allocation.devices.results]
        held = {(it["pool_name"], it["device_name"]) for entry in self._prepared.values() for it in entry}
        if "holds-devices" in self.breaks and held & set(devices):
            raise Refused("the device is in use")
        return devices

    def _ready(self, uid: str, pool: str, device: str) -> dict[str, Any]:
        name = f"{uid}-{next(self._numbers)}" if "fresh-ids" in self.breaks else uid
        name = "shared" if "shared-ids" in self.breaks else name
        identifier = name if "unqualified-ids" in self.breaks else f"example.com/small={name}"
        edits = {} if "invalid-spec" in self.breaks else {"env": [f"SMALL={device}"]}
        spec = {
            "cdiVersion": "0.5.0",
            "kind": "example.com/small",
            "devices": [{"name": name, "containerEdits": edits}],
        }
        if "no-cdi-file" not in self.breaks:
            (self.places.cdi / f"{name}.json").write_text(json.dumps(spec))
        ids = [] if "no-cdi-ids" in self.breaks else [identifier]
        shown = "other" if "other-device" in self.breaks else device
        request = "else" if "other-request" in self.breaks else "request"
        return {"request_names": [request], "pool_name": pool, "device_name": shown, "cdi_device_ids": ids}

    async def _unprepare_all(self, request: Any, _context: Any) -> dra.NodeUnprepareResourcesResponse:
        answer = dra.NodeUnprepareResourcesResponse()
        for claim in request.claims:
            if "unprepare-answers-nothing" in self.breaks:
                break
            answer.claims[claim.uid].error = await self._unprepare(claim)
        return answer

    async def _unprepare(self, claim: Any) -> str:
        if "ends-in-unprepare" in self.breaks:
            self._end("the driver ended with code 4: the bolt is stuck")
        if "unprepare-fails" in self.breaks:
            return "the bolt is stuck"
        if "unprepare-reads-claim" in self.breaks:
            try:
                await self.client.get(CLAIM, claim.namespace, claim.name)
            except ApiError:
                return "no such claim"
        if claim.uid not in self._prepared:
            return "it is not prepared" if "unprepare-unknown-fails" in self.breaks else ""
        self._once.add(claim.uid)
        del self._prepared[claim.uid]
        self._save()
        if "leaves-files" not in self.breaks:
            for path in self.places.cdi.glob(f"{'*' if 'shared-ids' in self.breaks else claim.uid}*"):
                path.unlink()
        return ""

    def _save(self) -> None:
        if "forgets" not in self.breaks:
            self._file.write_text(json.dumps(self._prepared))

    async def _publish(self) -> None:
        if "publishes-nothing" in self.breaks:
            return
        node = await self.client.get(NODE, "", self.places.node)
        owner = OwnerReference(api_version="v1", kind="Node", name=node.metadata.name, uid=node.metadata.uid)
        self._owners = () if "no-owner" in self.breaks else (owner,)
        slices: Informer[ResourceSlice] = Informer(
            self.client, SLICE, fields=f"spec.driver={NAME}", sleep=RealClock().sleep
        )
        following = asyncio.create_task(slices.run())
        try:
            await slices.synced()
            while True:
                if not self._is_right(list(slices)):
                    with contextlib.suppress(ApiError):
                        await self._write(slices)
                    if "publishes-once" in self.breaks:
                        await asyncio.sleep(3600)
                await asyncio.sleep(0.05)
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    def _wanted(self) -> list[tuple[Device, ...]]:
        count = min(self.count, PER_SLICE) if "no-split" in self.breaks else self.count
        names = ["same"] * count if "same-names" in self.breaks else [f"d-{index}" for index in range(count)]
        devices = tuple(Device(name=name) for name in names)
        if "same-names" in self.breaks:
            return [(device,) for device in devices]
        return [devices[start : start + PER_SLICE] for start in range(0, len(devices), PER_SLICE)]

    def _is_right(self, slices: list[ResourceSlice]) -> bool:
        if "always-writes" in self.breaks:
            return False
        return sorted(len(it.spec.devices) for it in slices) == sorted(map(len, self._wanted()))

    async def _write(self, slices: Informer[ResourceSlice]) -> None:
        """All slices anew, under a later generation; then the old ones go. Nothing is written twice if news is late."""
        highest = max((it.spec.pool.generation for it in slices), default=0)
        self._generation = max(self._generation, highest) + 1
        wanted = self._wanted()
        for devices, found in itertools.zip_longest(wanted, list(slices)):
            if devices is None:
                await self.client.delete(SLICE, "", found.metadata.name)
                continue
            generation = highest if found is not None and "same-generation" in self.breaks else self._generation
            count = len(wanted) + ("incomplete-pool" in self.breaks)
            spec = ResourceSliceSpec(
                driver=NAME,
                node_name=self.places.node,
                pool=ResourcePool(name="pool", generation=generation, resource_slice_count=count),
                devices=devices,
            )
            if found is not None:
                slices.put(await self.client.update(replace(found, spec=spec)))
            else:
                meta = ObjectMeta(generate_name="small-", owner_references=self._owners)
                made = ResourceSlice(api_version="resource.k8s.io/v1", kind="ResourceSlice", metadata=meta, spec=spec)
                slices.put(await self.client.create(made))
