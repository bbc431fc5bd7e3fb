"""Prepare and unprepare as a node calls them, over a real socket."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from typing import Any, cast

import grpc.aio
import pytest
from msgspec.structs import replace

from dray import cdi, driver
from dray.api.meta import Object, ObjectMeta
from dray.api.registry import Kind, by_kind
from dray.api.resource import ResourceClaim
from dray.api.status import ApiError
from dray.driver import runner as runner_module
from dray.files import Directory
from dray.plugins import contracts
from dray.plugins.generated import dra_v1_pb2 as dra
from driver_world import CLAIM, NODE, DriverWorld, Fans, driver_world, empty_world
from patience import PATIENCE, eventually_async


@pytest.mark.req("4381-161", "4381-163", "4381-169")
@pytest.mark.parametrize("version", ["v1.DRAPlugin", "v1beta1.DRAPlugin"])
async def test_prepare_twice_gives_the_same_answer_and_one_file(version: str) -> None:
    fans = Fans()
    async with driver_world(fans) as world:
        claim = await world.allocate("c", "fan-0")
        first = await world.prepare(claim, version=version)
        second = await world.prepare(claim, version=version)
        assert first == second
        (device,) = first[claim.metadata.uid].devices
        assert (list(device.request_names), device.pool_name, device.device_name) == (["r"], NODE, "fan-0")
        assert world.cache.edits(device.cdi_device_ids).env == ("FAN=fan-0",)
        assert world.cdi_files() == [f"fans.example.com-{claim.metadata.uid}.json"]
        assert fans.calls == ["prepare default/c fan-0"]


@pytest.mark.req("4381-172", "4381-173", "4381-260")
async def test_unprepare_undoes_and_may_be_repeated() -> None:
    fans = Fans()
    async with driver_world(fans) as world:
        claim = await world.allocate("c", "fan-0")
        await world.prepare(claim)
        for _ in range(2):
            answer = await world.unprepare(claim)
            assert answer[claim.metadata.uid].error == ""
        assert world.cdi_files() == []
        assert fans.calls == ["prepare default/c fan-0", "unprepare default/c"]
        again = await world.prepare(claim)
        assert again[claim.metadata.uid].error == ""


@pytest.mark.req("4381-260")
async def test_unprepare_of_a_claim_that_was_never_known_is_answered_as_if_it_had_been() -> None:
    """A driver that lost its records cannot tell the two apart, and an error would keep the pod from ending."""
    fans = Fans()
    async with driver_world(fans) as world:
        claim = await world.allocate("c", "fan-0")
        await world.prepare(claim)
        known = await world.unprepare(claim)
        unknown = await world.unprepare(await world.allocate("never-prepared", "fan-1"))
        assert [entry.error for entry in (*known.values(), *unknown.values())] == ["", ""]
        assert fans.calls == ["prepare default/c fan-0", "unprepare default/c"]  # nobody is asked to undo nothing


@pytest.mark.req("4381-172")
async def test_unprepare_needs_no_api_server_and_no_claim() -> None:
    async with driver_world(Fans()) as world:
        claim = await world.allocate("c", "fan-0")
        await world.prepare(claim)
        await world.client.delete(CLAIM, "default", "c")
        answer = await world.unprepare(claim, await world.allocate("never-prepared", "fan-1"))
        assert [entry.error for entry in answer.values()] == ["", ""]
        assert len(answer) == 2
        assert world.cdi_files() == []


@pytest.mark.req("4381-170")
async def test_a_claim_that_does_not_exist_is_not_found() -> None:
    async with driver_world(Fans()) as world:
        gone = await world.allocate("gone", "fan-0")
        await world.client.delete(CLAIM, "default", "gone")
        with pytest.raises(grpc.aio.AioRpcError, match="claim default/gone not found") as failure:
            await world.prepare(gone)
        assert failure.value.code() is grpc.StatusCode.NOT_FOUND
        await world.allocate("gone", "fan-0")
        with pytest.raises(grpc.aio.AioRpcError, match="got replaced") as failure:
            await world.prepare(gone)
        assert failure.value.code() is grpc.StatusCode.NOT_FOUND


@pytest.mark.req("4381-261", "4381-167", "4381-168")
async def test_one_bad_claim_does_not_fail_the_others() -> None:
    fans = Fans()
    async with driver_world(fans) as world:
        gone = await world.allocate("gone", "fan-0")
        await world.client.delete(CLAIM, "default", "gone")
        good = await world.allocate("good", "fan-1")
        absent = await world.allocate("absent", "fan-9")
        waiting = await world.client.create(replace(good, metadata=ObjectMeta(name="w", namespace="default")))
        answer = await world.prepare(gone, good, absent, waiting)
        assert len(answer) == 4
        assert answer[waiting.metadata.uid].error == "claim default/w not allocated"
        assert "not found" in answer[gone.metadata.uid].error
        assert 'device "fan-9" of pool "node-1" is not there' in answer[absent.metadata.uid].error
        assert not answer[good.metadata.uid].error
        assert len(answer[good.metadata.uid].devices) == 1


@pytest.mark.req("4381-171")
async def test_a_device_that_is_gone_fails_until_it_is_back() -> None:
    fans = Fans()
    async with driver_world(fans) as world:
        claim = await world.allocate("c", "fan-0")
        kept, fans.devices = fans.devices, []
        await world.published(1)
        fans.changed()
        await eventually_async(lambda: _error(world, claim), "the missing device was not noticed")
        fans.devices = kept
        assert await _error(world, claim) == ""


async def _error(world: DriverWorld, claim: Any) -> str:
    return str((await world.prepare(claim))[claim.metadata.uid].error)


@pytest.mark.req("4381-165")
async def test_a_failure_is_told_and_a_repetition_may_succeed() -> None:
    fans = Fans()
    async with driver_world(fans) as world:
        claim = await world.allocate("c", "fan-0", "fan-1")
        fans.failures = [driver.DriverError("the fan is stuck"), ValueError("a bug")]
        assert await _error(world, claim) == "the fan is stuck"
        assert await _error(world, claim) == "ValueError: a bug"
        assert world.cdi_files() == []
        assert await _error(world, claim) == ""
        fans.failures = [driver.DriverError("still busy")]
        answer = await world.unprepare(claim)
        assert answer[claim.metadata.uid].error == "still busy"
        answer = await world.unprepare(claim)
        assert answer[claim.metadata.uid].error == ""


async def test_unprepare_after_a_failed_prepare_reaches_the_driver() -> None:
    fans = Fans()
    async with driver_world(fans) as world:
        claim = await world.allocate("c", "fan-0")
        fans.failures = [driver.DriverError("half done")]
        assert await _error(world, claim) == "half done"
        await world.unprepare(claim)
        assert fans.calls == ["prepare default/c fan-0", "unprepare default/c"]


@pytest.mark.req("4381-174", "4381-241")
async def test_a_restarted_driver_knows_what_is_prepared() -> None:
    async with empty_world() as world:
        fans = Fans()
        async with world.running(fans):
            claim = await world.allocate("c", "fan-0")
            first = await world.prepare(claim)
            expected = str(first)
        for path in world.settings.cdi_dir.iterdir():
            path.unlink()  # as after a reboot: CDI directories do not survive it
        (world.root / "plugin" / "claims" / "broken.json").write_text("{")
        (world.root / "plugin" / "claims" / "half.json.tmp").write_text("{")
        restarted = Fans()
        async with world.running(restarted):
            assert str(await world.prepare(claim)) == expected
            assert world.cdi_files() == [f"fans.example.com-{claim.metadata.uid}.json"]
            await world.unprepare(claim)
            assert restarted.calls == ["unprepare default/c"]
        left = sorted(path.name for path in (world.root / "plugin" / "claims").iterdir())
        assert left == ["broken.json.corrupt"]


@pytest.mark.req("4381-142")
async def test_a_claim_that_got_other_devices_meanwhile_is_prepared_anew() -> None:
    fans = Fans()
    async with driver_world(fans) as world:
        first = await world.allocate("c", "fan-0")
        await world.prepare(first)
        await world.client.delete(CLAIM, "default", "c")
        # Nobody unprepared it; its device goes to another claim.
        other = await world.allocate("other", "fan-0")
        answer = await world.prepare(other)
        assert answer[other.metadata.uid].error == ""
        assert fans.calls[1:] == ["unprepare default/c", "prepare default/other fan-0"]
        assert world.cdi_files() == [f"fans.example.com-{other.metadata.uid}.json"]


async def test_a_device_in_use_is_not_given_to_a_second_claim() -> None:
    async with empty_world() as world, world.running(Fans(), client=Confused(world.client)):
        one, two = await world.allocate("one", "fan-0"), await world.allocate("two", "fan-1")
        answer = await world.prepare(one, two)
        errors = sorted(entry.error for entry in answer.values())
        assert errors[0] == ""
        assert 'device "fan-0" of pool "node-1" is in use by claim default/' in errors[1]
        label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
        await world.client.patch(by_kind("v1", "Namespace"), "", "default", label)
        admin = await world.allocate("admin", {"device": "fan-0", "adminAccess": True})
        assert await _error(world, admin) == ""


class Confused:
    """A client that sees every claim with the same device, as if the scheduler had given it out twice."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def get(self, kind: Kind, namespace: str, name: str) -> Object:
        found = await self._client.get(kind, namespace, name)
        if not isinstance(found, ResourceClaim) or found.status.allocation is None:
            return cast(Object, found)
        allocation = found.status.allocation
        results = tuple(replace(result, device="fan-0") for result in allocation.devices.results)
        allocation = replace(allocation, devices=replace(allocation.devices, results=results))
        return replace(found, status=replace(found.status, allocation=allocation))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


