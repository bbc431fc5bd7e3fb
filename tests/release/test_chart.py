"""The chart that `dray install --chart` writes, as Helm itself takes it.

Helm is one on the path or beside the interpreter (`make soak` installs one); without it this is passed over. The unit
tests of `dray.install` read the templates without it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from commands import run_here
from dray.install import DEFAULTS, ValuesError, manifests, read_values
from dray.install.values import CHOICES
from patience import PATIENCE
from peer_processes import ApiServer, dray_server, kube_apiserver, older_peers, peers_directory

HELM = shutil.which("helm", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
PEERS = [*([newest] if (newest := peers_directory()) else []), *older_peers()]
pytestmark = pytest.mark.skipif(HELM is None, reason="there is no helm; make soak installs one")
KUBE_VERSION = "1.37.0"
"""Otherwise Helm takes the version of Kubernetes that it was built with."""


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("helm") / "chart"
    assert run_here("install", "--chart", found).returncode == 0
    return found


def helm(*words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Runs Helm, which must end with a code."""
    command = [str(word) for word in (HELM, *words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == code, f"{command}: {done.stdout}{done.stderr}"
    return done


def settings(changed: dict[str, Any]) -> list[str]:
    """Values as words of a command."""
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in changed.items()}
    return [word for name, text in texts.items() for word in ("--set", f"{name}={text.replace(',', chr(92) + ',')}")]


def place(obj: dict[str, Any]) -> tuple[str, str, str]:
    return obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def template(chart: Path, changed: dict[str, Any], *more: str) -> dict[tuple[str, str, str], Any]:
    """The objects that Helm makes, without what only Helm reads."""
    words = ("template", "dray", chart, "--kube-version", KUBE_VERSION, *settings(changed), *more)
    objects = [one for one in yaml.safe_load_all(helm(*words).stdout) if one]
    for one in objects:
        if one["kind"] == "CustomResourceDefinition":
            assert one["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    return {place(one): one for one in objects}


CHANGES: list[dict[str, Any]] = [
    {},
    {name: not value for name, value in DEFAULTS.items() if isinstance(value, bool)},
    *({name: value} for name, values in CHOICES.items() for value in values[1:]),
    {"metrics.port": 99, "namespace": "elsewhere", "image": "registry.example.com:5000/dray@sha256:00ff"},
    {"scheduler.mode": "default", "controllers.evictions": "instead", "controllers.maxEvictions": "7,2.5%,node"},
    {"resources.cpu": "2", "resources.memory": "2Gi", "controllers.maxEvictions": "50"},
]


@pytest.mark.parametrize("changed", CHANGES, ids=lambda changed: ",".join(changed) or "defaults")
def test_helm_makes_what_dray_install_prints(chart: Path, changed: dict[str, Any]) -> None:
    assert template(chart, changed) == {place(one): one for one in manifests({**DEFAULTS, **changed})}


def test_who_releases_into_the_namespace_has_made_it(chart: Path) -> None:
    there = set(template(chart, {})) - set(template(chart, {}, "--namespace", "dray-system"))
    assert there == {("Namespace", "", "dray-system")}


def test_helm_finds_nothing_wrong(chart: Path) -> None:
    helm("lint", "--strict", chart)


WRONG = (
    "scheduler.mode=third",
    "scheduler.replica=3",
    "scheduler.replicas=0",
    "scheduler.replicas=many",
    "metrics.port=65536",
    "networkPolicy.enabled=yes",
    "namespace=Not_One",
    "image=",
    "image=a b",
    "scheduler.name=it's",
    "controllers.maxEvictions=some",
    "resources.memory=lots",
    "nothing=1",
)


@pytest.mark.parametrize("setting", WRONG)
def test_what_cannot_be_is_refused_by_both(chart: Path, setting: str) -> None:
    name = setting.partition("=")[0]
    with pytest.raises(ValuesError, match=name):
        read_values([setting])
    refused = helm("template", "dray", chart, "--kube-version", KUBE_VERSION, "--set", setting, code=1)
    assert name.rpartition(".")[2] in refused.stderr
    assert "schema" in refused.stderr


@pytest.fixture(
    scope="module", params=["dray", *PEERS], ids=lambda one: one if one == "dray" else f"kubernetes-{one.name}"
)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    directory = tmp_path_factory.mktemp("server")
    is_ours = request.param == "dray"
    with dray_server(Path(), directory) if is_ours else kube_apiserver(request.param, directory) as found:
        yield found


def test_a_release_comes_changes_and_goes(chart: Path, server: ApiServer) -> None:
    here = ("--kubeconfig", server.admin)
    # dray's own server has the role of readers from the beginning.
    common = ("--set", "rbac.reader=false")
    helm("install", "dray", chart, *common, *here)
    deployment = "/apis/apps/v1/namespaces/dray-system/deployments/dray-scheduler"
    assert server.ask("GET", deployment)["spec"]["replicas"] == 2
    helm("upgrade", "dray", chart, *common, "--set", "scheduler.replicas=3", *here)
    assert server.ask("GET", deployment)["spec"]["replicas"] == 3
    helm("rollback", "dray", "1", *here)
    assert server.ask("GET", deployment)["spec"]["replicas"] == 2
    helm("uninstall", "dray", *here)
    assert server.ask("GET", deployment) is None
    kinds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/resourceslicepatches.dray.dev"
    assert server.ask("GET", kinds) is not None, "every patch would go with it"


def test_a_release_in_its_own_namespace(chart: Path, server: ApiServer) -> None:
    own = {"namespace": "dray-own", "rbac.reader": False, "crds.resourceSlicePatches": False}
    where = ("--namespace", "dray-own", "--kubeconfig", server.admin)
    helm("install", "dray", chart, "--create-namespace", *settings(own), *where)
    assert server.ask("GET", "/apis/apps/v1/namespaces/dray-own/deployments/dray-dashboard") is not None
    helm("uninstall", "dray", *where)
