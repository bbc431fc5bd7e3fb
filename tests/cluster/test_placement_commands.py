"""`dray placement`, `get clusters`, `taint cluster` and `explain placement` on a hub that nothing else works on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from commands import run_here
from dray.cli.main import app
from hub_world import GROUP, PLACEMENT_LABEL, SET_LABEL
from live_server import LiveServer
from server_process import server_on_thread

V1, V1BETA1, V1BETA2 = (f"/apis/{GROUP}/{version}" for version in ("v1", "v1beta1", "v1beta2"))
IN_DEFAULT = "namespaces/default"


class Hub:
    """A server with a fleet on it."""

    def __init__(self, server: LiveServer) -> None:
        self.server = server

    def send(self, method: str, path: str, body: Any) -> Any:
        content = "application/merge-patch+json" if method == "PATCH" else "application/json"
        done = self.server.request(method, path, body, content)
        assert done.code in (200, 201), done.body
        return done.json

    def dray(self, *arguments: str, stdin: str = "") -> Result:
        where = ["--kubeconfig", str(self.server.kubeconfig)]
        return CliRunner().invoke(app, [*arguments, *where], input=stdin)

    def cluster(self, name: str, available: str | None = "True", **status: Any) -> None:
        meta = {"name": name, "labels": {SET_LABEL: "fleet"}}
        self.send("POST", f"{V1}/managedclusters", {"metadata": meta, "spec": {"hubAcceptsClient": True}})
        said = {
            "type": "ManagedClusterConditionAvailable",
            "status": available,
            "reason": "Reported",
            "message": "",
            "lastTransitionTime": "2026-06-01T12:00:00Z",
        }
        conditions = [said] if available is not None else []
        patch = {"status": {"conditions": conditions, **status}}
        self.send("PATCH", f"{V1}/managedclusters/{name}/status", patch)

    def placement(self, name: str, *decided: str, **spec: Any) -> None:
        self.send("POST", f"{V1BETA1}/{IN_DEFAULT}/placements", {"metadata": {"name": name}, "spec": spec})
        labels = {PLACEMENT_LABEL: name}
        made = {"metadata": {"name": f"{name}-decision-1", "labels": labels}}
        path = f"{V1BETA1}/{IN_DEFAULT}/placementdecisions"
        self.send("POST", path, made)
        entries = [{"clusterName": cluster, "reason": ""} for cluster in decided]
        self.send("PATCH", f"{path}/{name}-decision-1/status", {"status": {"decisions": entries}})

    def taints(self, name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (
            self.server.request("GET", f"{V1}/managedclusters/{name}").json["spec"].get("taints", [])
        )
        return found


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Hub]:
    with server_on_thread(tmp_path / "state") as (server, _):
        yield Hub(server)


@pytest.fixture
def hub(empty: Hub) -> Hub:
    empty.send("POST", f"{V1BETA2}/managedclustersets", {"metadata": {"name": "fleet"}})
    binding = {"metadata": {"name": "fleet"}, "spec": {"clusterSet": "fleet"}}
    empty.send("POST", f"{V1BETA2}/{IN_DEFAULT}/managedclustersetbindings", binding)
    claims = [
        {"name": "free.devices.dray.dev/gpu", "value": "3"},
        {"name": "total.devices.dray.dev/gpu", "value": "8"},
    ]
    empty.cluster("a", clusterClaims=claims)
    empty.cluster("b", "False")
    empty.cluster("c", None)
    steady = {"mode": "Exact", "configurations": [{"scoreCoordinate": {"builtIn": "Steady"}}]}
    empty.placement("one", "a", numberOfClusters=1, prioritizerPolicy=steady)
    empty.placement("patient", "a", "b", tolerations=[{"key": "x", "operator": "Exists", "tolerationSeconds": 90}])
    return empty


def test_nothing_is_there(empty: Hub) -> None:
    done = empty.dray("placement", "list")
    assert (done.exit_code, done.stdout) == (1, "No placements.\n")
    got = run_here("get", "clusters", "--kubeconfig", empty.server.kubeconfig)
    assert (got.returncode, got.stdout) == (1, "No clusters.\n")


def test_clusters_in_a_table_and_for_programs(hub: Hub) -> None:
    where = ("--kubeconfig", hub.server.kubeconfig)
    rows = [line.split() for line in run_here("get", "clusters", *where).stdout.splitlines()]
    assert rows[1:] == [
        ["a", "available", "fleet", "gpu", "3/8", "–", "2"],
        ["b", "unavailable", "fleet", "–", "–", "1"],
        ["c", "not", "joined", "fleet", "–", "–", "0"],
    ]
    shown = json.loads(run_here("get", "clusters", "-o", "json", *where).stdout)
    assert shown["kind"] == "ClusterList"
    assert (shown["items"][0]["freeDevices"], shown["items"][0]["totalDevices"]) == ({"gpu": 3}, {"gpu": 8})


def test_placements_that_nobody_has_decided_yet(hub: Hub) -> None:
    done = hub.dray("placement", "list", "-n", "default")
    assert [line.split()[0:3] for line in done.stdout.splitlines()[1:]] == [
        ["default/one", "not", "decided"],
        ["default/patient", "not", "decided"],
    ]
    described = hub.dray("placement", "describe", "default/one", "-o", "json")
    listed = hub.dray("placement", "list", "-o", "json")
    assert json.loads(listed.stdout)["kind"] == "PlacementList"
    shown = json.loads(described.stdout)
    assert (described.exit_code, shown["clusters"], shown["satisfied"]) == (1, ["a"], False)
    assert shown["explanation"]["clusters"][0]["cluster"] == "a"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("placement", "describe", "default/none"), "no Placement default/none"),
        (("explain", "placement", "none"), "no Placement default/none"),
        (("taint", "cluster", "z", "x:NoSelect"), "no cluster z; there is a, b, c."),
        (("taint", "cluster", "a", "x:NoSchedule"), "taint 'x:NoSchedule': there is no effect 'NoSchedule'."),
        (("taint", "cluster", "a", "x"), "taint 'x': no effect."),
        (("untaint", "cluster", "a", "x:Nonsense"), "taint 'x:Nonsense': there is no effect 'Nonsense'."),
    ],
)
def test_what_cannot_be_is_said(hub: Hub, arguments: tuple[str, ...], says: str) -> None:
    done = hub.dray(*arguments)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"dray: {says}"), done.stderr
    assert done.stderr.count("\n") == 1


def test_a_look_before_a_taint_is_set(hub: Hub) -> None:
    looked = hub.dray("taint", "cluster", "a", "x=1:NoSelect", "--dry-run")
    assert looked.exit_code == 0
    lines = looked.stdout.splitlines()
    assert lines[0] == "Cluster a is selected by 2 placements; 2 would lose it, 0 would get it."
    assert lines[3].split() == ["default/one", "leaves", "b", "1", "of", "1"]
    *told, seconds = lines[4].split()[:4]
    assert told == ["default/patient", "stays", "for"]
    assert seconds in ("89", "90")  # taints are as old as whole seconds tell
    assert hub.taints("a") == []
    shown = json.loads(hub.dray("taint", "cluster", "a", "x=1:NoSelect", "--dry-run", "-o", "json").stdout)
    assert [one["placement"] for one in shown["placements"]] == ["default/one", "default/patient"]


def test_taints_of_others_stay_and_the_same_taint_keeps_its_age(hub: Hub) -> None:
    old = {"key": "x", "value": "1", "effect": "NoSelect", "timeAdded": "2026-01-01T00:00:00Z"}
    other = {"key": "other", "effect": "NoSelectIfNew", "timeAdded": "2026-01-01T00:00:00Z"}
    hub.send("PATCH", f"{V1}/managedclusters/a", {"spec": {"taints": [other, old]}})
    assert hub.dray("taint", "cluster", "a", "x=1:NoSelect").exit_code == 0
    assert hub.taints("a") == [other, old]
    assert hub.dray("taint", "cluster", "a", "x=2:NoSelect", "y:PreferNoSelect").exit_code == 0
    changed = hub.taints("a")
    assert [(one["key"], one.get("value")) for one in changed] == [("other", None), ("x", "2"), ("y", None)]
    assert changed[1]["timeAdded"] != old["timeAdded"]
    assert hub.dray("untaint", "cluster", "a", "x").exit_code == 0
    assert [one["key"] for one in hub.taints("a")] == ["other", "y"]


def test_the_hubs_own_taint_is_said_to_come_back_and_not_to_stay(hub: Hub) -> None:
    key = f"{GROUP}/unreachable"
    done = hub.dray("taint", "cluster", "c", f"{key}:NoSelect", "--dry-run")
    said = "The hub sets this taint itself, and takes it away while the cluster is available: use another key.\n"
    assert done.stdout.endswith(said)
    hub.send("PATCH", f"{V1}/managedclusters/c", {"spec": {"taints": [{"key": key, "effect": "NoSelect"}]}})
    done = hub.dray("untaint", "cluster", "c", key)
    assert done.stdout.endswith("The hub sets this taint itself: it comes back unless the cluster is available.\n")
