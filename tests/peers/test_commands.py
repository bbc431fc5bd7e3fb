"""dray's commands against a Kubernetes API server as it comes, without any gate: as an admin, a reader and a viewer.

Needs Kubernetes' binaries of any version (`make peers PEERS=dir PEERS_OLDER=dir:dir`, a directory for each release),
and is passed over without them. The same commands on `dray server`, which go first, tell what is wrong with the
commands from what a version of Kubernetes does not have.
"""

from __future__ import annotations

import contextlib
import functools
import json
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dray_process import DrayProcess, run_dray
from patience import PATIENCE, eventually
from peer_processes import ApiServer, dray_server, kube_apiserver, older_peers, peers_directory
from peer_world import RESOURCE, World

PEERS = [*([newest] if (newest := peers_directory()) else []), *older_peers()]
pytestmark = pytest.mark.skipif(not PEERS, reason="PEERS names no directory with kube-apiserver and etcd")
READERS = {"reader": "dray-reader", "viewer": "system:aggregate-to-view"}
"""Who else there is, and the ClusterRole that they have: `view` is empty until a controller has put it together."""


class Commands:
    """A server on which dray is installed, with a pod whose claim fits and one whose claim does not."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        for name, role in READERS.items():
            self._bind(name, role)
        installed = self.run("install", "--set", "crds.deviceTaintRules=true")
        self.kubectl("apply", "-f", "-", text=installed.stdout)
        self.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        self.world = World(server)
        self.world.claim("fits")
        self.world.claim("too-many", count=3)
        self.world.pod("waiting", claim="too-many")

    @functools.cached_property
    def scheduler(self) -> subprocess.Popen[bytes]:
        """dray's, at work from the first time that somebody asks for it."""
        return self.server.start_dray("scheduler")

    def _bind(self, name: str, role: str) -> None:
        path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
        group = "rbac.authorization.k8s.io"
        body = {
            "metadata": {"name": f"test-{name}"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": group, "kind": "User", "name": name}],
        }
        self.server.ask("POST", path, body)

    def run(self, *words: str, who: str = "admin", code: int | None = 0) -> subprocess.CompletedProcess[str]:
        """Runs a command of dray, which must end with a code."""
        config = [] if words[0] in {"install", "uninstall"} else ["--kubeconfig", str(self.server.kubeconfigs[who])]
        done = run_dray(*words, *config)
        assert code is None or done.returncode == code, (
            f"{' '.join(words)} as {who}: {done.returncode}\n{done.stdout}{done.stderr}"
        )
        assert "Traceback" not in done.stderr
        return done

    def kubectl(self, *words: str, text: str = "") -> str:
        """What kubectl prints."""
        command = ["kubectl", "--kubeconfig", str(self.server.admin), *words]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"kubectl {' '.join(words)}: {done.stderr}"
        return done.stdout


@pytest.fixture(
    scope="module", params=["dray", *PEERS], ids=lambda one: one if one == "dray" else f"kubernetes-{one.name}"
)
def commands(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    directory = tmp_path_factory.mktemp("server")
    is_ours = request.param == "dray"
    with dray_server(PEERS[0], directory) if is_ours else kube_apiserver(request.param, directory) as server:
        yield Commands(server)


def test_doctor_says_what_works(commands: Commands) -> None:
    judged = commands.run("doctor", "-o", "json", code=None)
    findings = {one["what"]: one["works"] for one in json.loads(judged.stdout)["findings"]}
    assert [works for what, works in findings.items() if what.startswith("look")] == ["yes"]
    assert not [what for what, works in findings.items() if works == "no" and "device" in what]
    assert judged.returncode == (0 if set(findings.values()) == {"yes"} else 1)


@pytest.mark.parametrize("who", ["admin", "reader"])
def test_whoever_may_read_sees_devices_and_why_a_claim_waits(commands: Commands, who: str) -> None:
    name = commands.world.name
    assert f"{name}-a" in commands.run("get", "nodes", who=who).stdout
    assert "too-many" in commands.run("get", "claims", "-n", name, who=who).stdout
    assert "gpu-1" in commands.run("devices", "--node", f"{name}-a", who=who).stdout
    assert "fits on" in commands.run("explain", "claim", f"{name}/fits", who=who).stdout
    assert "pending" in commands.run("explain", "claim", f"{name}/too-many", who=who, code=1).stdout


@pytest.mark.parametrize("who", ["admin", "reader"])
def test_whoever_may_read_sees_what_a_change_would_do(commands: Commands, who: str, tmp_path: Path) -> None:
    rule = {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "retire"},
        "spec": {
            "deviceSelector": {"driver": commands.world.driver},
            "taint": {"key": "old", "effect": "NoSchedule"},
        },
    }
    (tmp_path / "rule.yaml").write_text(yaml.safe_dump(rule))
    assert "4 devices" in commands.run("what-if", "--apply", str(tmp_path / "rule.yaml"), who=who, code=1).stdout
    group = {
        "apiVersion": "dray.dev/v1",
        "kind": "NodeGroup",
        "metadata": {"name": "more"},
        "spec": {"fromNode": commands.world.nodes[0], "maxNodes": 2},
    }
    (tmp_path / "group.yaml").write_text(yaml.safe_dump(group))
    planned = commands.run("scale-up", "-f", str(tmp_path / "group.yaml"), who=who, code=None)
    assert planned.returncode in {0, 1}, planned.stderr
    assert "more" in planned.stdout


@pytest.mark.parametrize("who", ["admin", "reader"])
def test_whoever_may_read_gets_reports(commands: Commands, who: str, tmp_path: Path) -> None:
    for name in ("fleet.html", "fleet.svg"):
        commands.run("report", "fleet", "-o", str(tmp_path / name), who=who)
    assert commands.world.driver in (tmp_path / "fleet.html").read_text()
    assert (tmp_path / "fleet.svg").read_text().startswith("<svg")


def test_who_may_view_sees_claims(commands: Commands) -> None:
    assert "too-many" in commands.run("get", "claims", "-n", commands.world.name, who="viewer").stdout
    refused = commands.run("get", "nodes", who="viewer", code=2)
    assert "nodes" in refused.stderr


class Visitor:
    """Somebody who opens the link that `dray dashboard` prints."""

    def __init__(self, link: str) -> None:
        self._address, _, code = link.partition("/dashboard/#/login?code=")
        self._headers = {"Content-Type": "application/json"}
        answer = self._open("login", json.dumps({"code": code}).encode())
        self._headers["Cookie"] = str(answer.headers["Set-Cookie"]).partition(";")[0]
        self._headers["X-Dray-Key"] = json.loads(answer.read())["key"]

    def _open(self, path: str, body: bytes | None = None) -> Any:
        request = urllib.request.Request(f"{self._address}/dashboard/api/{path}", body, self._headers)
        return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=PATIENCE)

    def look(self, view: str) -> Any:
        """A view as it is now."""
        return json.loads(self._open(f"watch?view={view}&once=1").read())

    def fleet(self) -> list[dict[str, Any]]:
        """What the map is drawn from, up to the first summary."""
        found: list[dict[str, Any]] = []
        with self._open("fleet") as stream:
            while not found or found[-1]["type"] != "summary":
                found.append(json.loads(stream.readline()))
        return found


