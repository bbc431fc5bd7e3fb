"""`dray node` and `dray node-kubeconfig` as people use them, right and wrong; and a server of another version."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from commands import run_here
from dray.client.http import HttpClient
from dray.client.kubeconfig import load_kubeconfig
from dray_process import DrayProcess, run_dray
from live_server import LiveServer, running_server
from node_world import NODE, NodeWorld, inhabited
from patience import PATIENCE

DOCS = Path(__file__).parents[2] / "docs"


def said(done: subprocess.CompletedProcess[str]) -> str:
    """The one or two lines of a failure."""
    assert done.returncode == 2, done
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("dray: ")
    assert done.stderr.count("\n") <= 2
    return done.stderr


def node_kubeconfig(server: LiveServer, name: str, directory: Path) -> Path:
    done = run_here("node-kubeconfig", name, "--dir", str(server.directory))
    assert done.returncode == 0, done.stderr
    path = directory / f"{name}.kubeconfig"
    path.write_text(done.stdout)
    return path


def test_bad_options_are_refused_in_a_line(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    assert "cannot be a node's name" in said(run_here("node", "--name", "Not_A_Name", "--kubeconfig", missing))
    assert "missing" in said(run_here("node", "--name", "n", "--kubeconfig", missing))
    assert "cannot be a node's name" in said(run_here("node-kubeconfig", "Not_A_Name"))
    assert "cannot read" in said(run_here("node-kubeconfig", "n", "--dir", missing))


@pytest.mark.parametrize(
    ("option", "value", "why"),
    [
        ("--container-ids", "1-2", "needs --container-user"),
        ("--container-ids", "1", "must be FIRST-LAST"),
        ("--container-ids", "a-b", "must be FIRST-LAST"),
        ("--container-user", "nobody", "must be UID or UID:GID"),
        ("--container-user", "1:", "must be UID or UID:GID"),
        ("--container-user", "-1", "must be UID or UID:GID"),
        ("--container-user", str(2**32), "must be UID or UID:GID"),
        ("--cdi-vendor", "gpu.example.com", "must be DRIVER=VENDOR"),
        ("--cdi-vendor", "=x", "must be DRIVER=VENDOR"),
    ],
)
def test_bad_users_and_vendors_are_refused_in_a_line(tmp_path: Path, option: str, value: str, why: str) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    cluster = {"name": "c", "cluster": {"server": "https://127.0.0.1:9"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    user = {"name": "u", "user": {"token": "t"}}
    content = {"clusters": [cluster], "contexts": [context], "users": [user], "current-context": "c"}
    kubeconfig.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **content}))
    assert why in said(run_here("node", "--name", "n", "--kubeconfig", str(kubeconfig), f"{option}={value}"))


def test_two_agents_on_one_root_and_a_wrong_identity_are_refused(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="cmd-") as directory, running_server(tmp_path / "state") as server:
        root = str(Path(directory) / "root")
        kubeconfig = str(node_kubeconfig(server, "n1", tmp_path))
        words = ("node", "--name", "n1", "--kubeconfig", kubeconfig, "--root", root, "--runtime", "none")
        with DrayProcess(*words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as agent:
            assert agent.stdout is not None
            assert "dray node n1" in agent.stdout.readline()
            again = run_dray("node", "--name", "n1", "--kubeconfig", kubeconfig, "--root", root)
            assert f"another dray node (pid {agent.pid})" in said(again)
            other = run_dray("node", "--name", "n2", "--kubeconfig", kubeconfig, "--root", f"{root}-2")
            assert 'cannot read "n2", only its own Node object' in said(other)
            agent.terminate()
            assert agent.wait(PATIENCE) == 0


def test_the_agent_loads_only_what_it_needs() -> None:
    """It runs for months on every machine; what it loads, it holds."""
    code = (
        "import ssl, sys; before = ssl.create_default_context\n"
        "from dray.node.__main__ import _load_http_library; _load_http_library()\n"
        "import aiohttp.connector, dray.node.program, dray.process.component_endpoints\n"
        "assert ssl.create_default_context is before\n"
        "assert not aiohttp.connector._SSL_CONTEXT_VERIFIED.get_ca_certs()\n"
        "assert aiohttp.connector._SSL_CONTEXT_VERIFIED.verify_mode is ssl.CERT_REQUIRED\n"
        "print([name for name in sys.modules if name in "
        "('typer', 'rich', 'lmdb', 'difflib', 'dray.cli', 'dray.store', 'dray.scheduler', 'dray.controllers')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.req("4381-177")
def test_the_documentation_says_that_the_runtime_must_know_cdi_and_cannot_be_asked() -> None:
    pages = {page: (DOCS / page).read_text() for page in ("node.md", "drivers.md")}
    assert "a runtime that does not support CDI could not be told from one that does" in pages["node.md"]
    assert "The container runtime must know CDI; a node cannot tell if it does not" in pages["drivers.md"]


def test_gates_that_do_not_exist_are_refused(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    done = run_here("node", "--name", "n", "--kubeconfig", missing, "--feature-gates", "Nothing=false")
    assert "there is no gate 'Nothing'" in said(done)


@pytest.mark.req("4381-175", "4381-214")
async def test_a_server_without_v1_is_served_in_the_version_that_it_has(tmp_path: Path) -> None:
    off = "resource.k8s.io/v1=false"
    with (
        tempfile.TemporaryDirectory(prefix="skew-") as directory,
        running_server(tmp_path / "state", "--runtime-config", off) as server,
    ):
        kubeconfig = node_kubeconfig(server, NODE, tmp_path)
        async with (
            HttpClient(load_kubeconfig([server.kubeconfig])) as admin,
            HttpClient(load_kubeconfig([kubeconfig])) as node,
            inhabited(NodeWorld(admin, node, Path(directory))) as world,
        ):
            await world.publish("stale")
            await world.start()
            driver = await world.driver()
            await world.claim("c", "gpu-0")
            await world.pod("p", claims=["c"])
            await world.phase("p", "Running")
            assert await world.slices() == []
            await world.delete("p")
            await world.gone("p")
            assert (driver.prepared, driver.unprepared) == ([["c"]], [["c"]])