async def test_calls_for_one_claim_never_overlap_and_others_go_on() -> None:
    class Slow(Fans):
        running = 0
        most = 0

        async def prepare(self, claim: driver.Claim, device: driver.ClaimDevice) -> None:  # type: ignore[override]
            del claim
            self.calls.append(device.name)
            self.running += 1
            self.most = max(self.most, self.running)
            await eventually_async(lambda: self.most == 2)
            self.running -= 1

    slow = Slow()
    async with driver_world(slow) as world:
        one, two = await world.allocate("one", "fan-0"), await world.allocate("two", "fan-1")
        await asyncio.gather(*(world.prepare(claim) for claim in (one, one, one, two, two)))
        assert sorted(slow.calls) == ["fan-0", "fan-1"]


async def test_work_ends_although_the_node_gives_up() -> None:
    class Slow(Fans):
        async def prepare(self, claim: driver.Claim, device: driver.ClaimDevice) -> None:  # type: ignore[override]
            del claim, device
            self.calls.append("begin")
            await go_on.wait()
            self.calls.append("end")

    go_on = asyncio.Event()

    slow = Slow()
    async with driver_world(slow) as world:
        claim = await world.allocate("c", "fan-0")
        calling = asyncio.ensure_future(world.prepare(claim))
        await eventually_async(lambda: slow.calls)
        calling.cancel()
        again = asyncio.ensure_future(world.prepare(claim))
        await asyncio.sleep(0.05)
        go_on.set()
        assert (await again)[claim.metadata.uid].error == ""
        assert slow.calls == ["begin", "end"]