@contextlib.contextmanager
def visiting(commands: Commands, who: str) -> Iterator[Visitor]:
    config = str(commands.server.kubeconfigs[who])
    words = ("dashboard", "--kubeconfig", config, "--port", "0")
    with DrayProcess(*words, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            said = next(line for line in process.stdout if "#/login?code=" in line)
            yield Visitor(next(word for word in said.split() if "#/login" in word))
        finally:
            process.terminate()
            process.wait(PATIENCE)


@pytest.mark.parametrize("who", ["admin", "reader"])
def test_whoever_may_read_looks_at_the_page(commands: Commands, who: str) -> None:
    with visiting(commands, who) as visitor:
        *_, rows, summary = visitor.fleet()
        assert summary["totals"]["devices"] == 4
        assert summary["missing"] == []
        assert {row["n"] for row in rows["rows"]} == set(commands.world.nodes)
        waiting = visitor.look("waiting")
        assert f"{commands.world.name}/too-many" in {one["name"] for one in waiting["claims"]}
        assert visitor.look("rules")["rules"] == []
        assert visitor.look("timeline")["missing"] == []


def test_who_may_view_is_told_what_the_page_leaves_out(commands: Commands) -> None:
    with visiting(commands, "viewer") as visitor:
        summary = visitor.fleet()[-1]
        assert summary["totals"]["devices"] == 0
        assert "you may not list and watch nodes" in summary["missing"]
        assert "you may not list and watch resourceslices.resource.k8s.io" in summary["missing"]
        assert f"{commands.world.name}/too-many" in {one["name"] for one in visitor.look("waiting")["claims"]}


def test_a_device_is_taken_out_of_service_and_put_back(commands: Commands) -> None:
    device = ("device", "--node", commands.world.nodes[0], "--device", "gpu-0")
    assert "1 device" in commands.run("taint", *device, "maintenance:NoSchedule", "--dry-run").stdout
    commands.run("taint", *device, "maintenance:NoSchedule", "--yes")
    assert "maintenance" in commands.run("devices", "--node", commands.world.nodes[0]).stdout
    commands.run("untaint", *device)
    assert "maintenance" not in commands.run("devices", "--node", commands.world.nodes[0]).stdout
    commands.run("drain", *device, "--yes", "--wait", "--timeout", "60s")
    commands.run("untaint", *device)


def test_patches_count_for_commands_and_for_the_scheduler_of_dray(commands: Commands) -> None:
    patch = """
apiVersion: dray.dev/v1alpha1
kind: ResourceSlicePatch
metadata: {name: bigger}
spec:
  devices:
    filter: {driver: DRIVER, pool: POOL, device: gpu-0}
    attributes: {example.com/tier: {string: gold}}
"""
    world, (_, node) = commands.world, commands.world.nodes
    commands.kubectl("apply", "-f", "-", text=patch.replace("DRIVER", world.driver).replace("POOL", node))
    assert "gold" in commands.run("devices", "-o", "json").stdout
    world.claim("gold", '"tier" in device.attributes["example.com"] && device.attributes["example.com"].tier == "gold"')
    world.pod("golden", claim="gold")
    assert commands.scheduler.poll() is None
    assert world.bound("golden") == node
    [result] = world.get("resourceclaims", "gold", RESOURCE)["status"]["allocation"]["devices"]["results"]
    assert (result["pool"], result["device"]) == (node, "gpu-0")


def test_what_the_guard_holds_is_taken_back_or_confirmed(commands: Commands) -> None:
    world, pods = World(commands.server), ("one", "two")
    told = commands.run("confirm", code=1)
    assert (told.stdout, "no guard holds evictions here" in told.stderr) == ("Nothing is held.\n", True)
    for name in pods:
        world.claim(name)
        world.pod(name, claim=name)
    assert commands.scheduler.poll() is None
    assert all(world.bound(name) for name in pods)
    evictions = ("--controllers", "device-taint-eviction-controller", "--max-evictions", "1")
    commands.server.start_dray("controllers", *evictions)
    taint = ("taint", "device", "--driver", world.driver, "broken:NoExecute", "--yes")
    commands.run(*taint)
    held = eventually(lambda: json.loads(commands.run("confirm", "-o", "json", code=None).stdout)["items"])
    [target] = [one["target"] for one in held]
    assert target.startswith("rule/")
    assert "NoSchedule" not in commands.run("devices", "--node", world.nodes[0]).stdout
    assert commands.run("cancel", target).stdout == f"Cancelled: {target}.\n"
    eventually(lambda: commands.run("confirm", code=None).returncode == 1)
    commands.run(*taint)
    eventually(lambda: target in commands.run("confirm", code=None).stdout)
    assert not any(world.leaving(name) for name in pods)
    assert f"Confirmed: {target}.\n" in commands.run("confirm", target).stdout
    eventually(lambda: all(world.leaving(name) for name in pods))


def test_one_command_stops_evictions_and_one_lets_them_go_on(commands: Commands) -> None:
    assert "are stopped" in commands.run("stop-evictions").stdout
    assert "stopped" in commands.run("confirm", code=1).stderr
    assert commands.run("stop-evictions", "--resume").stdout == "Evictions go on.\n"


def test_what_is_installed_goes_again(commands: Commands) -> None:
    commands.kubectl("delete", "-f", "-", "--wait=false", text=commands.run("uninstall").stdout)
