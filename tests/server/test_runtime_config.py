"""Switching API versions off and on, and what the two switches refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dray.process.switches import FEATURE_GATES, SwitchError, disabled_gates, disabled_versions
from dray_process import run_dray
from server_process import server_on_thread

ALPHA = "resource.k8s.io/v1alpha3"
RULES = "devicetaintrules"
PATCHES = "resourceslicepatches"
RULE = {"metadata": {"name": "one"}, "spec": {"taint": {"key": "example.com/broken", "effect": "NoExecute"}}}
PATCH = {
    "metadata": {"name": "one"},
    "spec": {"devices": {"attributes": {"gpu.example.com/rack": {"string": "r1"}}}},
}


@pytest.mark.req("5055-109", "5055-112", "5055-113", "5055-149", "5027-45", "5027-56", "4381-204", "X-08")
@pytest.mark.parametrize(("plural", "body"), [(RULES, RULE), (PATCHES, PATCH)])
def test_a_version_that_is_off_is_not_found_and_loses_nothing(
    tmp_path: Path, plural: str, body: dict[str, Any]
) -> None:
    directory, path = tmp_path / "state", f"/apis/{ALPHA}/{plural}"
    with server_on_thread(directory) as (server, _):
        made = server.request("POST", path, body)
        assert made.code == 201, made.body
    with server_on_thread(directory, disabled_versions=disabled_versions(f"{ALPHA}=false")) as (server, _):
        assert server.request("GET", path).code == 404
        assert server.request("GET", f"{path}/one").code == 404
        assert server.request("POST", path, body).code == 404
        assert server.request("GET", f"/apis/{ALPHA}").code == 404
        group = server.request("GET", "/apis/resource.k8s.io").json
        assert ALPHA not in [version["groupVersion"] for version in group["versions"]]
    with server_on_thread(directory) as (server, _):
        assert server.request("GET", f"{path}/one").json == made.json


@pytest.mark.req("4381-204", "X-08")
def test_an_object_is_readable_in_every_version_that_is_on(tmp_path: Path) -> None:
    off = disabled_versions("resource.k8s.io/v1=false,resource.k8s.io/v1beta1=true")
    with server_on_thread(tmp_path / "state", disabled_versions=off) as (server, _):
        path = "/apis/resource.k8s.io/{}/deviceclasses"
        made = server.request("POST", path.format("v1beta2"), {"metadata": {"name": "gpu"}, "spec": {}})
        assert made.code == 201, made.body
        read = server.request("GET", path.format("v1beta1") + "/gpu")
        assert read.json["apiVersion"] == "resource.k8s.io/v1beta1"
        assert read.json["metadata"]["uid"] == made.json["metadata"]["uid"]
        assert server.request("GET", path.format("v1") + "/gpu").code == 404


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("resource.k8s.io/v9=false", "'resource.k8s.io/v9' is not served. Served: "),
        ("resource.k8s.io/v1", "give resource.k8s.io/v1=true or resource.k8s.io/v1=false"),
        ("resource.k8s.io/v1=no", "not 'resource.k8s.io/v1=no'"),
        ("v1=false", "v1 cannot be turned off"),
    ],
)
def test_versions_that_cannot_be_switched_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(SwitchError, match="--runtime-config: ") as caught:
        disabled_versions(text)
    assert complaint in str(caught.value)


def test_versions_are_on_unless_turned_off() -> None:
    assert disabled_versions("") == frozenset()
    assert disabled_versions(f" {ALPHA}=false , resource.k8s.io/v1=TRUE") == {ALPHA}


@pytest.mark.req("SVS-14")
def test_both_taint_gates_are_known_and_rules_need_taints() -> None:
    assert disabled_gates("DRADeviceTaintRules=false") == {"DRADeviceTaintRules"}
    assert disabled_gates("DRADeviceTaints=false,DRADeviceTaintRules=true") == {
        "DRADeviceTaints",
        "DRADeviceTaintRules",
    }
    assert disabled_gates("DRADeviceTaints=true") == frozenset()


@pytest.mark.req("5055-118", "5027-41")
def test_an_unknown_gate_is_refused_and_the_known_ones_are_listed(tmp_path: Path) -> None:
    done = run_dray("server", "--dir", tmp_path / "state", "--feature-gates", "DRADeviceTaint=false")
    assert done.returncode == 2
    assert "there is no gate 'DRADeviceTaint'" in done.stderr
    assert all(gate in done.stderr for gate in FEATURE_GATES)
    assert "Traceback" not in done.stderr