async def test_a_driver_that_stops_finishes_what_it_has_begun() -> None:
    class Slow(Fans):
        async def prepare(self, claim: driver.Claim, device: driver.ClaimDevice) -> None:  # type: ignore[override]
            self.calls.append(f"{claim} {device.name}")
            await go_on.wait()

    go_on = asyncio.Event()

    slow = Slow()
    async with empty_world() as world, world.running(slow) as runner:
        claim = await world.allocate("c", "fan-0")
        calling = asyncio.ensure_future(world.prepare(claim))
        await eventually_async(lambda: slow.calls)
        stopping = asyncio.ensure_future(runner.stop())
        await asyncio.sleep(0.1)
        assert not stopping.done()
        go_on.set()
        assert (await calling)[claim.metadata.uid].error == ""
        await stopping


async def test_a_driver_that_hangs_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging(Fans):
        def prepare(self, claim: driver.Claim, device: driver.ClaimDevice) -> None:
            self.calls.append(f"{claim} {device.name}")
            never.wait()

    never = threading.Event()
    monkeypatch.setattr(runner_module, "STOP_SECONDS", 0.2)

    hanging = Hanging()
    async with empty_world() as world, world.running(hanging) as runner:
        claim = await world.allocate("c", "fan-0")
        calling = asyncio.ensure_future(world.prepare(claim))
        await eventually_async(lambda: hanging.calls)
        await asyncio.wait_for(runner.stop(), PATIENCE)
        with pytest.raises(grpc.aio.AioRpcError):
            await calling
    never.set()


@pytest.mark.req("4381-68")
async def test_configuration_reaches_the_device_it_is_for_with_its_source() -> None:
    seen: dict[str, list[tuple[bool, Any]]] = {}

    class Configured(Fans):
        def prepare(self, claim: driver.Claim, device: driver.ClaimDevice) -> None:
            del claim
            seen[device.name] = [(config.from_class, config.parameters) for config in device.config]

    def config(source: str, requests: list[str], value: str, name: str = Fans.name) -> dict[str, Any]:
        return {"source": source, "requests": requests, "opaque": {"driver": name, "parameters": {"a": value}}}

    async with driver_world(Configured()) as world:
        claim = await world.allocate(
            "c",
            {"device": "fan-0", "request": "x"},
            {"device": "fan-1", "request": "y"},
            config=[
                config("FromClass", [], "class"),
                config("FromClaim", ["x"], "claim"),
                config("FromClaim", [], "foreign", "other.example.com"),
            ],
        )
        answer = await world.prepare(claim)
        assert answer[claim.metadata.uid].error == ""
        assert [list(it.request_names) for it in answer[claim.metadata.uid].devices] == [["x"], ["y"]]
        assert [list(it.cdi_device_ids) for it in answer[claim.metadata.uid].devices] == [[], []]
    assert seen == {"fan-0": [(True, {"a": "class"}), (False, {"a": "claim"})], "fan-1": [(True, {"a": "class"})]}


