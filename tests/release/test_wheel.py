"""What is released: built here, installed in a clean environment, and used from there (docs/releasing.md)."""

from __future__ import annotations

import subprocess
import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

import dray
from dray import extras
from release_world import ROOT, Installed, build, link_packages

STATIC = ROOT / "src" / "dray" / "dashboard" / "static"
TEMPLATE = ROOT / "src" / "dray" / "driver_scaffold" / "template"
INFORMATION = f"dray-{dray.__version__}.dist-info"
DATA = f"dray-{dray.__version__}.data"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """What `pip install dray` makes."""
    return Installed(tmp_path_factory.mktemp("installed"), wheel)


def test_the_wheel_has_the_page_the_schemas_and_the_manual_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {f"dray/dashboard/static/{file.name}" for file in STATIC.iterdir()} <= names
    assert {"dray/py.typed", "dray/api/schema/kinds.json", f"{INFORMATION}/licenses/LICENSE"} <= names
    assert f"{DATA}/data/share/man/man1/dray-up.1" in names
    assert {name.partition("/")[0] for name in names} == {"dray", INFORMATION, DATA}
    assert not [name for name in names if Path(name).match("test_*.py") or name.endswith(".pyc")]
    assert {f"dray/{file.relative_to(ROOT / 'src' / 'dray')}" for file in TEMPLATE.rglob("*.template")} <= names


def test_the_wheel_names_version_licence_and_extras(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        found = message_from_bytes(archive.read(f"{INFORMATION}/METADATA"))
    assert (found["Version"], found["License-Expression"]) == (dray.__version__, "Apache-2.0")
    assert {"all", *extras.MODULES} <= set(found.get_all("Provides-Extra") or ())
    by_default = [text for text in found.get_all("Requires-Dist") or () if "extra ==" not in text]
    assert not [text for text in by_default if text.startswith("grpcio")]


def test_the_same_sources_give_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    assert build("wheel", tmp_path).read_bytes() == wheel.read_bytes()


def test_the_source_archive_has_what_a_wheel_and_the_tests_are_made_from(tmp_path: Path) -> None:
    with tarfile.open(build("sdist", tmp_path)) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "LICENSE", "CHANGELOG.md", "src/dray/__init__.py", "tests/release/test_wheel.py"} <= names
    assert not [name for name in names if name.startswith((".venv", "dist/", "site/"))]


def test_what_is_installed_is_a_command_and_a_library(installed: Installed) -> None:
    assert "validate" in installed.run("dray", "--help").stdout
    judged = installed.run("kubectl-dray", "validate", ROOT / "examples" / "mistakes")
    assert (judged.returncode, "undefined field 'driverr'" in judged.stdout) == (1, True)
    program = "import dray; print(dray.__version__, dray.__file__, dray.validate({'kind': 'Pod'})[0].field)"
    version, file, field = installed.run("python", "-c", program).stdout.split()
    assert (version, field) == (dray.__version__, "apiVersion")
    assert file.startswith(str(installed.directory))


def test_a_cluster_needs_no_extra(installed: Installed) -> None:
    state = installed.directory / "state"
    try:
        up = installed.run("dray", "up", "--detach", "--nodes", "1", "--port", "0", "--dir", state)
        assert up.returncode == 0, up.stderr
        kubectl = ("kubectl", "--kubeconfig", state / "kubeconfig", "get", "resourceslices")
        assert "gpu" in subprocess.run(kubectl, capture_output=True, text=True, check=True).stdout
    finally:
        installed.run("dray", "down", "--dir", state)


def test_a_command_that_lacks_an_extra_says_which(installed: Installed) -> None:
    refused = installed.run("dray", "node", "--name", "one")
    told = "dray: the node agent needs what is not installed. Run: pip install 'dray[node]'\n"
    assert (refused.returncode, refused.stdout, refused.stderr) == (2, "", told)


def test_packages_that_lack_an_extra_say_which(installed: Installed) -> None:
    program = """
for package in ("driver", "driver_test", "node.program", "store.etcd"):
    try:
        __import__(f"dray.{package}")
    except ImportError as error:
        print(package, str(error).partition("pip install ")[2])
"""
    told = [
        "driver 'dray[driver]'",
        "driver_test 'dray[driver]'",
        "node.program 'dray[node]'",
        "store.etcd 'dray[etcd]'",
    ]
    assert installed.run("python", "-c", program).stdout.splitlines() == told


def test_extras_bring_what_nodes_drivers_and_etcd_need(installed: Installed, tmp_path: Path) -> None:
    link_packages(extras.MODULES, tmp_path)
    program = "import dray.driver, dray.driver_test.session, dray.node.program, dray.store.etcd"
    assert installed.run("python", "-c", program, beside=tmp_path).stderr == ""
