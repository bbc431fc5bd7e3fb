"""The example drivers: what they publish, what they hand out, what they refuse; and as programs of their own."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

import example_modules
from dray.api import codec
from dray.api.resource import ResourceClaim, ResourceSlice
from dray.server.security.identity import NODE_NAME, POD_NAME, authenticated
from driver_world import CLAIM, NODE, DriverWorld, empty_world
from example_modules import load
from local_server import refused, typed
from patience import PATIENCE, eventually_async
from server_process import server_on_thread

EXAMPLES = example_modules.EXAMPLES / "drivers"


FAKE_GPU = load("drivers", "fake_gpu")
NETWORK = load("drivers", "network_interfaces")


async def allocate(world: DriverWorld, name: str, driver_name: str, device: str, config: list[Any]) -> Any:
    """A claim with one device of a driver."""
    return await world.allocate(name, {"driver": driver_name, "device": device}, config=config)


def parameters(source: str, driver_name: str, **values: Any) -> dict[str, Any]:
    """Opaque configuration from a class or a claim."""
    return {"source": source, "opaque": {"driver": driver_name, "parameters": values}}


@pytest.mark.req("5055-78", "5055-79")
async def test_gpus_are_published_in_parts_that_share_counters() -> None:
    async with empty_world() as world, world.running(FAKE_GPU.FakeGpu(2)):
        slices = await world.published(3)
        devices = [it for found in slices for it in found.spec.devices]
        assert len(devices) == 2 * (1 + 2 + 4)
        assert [len(found.spec.shared_counters) for found in slices if found.spec.shared_counters] == [2]
        assert sum(not it.spec.devices and not it.spec.shared_counters for it in slices) == 1
        quarter = next(it for it in devices if it.name == "gpu-1-quarter-3")
        assert quarter.consumes_counters[0].counter_set == "gpu-1"
        assert str(quarter.capacity["memory"].value) == "20Gi"


@pytest.mark.req("5055-76")
async def test_the_health_file_taints_a_board_and_its_parts(tmp_path: Path) -> None:
    file = tmp_path / "health.json"
    gpus = FAKE_GPU.FakeGpu(2, file)
    gpus.interval = 0.05
    async with empty_world() as world, world.running(gpus):
        before = await world.published(3)

        async def taints() -> dict[str, str]:
            return {it.device: it.taint.effect for found in await world.slices() for it in found.spec.taints}

        file.write_text('{"gpu-1": "NoExecute"}')
        found = await eventually_async(taints)
        assert len(found) == 7
        assert set(found.values()) == {"NoExecute"}
        assert all(name.startswith("gpu-1") for name in found)
        file.write_text("{broken")
        await asyncio.sleep(0.2)
        assert await taints() == found
        file.unlink()

        async def healthy() -> bool:
            return not await taints()

        await eventually_async(healthy)
        assert {it.spec.pool.generation for it in await world.slices()} == {before[0].spec.pool.generation}


@pytest.mark.req("4381-182", "4381-238", "4381-232")
async def test_parameters_become_variables_and_only_admins_may_run_commands(caplog: pytest.LogCaptureFixture) -> None:
    name = FAKE_GPU.FakeGpu.name

    caplog.set_level("INFO")
    async with empty_world() as world, world.running(FAKE_GPU.FakeGpu(2)):
        good = await allocate(
            world,
            "good",
            name,
            "gpu-0",
            [
                parameters("FromClass", name, initCommand=["warm-up"], env={"A": "class", "B": "class"}),
                parameters("FromClaim", name, env={"A": "claim"}),
            ],
        )
        answer = (await world.prepare(good))[good.metadata.uid]
        env = world.cache.edits(answer.devices[0].cdi_device_ids).env
        assert set(env) == {"GPU_GPU_0=GPU-0000-gpu-0", "A=claim", "B=class"}
        assert "warm-up on gpu-0" in caplog.text
        await world.unprepare(good)
        assert "reset gpu-0" in caplog.text
        await world.forget(good)
        bad = await allocate(world, "bad", name, "gpu-1", [parameters("FromClaim", name, initCommand=["rm -rf /"])])
        assert "only accepted from the DeviceClass" in (await world.prepare(bad))[bad.metadata.uid].error
        odd = await allocate(world, "odd", name, "gpu-0-half-0", [parameters("FromClaim", name, colour="red")])
        assert "unknown parameters colour" in (await world.prepare(odd))[odd.metadata.uid].error


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """A machine with one PCI interface below a bridge, a virtual one that is down, and a loopback."""
    nets = tmp_path / "class" / "net"
    nets.mkdir(parents=True)
    (nets / "bonding_masters").write_text("")
    pci = tmp_path / "devices" / "pci0000:3a" / "0000:3a:02.0" / "0000:3b:00.1"
    for name, home, files in (
        ("ens1f1", pci / "net" / "ens1f1", {"operstate": "up", "speed": "100000", "mtu": "9000"}),
        ("Br.0", tmp_path / "devices" / "virtual" / "net" / "Br.0", {"operstate": "down", "mtu": "1500"}),
        ("lo", tmp_path / "devices" / "virtual" / "net" / "lo", {"operstate": "unknown", "mtu": "65536"}),
    ):
        home.mkdir(parents=True)
        for file, text in {"address": "02:00:00:00:00:01", **files}.items():
            (home / file).write_text(f"{text}\n")
        (nets / name).symlink_to(home)
    (pci / "net" / "ens1f1" / "device").symlink_to(pci)
    (pci / "numa_node").write_text("1\n")
    return tmp_path


@pytest.mark.req("4381-28", "4381-29", "4381-255", "4381-256", "SVS-61")
def test_interfaces_have_the_standard_attributes(sysfs: Path) -> None:
    bridge, nic = NETWORK.NetworkInterfaces(sysfs).discover()
    assert dict(nic.attributes) == {
        "interface": "ens1f1",
        "mac": "02:00:00:00:00:01",
        "mtu": 9000,
        "virtual": False,
        "mbitPerSecond": 100000,
        "resource.kubernetes.io/pciBusID": "0000:3b:00.1",
        "resource.kubernetes.io/pcieRoot": "pci0000:3a",
        "resource.kubernetes.io/numaNode": 1,
    }
    assert (nic.name, list(nic.taints)) == ("ens1f1", [])
    assert (bridge.attributes["interface"], bridge.attributes["virtual"]) == ("Br.0", True)
    assert [taint.effect for taint in bridge.taints] == ["NoSchedule"]


async def test_interfaces_are_named_and_moved(sysfs: Path) -> None:
    name = NETWORK.NetworkInterfaces.name

    async with empty_world() as world, world.running(NETWORK.NetworkInterfaces(sysfs)):
        await world.published(2)
        plain = await allocate(world, "plain", name, "ens1f1", [])
        answer = (await world.prepare(plain))[plain.metadata.uid]
        edits = world.cache.edits(answer.devices[0].cdi_device_ids)
        assert (edits.env, edits.net_devices) == (("NET_R=ens1f1",), ())
        await world.unprepare(plain)
        await world.forget(plain)
        moved = await allocate(world, "moved", name, "ens1f1", [parameters("FromClaim", name, name="net0")])
        answer = (await world.prepare(moved))[moved.metadata.uid]
        (net,) = world.cache.edits(answer.devices[0].cdi_device_ids).net_devices
        assert (net.host_interface_name, net.name) == ("ens1f1", "net0")
        await world.unprepare(moved)
        await world.forget(moved)
        bad = await allocate(world, "bad", name, "ens1f1", [parameters("FromClaim", name, name="a/b")])
        assert "must be the name of a network interface" in (await world.prepare(bad))[bad.metadata.uid].error


async def test_interfaces_of_this_machine_can_be_published() -> None:
    async with empty_world() as world, world.running(NETWORK.NetworkInterfaces()):
        await world.published(2)


@pytest.mark.req("4381-180", "4381-229")
async def test_the_manifest_gives_a_driver_its_rights_and_no_more() -> None:
    assert "(../examples/drivers/fake_gpu.yaml)" in (EXAMPLES.parents[1] / "docs" / "drivers.md").read_text()
    async with empty_world(with_roles=True) as world:
        for document in yaml.safe_load_all((EXAMPLES / "fake_gpu.yaml").read_text()):
            await world.client.create(typed(document))
        user = "system:serviceaccount:kube-system:fake-gpu"
        account = authenticated(user, ("system:serviceaccounts",), extra={NODE_NAME: (NODE,), POD_NAME: ("fake-gpu",)})
        restricted = world.server.client(account)
        gpus = FAKE_GPU.FakeGpu(1)
        async with world.running(gpus, client=restricted):
            await world.published(3)
            claim = await allocate(world, "c", gpus.name, "gpu-0", [])
            assert (await world.prepare(claim))[claim.metadata.uid].error == ""

            async def told() -> list[Any]:
                stored = await world.client.get(CLAIM, "default", "c")
                assert isinstance(stored, ResourceClaim)
                return [(it.device, it.data, [one.type for one in it.conditions]) for it in stored.status.devices]

            assert await eventually_async(told) == [("gpu-0", {"uuid": "GPU-0000-gpu-0"}, ["Ready", "Healthy"])]
            await refused(restricted.update(claim), "cannot update")
            await refused(restricted.create(typed(_claim_document())), "cannot create")


def _claim_document() -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "x", "namespace": "default"},
    }


@pytest.fixture
def root() -> Iterator[Path]:
    """A directory with a short name, for sockets."""
    path = Path(tempfile.mkdtemp(prefix="dray-"))
    (path / "registry").mkdir()
    yield path
    shutil.rmtree(path)


def start(example: str, root: Path, kubeconfig: Path, **environment: str) -> subprocess.Popen[str]:
    """An example driver as a process."""
    command = [sys.executable, str(EXAMPLES / f"{example}.py"), "--node-name", NODE, "--kubeconfig", str(kubeconfig)]
    command += ["--plugin-dir", str(root / "plugin"), "--registry-dir", str(root / "registry")]
    command += ["--cdi-dir", str(root / "cdi"), "--log-format", "json"]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})


async def test_a_driver_is_a_program_that_stops_when_told(root: Path) -> None:
    with server_on_thread(root / "state") as (server, instance):
        server.request("POST", "/api/v1/nodes", {"metadata": {"name": NODE}})
        process = start("fake_gpu", root, instance.kubeconfig, FAKE_GPU_BOARDS="1")
        try:
            slices = await eventually_async(lambda: _published(server, 3), "nothing was published")
            assert {it.spec.driver for it in slices} == {"gpu.example.com"}
            await eventually_async((root / "registry" / "gpu.example.com-reg.sock").exists)
        finally:
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, said
        assert [json.loads(line)["level"] for line in said.splitlines()] == ["info"] * len(said.splitlines()), said
        assert not list((root / "registry").iterdir())
        assert not (root / "plugin" / "dra.sock").exists()
        assert len(_published(server, 3)) == 3  # the node removes them, unless the driver comes back


def _published(server: Any, count: int) -> list[ResourceSlice]:
    items = server.request("GET", "/apis/resource.k8s.io/v1/resourceslices").json["items"]
    found = [cast(ResourceSlice, codec.read(item, ResourceSlice).obj) for item in items]
    return found if len(found) == count else []


@pytest.mark.req("5055-120")
def test_a_driver_whose_taints_are_dropped_ends_with_a_clear_message(root: Path) -> None:
    gates = frozenset({"DRADeviceTaints", "DRADeviceTaintRules"})
    (root / "health").write_text('{"gpu-0": "NoSchedule"}')
    with server_on_thread(root / "state", disabled_gates=gates) as (server, instance):
        server.request("POST", "/api/v1/nodes", {"metadata": {"name": NODE}})
        process = start(
            "fake_gpu", root, instance.kubeconfig, FAKE_GPU_BOARDS="1", FAKE_GPU_HEALTH=str(root / "health")
        )
        try:
            _, said = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
        assert process.returncode == 2
        assert said.splitlines()[-1].startswith(
            "gpu.example.com: the API server drops fields that this driver needs: node-1-gpu.example.com-"
        )
        assert "taints" in said.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--node-name", ""], "gpu.example.com: the name of the node is needed: give --node-name, or set NODE_NAME"),
        (["--node-name", "n", "--kubeconfig", "/nowhere"], "gpu.example.com: .*/nowhere"),
        (["--node-name", "n", "--plugin-dir", "/dev/null/x"], "gpu.example.com: cannot use /dev/null/x"),
        (["--node-name", "n", "--plugin-dir", f"/tmp/{'x' * 120}"], "longer than 107 bytes"),
    ],
)
def test_options_that_cannot_work_are_said_in_one_line(arguments: list[str], why: str, tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    config.write_text(
        json.dumps(
            {
                "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
                "users": [{"name": "c", "user": {"token": "x"}}],
                "current-context": "c",
            }
        )
    )
    command = [sys.executable, str(EXAMPLES / "fake_gpu.py"), "--kubeconfig", str(config), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    shutil.rmtree(f"/tmp/{'x' * 120}", ignore_errors=True)
    assert done.returncode == 2
    (line,) = [it for it in done.stderr.splitlines() if " info " not in it]
    assert re.search(why, line), line