async def test_a_full_disk_is_an_error_of_the_claim_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(directory: Directory, name: str, other: str) -> None:
        if directory.path.name == "cdi":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(directory, name, other)

    real = Directory.rename

    async with driver_world(Fans()) as world:
        claim = await world.allocate("c", "fan-0")
        monkeypatch.setattr(Directory, "rename", full)
        assert "No space left on device" in await _error(world, claim)
        assert world.cdi_files() == []
        monkeypatch.undo()
        assert await _error(world, claim) == ""


@pytest.mark.parametrize("uid", ["../../etc/passwd", "a/b", ".", "x" * 200, "a\nb"])
async def test_a_uid_that_is_no_file_name_is_refused(uid: str) -> None:
    async with driver_world(Fans()) as world:
        assert world.channel is not None
        request = dra.NodePrepareResourcesRequest(claims=[dra.Claim(namespace="default", name="c", uid=uid)])
        answer = await contracts.call(world.channel, contracts.PREPARE["v1.DRAPlugin"], request, timeout=PATIENCE)
        assert "is not valid" in answer.claims[uid].error
        nameless = dra.NodeUnprepareResourcesRequest(claims=[dra.Claim(namespace="default", name="c")])
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await contracts.call(world.channel, contracts.UNPREPARE["v1.DRAPlugin"], nameless, timeout=PATIENCE)
        assert failure.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_calls_without_claims_are_fine() -> None:
    async with driver_world(Fans()) as world:
        assert len(await world.prepare()) == 0
        assert len(await world.unprepare()) == 0


async def test_a_prepared_claim_is_answered_while_the_api_server_is_away() -> None:
    async with empty_world() as world:
        away = Away(world.client)
        async with world.running(Fans(), client=away):
            claim, later = await world.allocate("c", "fan-0"), await world.allocate("later", "fan-1")
            first = str(await world.prepare(claim))
            away.is_away = True
            assert str(await world.prepare(claim)) == first
            assert "cannot be read" in await _error(world, later)


class Away:
    """A client that reaches nobody while told so."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.is_away = False

    async def get(self, *arguments: Any) -> Any:
        if self.is_away:
            raise ConnectionError("nobody answers")
        return await self.client.get(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)


async def test_the_file_that_is_written_names_the_oldest_version_that_will_do() -> None:
    async with driver_world(Fans()) as world:
        claim = await world.allocate("c", "fan-0")
        await world.prepare(claim)
        (name,) = world.cdi_files()
        spec = cdi.parse((world.settings.cdi_dir / name).read_bytes())
        # Names of devices may begin with a digit since 0.5.0, and uids do or do not.
        oldest = "0.5.0" if spec.devices[0].name[0].isdigit() else "0.3.0"
        assert (spec.cdi_version, spec.kind) == (oldest, "fans.example.com/claim")


async def test_what_prepare_must_return_is_said() -> None:
    class Wrong(Fans):
        def prepare(self, claim: driver.Claim, device: driver.ClaimDevice) -> Any:
            del claim
            return {"FAN": device.name}

    class Nonsense(Fans):
        def prepare(self, claim: driver.Claim, device: driver.ClaimDevice) -> driver.Edits:
            del claim, device
            return driver.Edits(env={"": "x"})

    async with driver_world(Wrong()) as world:
        assert "must return Edits or None" in await _error(world, await world.allocate("c", "fan-0"))
    async with driver_world(Nonsense()) as world:
        assert "must be NAME=value" in await _error(world, await world.allocate("c", "fan-0"))


async def test_an_api_error_other_than_not_found_is_told() -> None:
    class Forbidden(Away):
        async def get(self, *arguments: Any) -> Any:
            if self.is_away:
                raise ApiError(403, "Forbidden", "you may not")
            return await self.client.get(*arguments)

    async with empty_world() as world:
        client = Forbidden(world.client)
        async with world.running(Fans(), client=client):
            claim = await world.allocate("c", "fan-0")
            client.is_away = True
            assert "you may not" in await _error(world, claim)
