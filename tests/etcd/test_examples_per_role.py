"""The examples of docs/scale-out.md, followed as they stand: kubeconfigs, units and containers of each role.

Only places are others: a machine of the page is this one, and its directories are the test's.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dray.server.security.certificates import Authority
from dray_process import DrayProcess
from etcd_world import Etcd, running_etcd
from live_server import LiveServer
from patience import PATIENCE, eventually
from ports import free_port

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs/scale-out.md").read_text()
BLOCKS = re.findall(r"^```\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
UNITS = [block for block in BLOCKS if block.startswith("[Service]")]
[CONTAINERS] = [block for block in BLOCKS if block.startswith("docker run")]
[KUBECONFIGS] = [block for block in BLOCKS if "kubectl" in block]
ROLES = ["server", "scheduler", "controllers"]


def joined(block: str) -> list[str]:
    """Lines, with those that a backslash continues."""
    return block.replace("\\\n", " ").splitlines()


def of_unit(unit: str) -> list[str]:
    """What a unit starts, without the program."""
    [line] = [line for line in joined(unit) if line.startswith("ExecStart=")]
    program, *arguments = shlex.split(line.removeprefix("ExecStart="))
    assert program == "/usr/local/bin/dray"
    return arguments


def of_container(line: str) -> list[str]:
    """What a container is started with, behind its image, whose entry point is `dray`."""
    words = shlex.split(line)
    image = next(number for number, word in enumerate(words) if word.startswith("dray:"))
    mounted = [words[number + 1].split(":")[:2] for number, word in enumerate(words) if word == "-v"]
    places = [there for here, there in mounted if here == there]
    arguments = words[image + 1 :]
    files = [word for word in arguments if word.startswith("/")]
    assert all(any(file.startswith(place) for place in places) for file in files), "not mounted"
    return arguments


STARTED = {
    "units": [of_unit(unit) for unit in UNITS],
    "containers": [of_container(line) for line in joined(CONTAINERS)],
}


def test_each_role_has_a_unit_and_a_container() -> None:
    for arguments in STARTED.values():
        assert [each[0] for each in arguments] == ROLES
    assert [sorted(each) for each in STARTED["units"]] == [sorted(each) for each in STARTED["containers"]]


def test_the_image_starts_dray_by_itself_as_the_user_that_the_page_names() -> None:
    image = (ROOT / "Containerfile").read_text()
    assert 'ENTRYPOINT ["/dray/bin/dray"]' in image
    assert re.search(r"^USER 65532:", image, re.MULTILINE)
    assert "grpcio==" in (ROOT / "requirements.lock").read_text()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not there")
@pytest.mark.parametrize("role", ROLES)
def test_systemd_takes_the_units(role: str, tmp_path: Path) -> None:
    """It says nothing but that this machine lacks the program and the user."""
    unit = tmp_path / f"dray-{role}.service"
    unit.write_text(UNITS[ROLES.index(role)].replace("/usr/local/bin/dray ", "/bin/true "))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False)
    assert not re.search(f"{unit.name}:\\d+|Unknown|Failed to parse", done.stderr), done.stderr


class Machine:
    """The directories of a machine, and etcd with TLS."""

    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self.etc, self.state = directory / "etc/dray", directory / "var/lib/dray"
        self.etc.mkdir(parents=True)
        now = dt.datetime.now(dt.UTC)
        authority = Authority.create(now, "etcd")
        server = authority.issue_server_certificate(["127.0.0.1"], now)
        client = authority.issue_client_certificate("dray", (), now)
        for name, data in (
            ("etcd-ca.crt", authority.pair.certificate),
            ("etcd.crt", client.certificate),
            ("etcd.key", client.key),
            ("member.crt", server.certificate),
            ("member.key", server.key),
        ):
            (self.etc / name).write_bytes(data)
        self.etcd_options = (
            "--cert-file", str(self.etc / "member.crt"), "--key-file", str(self.etc / "member.key"),
            "--client-cert-auth", "--trusted-ca-file", str(self.etc / "etcd-ca.crt"),
        )  # fmt: skip

    def here(self, text: str, etcd: Etcd) -> str:
        """A text of the page, with the places of this machine."""
        for there, place in (
            ("https://h1:2379,https://h2:2379,https://h3:2379", ",".join(etcd.urls)),
            ("/etc/dray", str(self.etc)),
            ("/var/lib/dray", str(self.state)),
            ("https://api.example.com:6443", f"https://127.0.0.1:{self.port}"),
            ("10.0.0.11", "127.0.0.1"),
            (" -o dray ", " "),
        ):
            text = text.replace(there, place)
        return text

    def write_kubeconfigs(self, etcd: Etcd) -> None:
        """As the page says."""
        script = self.here(KUBECONFIGS, etcd)
        done = subprocess.run(["sh", "-e", "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def started(arguments: list[str], log: Path) -> Iterator[DrayProcess]:
    with log.open("a") as file, DrayProcess(*arguments, stdout=file, stderr=file) as process:
        try:
            yield process
        finally:
            process.kill()
            process.wait(PATIENCE)


def is_listening(machine: Machine, process: DrayProcess, log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    return (machine.state / "kubeconfig").exists() and "https://" in log.read_text()


def holder(api: LiveServer, lease: str) -> str:
    answer = api.request("GET", f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{lease}")
    return str(answer.json["spec"].get("holderIdentity", "")) if answer.code == 200 else ""


@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not there")
@pytest.mark.parametrize("example", STARTED)
def test_the_roles_start_with_these_arguments_and_do_their_work(example: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    directory = tmp_path / "etcd"
    directory.mkdir()
    logs = {role: tmp_path / f"{role}.log" for role in ROLES}
    with running_etcd(directory, 3, machine.etcd_options) as etcd, contextlib.ExitStack() as stack:
        commands = {each[0]: [machine.here(word, etcd) for word in each] for each in STARTED[example]}
        server = stack.enter_context(started([*commands["server"], "--port", str(machine.port)], logs["server"]))
        eventually(lambda: is_listening(machine, server, logs["server"]))
        machine.write_kubeconfigs(etcd)
        for role in ROLES[1:]:
            stack.enter_context(started(commands[role], logs[role]))
        api = LiveServer(f"https://127.0.0.1:{machine.port}", machine.state)
        stack.callback(api.close)
        for lease in ("kube-scheduler", "dray-controllers"):
            eventually(lambda lease=lease: holder(api, lease), f"nobody holds {lease}")  # type: ignore[misc]
        node = {"metadata": {"name": "n"}, "spec": {}}
        assert api.request("POST", "/api/v1/nodes", node).code == 201
        room = {"status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}}
        assert api.request("PATCH", "/api/v1/nodes/n/status", room, "application/merge-patch+json").code == 200
        template = {
            "metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [{"name": "c", "image": "i"}], "tolerations": [{"operator": "Exists"}]},
        }
        deployment = {
            "metadata": {"name": "a"},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": template},
        }
        assert api.request("POST", "/apis/apps/v1/namespaces/default/deployments", deployment).code == 201

        def has_its_node() -> bool:
            pods = api.request("GET", "/api/v1/namespaces/default/pods").json["items"]
            return [pod["spec"].get("nodeName") for pod in pods] == ["n"]

        eventually(has_its_node, "".join(log.read_text() for log in logs.values()))
