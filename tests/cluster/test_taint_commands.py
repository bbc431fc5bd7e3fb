"""`dray taint`, `untaint` and `drain` on a running cluster, as an admin and as somebody who may not."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from dray.api.times import Time
from dray.client.http import HttpClient
from patience import eventually
from taint_cluster import TaintCluster, taint_cluster

RATE = "dray.dev/evictions-per-second"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TaintCluster]:
    with taint_cluster(tmp_path_factory.mktemp("taints")) as running:
        yield running


@pytest.fixture
def cluster(shared: TaintCluster) -> Iterator[TaintCluster]:
    """Whatever a test leaves behind is gone after it."""
    yield shared
    shared.clean()


def test_a_dry_run_shows_who_is_hit_and_changes_nothing(cluster: TaintCluster) -> None:
    (pod,) = cluster.run_pods("train", 1, "node-2")
    (gpu,) = cluster.holders("node-2")
    done = cluster.dray("taint", "device", "--node", "node-2", "--device", gpu, "hbm=bad:NoExecute", "--dry-run")
    assert (done.exit_code, done.stderr) == (0, "")
    assert re.match(rf"Rule hbm-\w+ selects 1 device: node-2/{gpu} \(gpu.example.com\); 1 held.\n", done.stdout)
    assert "Would evict 1 pod in 1 namespace; 0 protected by tolerations." in done.stdout
    assert re.search(rf"default/{pod} +ReplicaSet default/train-\w+ .* yes: node-1, node-2", done.stdout)
    assert done.stdout.endswith("Nothing was changed. Run again without --dry-run to apply.\n")
    assert cluster.rules() == []


@pytest.mark.req("5055-124", "5055-125")
def test_taint_wait_and_untaint(cluster: TaintCluster) -> None:
    pods = cluster.run_pods("train", 3, "node-1")
    done = cluster.dray(
        "taint", "device", "--node", "node-1", "hbm=bad:NoExecute", "--evictions-per-second", "50", "--wait"
    )
    assert done.exit_code == 0, done.stderr
    assert "3 of 3 pods evicted\n" in done.stdout
    assert re.search(r"✔ tainted \(rule hbm-\w+\)   ✔ 3 of 3 evicted", done.stdout)
    assert not set(pods) & set(cluster.pods("train"))
    (rule,) = cluster.rules()
    assert rule["spec"]["deviceSelector"] == {"driver": "gpu.example.com", "pool": "node-1"}
    assert {"key": "hbm", "value": "bad", "evictionsPerSecond": 50}.items() <= rule["spec"]["taint"].items()
    again = cluster.dray("untaint", "device", "--node", "node-1")
    assert again.exit_code == 0
    assert again.stdout == f"Removed rule {rule['metadata']['name']}: node-1/gpu-0 … gpu-7 (gpu.example.com).\n"
    assert cluster.rules() == []
    nothing = cluster.dray("untaint", "device", "--node", "node-1")
    assert (nothing.exit_code, nothing.stdout) == (1, "No rule taints these devices. Nothing was changed.\n")


def test_the_same_rule_first_informs_and_then_evicts(cluster: TaintCluster) -> None:
    before = cluster.run_pods("train", 1, "node-1")
    look = cluster.dray("taint", "device", "--node", "node-1", "hbm:None")
    assert "Evicts nobody: the effect is None. With NoExecute it would evict 1 pod in 1 namespace" in look.stdout
    (first,) = cluster.rules()
    assert cluster.pods("train") == before
    assert cluster.dray("taint", "device", "--node", "node-1", "hbm:NoExecute", "--wait").exit_code == 0
    (second,) = cluster.rules()
    assert second["metadata"]["uid"] == first["metadata"]["uid"]
    assert second["spec"]["taint"]["effect"] == "NoExecute"
    assert cluster.pods("train") != before


def test_drain_leaves_a_device_idle_and_says_how_to_put_it_back(cluster: TaintCluster) -> None:
    cluster.run_pods("train", 2, "node-3")
    gpu = cluster.holders("node-3")[0]
    done = cluster.dray("drain", "device", "--node", "node-3", "--device", gpu, "--wait")
    assert done.exit_code == 0, done.stderr
    assert "✔ 1 of 1 evicted   ✔ claims released   ✔ unprepared on node-3" in done.stdout
    back = re.search(r"Device is idle. Put back with: dray (.*)\n", done.stdout)
    assert back is not None
    assert back[1] == f"untaint device --node node-3 --device {gpu}"
    assert gpu not in cluster.holders("node-3")
    assert cluster.dray(*back[1].split()).exit_code == 0
    assert cluster.rules() == []


def test_a_pod_that_tolerates_it_stays_and_is_told(cluster: TaintCluster) -> None:
    everything = [{"operator": "Exists"}]
    (pod,) = cluster.run_pods("monitor", 1, "node-1", tolerations=everything)
    done = cluster.dray("drain", "device", "--node", "node-1", "--wait", "-o", "json")
    assert done.exit_code == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["preview"]["protected"] == [f"default/{pod}"]
    assert (answer["result"]["pods"], answer["result"]["done"]) == (0, True)
    assert cluster.pods("monitor") == [pod]


def test_a_wait_that_takes_too_long_is_a_no(cluster: TaintCluster) -> None:
    patient = [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3600}]
    cluster.run_pods("train", 1, "node-1", tolerations=patient)
    done = cluster.dray("drain", "device", "--node", "node-1", "--wait", "--timeout", "1s")
    assert done.exit_code == 1
    assert "✘ 0 of 1 evicted   ✘ held still" in done.stdout
    assert "Not idle: default/train-" in done.stdout
    assert "go on with the same command, or put back with: dray untaint device --node node-1\n" in done.stdout
    assert re.search(r"leaves .*\n.* in (1 h|59 min) ", done.stdout)


@pytest.mark.parametrize(
    ("answer", "options", "code"), [("32\n", (), 0), ("31\n", (), 1), ("", (), 1), ("", ("--yes",), 0)]
)
def test_an_empty_selector_asks_for_the_number_of_devices(
    cluster: TaintCluster, answer: str, options: tuple[str, ...], code: int
) -> None:
    done = cluster.dray("taint", "device", "all:NoSchedule", *options, stdin=answer)
    assert done.exit_code == code, done.stderr
    assert ("Type the number of devices (32) to go on" in done.stderr) == (not options)
    assert len(cluster.rules()) == (1 if code == 0 else 0)
    assert cluster.dray("untaint", "device", "--all").exit_code == code


def test_what_the_server_warns_of_is_said_once(cluster: TaintCluster) -> None:
    """A rule is written and confirmed: two requests, about one of which somebody wants to hear."""
    done = cluster.dray("taint", "device", "all:NoExecute", "--yes")
    assert done.stderr.count("selects every device in the cluster") == 1
    assert cluster.dray("untaint", "device", "--all").exit_code == 0


def test_class_and_cel_are_kept_in_the_rule(cluster: TaintCluster) -> None:
    old = 'device.attributes["gpu.example.com"].driverVersion.isLessThan(semver("600.0.0"))'
    options = ("--class", "gpu.example.com", "--cel", old)
    done = cluster.dray("taint", "device", *options, "fw=old:NoSchedule", "--yes")
    assert done.exit_code == 0, done.stderr
    (rule,) = cluster.rules()
    selector = {"deviceClassName": "gpu.example.com", "selectors": [{"cel": {"expression": old}}]}
    assert rule["spec"]["deviceSelector"] == selector
    assert cluster.dray("untaint", "device", *options).exit_code == 0


def test_rules_of_others_that_hit_more_stay_and_are_told(cluster: TaintCluster) -> None:
    spec = {"deviceSelector": {"driver": "gpu.example.com"}, "taint": {"key": "k", "effect": "NoSchedule"}}
    cluster.create("resource.k8s.io/v1/devicetaintrules", {"metadata": {"name": "rack"}, "spec": spec})
    done = cluster.dray("untaint", "device", "--node", "node-1")
    assert done.exit_code == 1
    assert "Rule rack taints others as well, and stays" in done.stdout
    removed = cluster.dray("untaint", "device", "--rule", "rack", "-o", "json")
    assert json.loads(removed.stdout)["rules"] == ["rack"]


def test_a_rule_for_a_time_carries_its_end_and_ends(cluster: TaintCluster) -> None:
    done = cluster.dray("taint", "device", "--node", "node-1", "k:NoSchedule", "--for", "2h")
    assert done.exit_code == 0
    (rule,) = cluster.rules()
    left = Time.parse(rule["metadata"]["annotations"]["dray.dev/expires-at"]).datetime() - datetime.now(UTC)
    assert timedelta(hours=1, minutes=55) < left <= timedelta(hours=2)
    assert cluster.dray("taint", "device", "--node", "node-1", "k:NoSchedule", "--for", "1s").exit_code == 0
    eventually(lambda: not cluster.rules())


def test_node_taint_drain_and_untaint(cluster: TaintCluster) -> None:
    pods = cluster.run_pods("train", 2, "node-4")
    look = cluster.dray("taint", "node", "node-4", "disk=bad:NoExecute", "--dry-run")
    assert "Node node-4 gets disk=bad:NoExecute.\nWould evict 2 pods in 1 namespace" in look.stdout
    assert re.search(r"yes: node-1, node-2", look.stdout)
    done = cluster.dray("drain", "node", "node-4", "--wait")
    assert done.exit_code == 0, done.stderr
    assert "✔ 2 of 2 evicted   ✔ 2 gone" in done.stdout
    assert "Node is idle. Put back with: dray untaint node node-4 maintenance:NoSchedule" in done.stdout
    assert not set(pods) & set(cluster.pods("train"))
    assert cluster.node_taints("node-4") == [{"key": "maintenance", "effect": "NoSchedule"}]
    assert cluster.dray("untaint", "node", "node-4", "-o", "json").exit_code == 0
    assert cluster.node_taints("node-4") == []


def test_several_nodes_are_emptied_at_one_rate_that_leaves_with_the_taint(cluster: TaintCluster) -> None:
    cluster.run_pods("train", 8, "node-1")
    cluster.run_pods("serve", 8, "node-2")
    for other in ("node-3", "node-4"):  # with them, it is half of the pods that leave, which nobody has to confirm
        cluster.run_pods(f"on-{other}", 8, other)
    paced = ("--evictions-per-second", "2", "--ignore-budgets")
    look = cluster.dray("drain", "node", "node-1", "node-2", *paced, "--dry-run")
    assert "2 nodes get maintenance:NoExecute: node-1, node-2.\nWould evict 16 pods in 1 namespace" in look.stdout
    assert "within 3 s" in look.stdout
    done = cluster.dray("drain", "node", "node-1", "node-2", *paced, "--wait", "-o", "json")
    assert done.exit_code == 0, done.stderr
    result = json.loads(done.stdout)["result"]
    assert (result["done"], result["pods"], result["gone"]) == (True, 16, 16)
    # Ten at once and two a second, whatever else makes it slower; without the rate it takes no time.
    assert result["seconds"] >= 2.5
    notes = {cluster.get(f"v1/nodes/{node}")["metadata"]["annotations"][RATE] for node in ("node-1", "node-2")}
    assert [re.sub("@drain-[0-9a-f]{8}$", "@…", note) for note in notes] == ["maintenance:NoExecute=2@…"]
    back = cluster.dray("untaint", "node", "node-1", "node-2", "maintenance:NoExecute")
    assert back.exit_code == 0
    assert "Removed maintenance:NoExecute from node node-2.\n" in back.stdout
    for node in ("node-1", "node-2"):
        assert cluster.node_taints(node) == []
        assert RATE not in cluster.get(f"v1/nodes/{node}")["metadata"]["annotations"]


def test_on_another_api_server_the_command_says_who_honours_the_rate(
    cluster: TaintCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    rated = ("taint", "node", "node-4", "k:NoExecute", "--evictions-per-second", "5", "--dry-run")
    assert cluster.dray(*rated).stderr == ""

    async def kubernetes(_: HttpClient) -> str:
        return "v1.37.0"

    monkeypatch.setattr(HttpClient, "server_version", kubernetes)
    done = cluster.dray(*rated)
    assert done.exit_code == 0
    assert f"the annotation {RATE} carries the rate, for dray's taint-eviction-controller only" in done.stderr
    assert cluster.dray("taint", "node", "node-4", "k:NoExecute", "--dry-run").stderr == ""


def test_the_rate_of_a_node_taint_that_expires_expires_with_it(cluster: TaintCluster) -> None:
    cluster.patch("v1/nodes/node-4", {"metadata": {"annotations": {RATE: "other:NoExecute=3"}}})
    options = ("--evictions-per-second", "5", "--for", "1s")
    assert cluster.dray("taint", "node", "node-4", "k=v:NoExecute", "l:NoSchedule", *options).exit_code == 0
    eventually(lambda: cluster.get("v1/nodes/node-4")["metadata"]["annotations"][RATE] == "other:NoExecute=3")
    cluster.patch("v1/nodes/node-4", {"metadata": {"annotations": {RATE: None}}})
    assert cluster.node_taints("node-4") == []


def test_a_rate_of_a_node_that_cannot_be_read_is_told_wherever_it_matters(cluster: TaintCluster) -> None:
    wrote = cluster.kubectl.run("annotate", "node", "node-4", f"{RATE}=5")
    assert f"Warning: metadata.annotations[{RATE}]: '5' is not KEY:NoExecute=RATE" in wrote.stderr
    done = cluster.dray("drain", "node", "node-4")
    assert done.exit_code == 2
    assert f"node node-4: annotation {RATE}: '5' is not KEY:NoExecute=RATE. Correct or remove it" in done.stderr
    cluster.patch("v1/nodes/node-4", {"spec": {"taints": [{"key": "maintenance", "effect": "NoExecute"}]}})
    assert cluster.dray("untaint", "node", "node-4").exit_code == 0
    assert RATE not in cluster.get("v1/nodes/node-4")["metadata"]["annotations"]


def test_a_node_taint_for_a_time_ends_and_others_stay(cluster: TaintCluster) -> None:
    cluster.patch("v1/nodes/node-4", {"spec": {"taints": [{"key": "other", "value": "1", "effect": "NoSchedule"}]}})
    assert cluster.dray("taint", "node", "node-4", "k=v:NoSchedule", "--for", "1s").exit_code == 0
    eventually(lambda: [one["key"] for one in cluster.node_taints("node-4")] == ["other"])
    absent = cluster.dray("untaint", "node", "node-4", "k")
    assert (absent.exit_code, absent.stdout) == (1, "Node node-4 has no taint k; it has other:NoSchedule.\n")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("taint", "device", "--node", "node-9", "k:NoExecute"), 2, "no node node-9; there is node-1"),
        (
            ("taint", "device", "--node", "node-1", "--device", "gpu-9", "k:NoExecute"),
            2,
            "no device gpu-9 on node node-1",
        ),
        (("taint", "device", "--class", "tpu", "k:NoExecute"), 2, "no device class tpu"),
        (("taint", "device", "--cel", "device.nothing", "k:NoExecute"), 2, "undefined field 'nothing'"),
        (
            ("taint", "device", "--cel", "false", "k:NoExecute"),
            1,
            "No device matches (CEL false). Nothing was changed.",
        ),
        (
            ("drain", "device", "--cel", 'device.attributes["gpu.example.com"].wheels == 4'),
            1,
            "wheels == 4): it fails on 32 devices: selector #0: runtime error: no such key: wheels;",
        ),
        (("taint", "device", "--node", "node-1", "k"), 2, "no effect"),
        (("taint", "device", "--node", "node-1", "k:NoExecute", "--for", "later"), 2, "--for 'later' is not a time"),
        (("taint", "node", "node-9", "k:NoExecute"), 2, "no node node-9"),
        (("taint", "node", "node-1", "k:None"), 2, "there is no effect 'None'"),
        (("taint", "node", "node-1", "node-2"), 2, "no taint is given. Write NODE... KEY[=VALUE]:EFFECT..."),
        (("taint", "node", "k:NoExecute", "l:NoExecute"), 2, "no node is given"),
        (
            ("taint", "node", "node-1", "k:NoSchedule", "--evictions-per-second", "5"),
            2,
            "--evictions-per-second 5: none of the taints evicts",
        ),
        (("drain", "node", "node-1", "nod-2"), 2, "no node nod-2; there is node-1"),
        (("drain", "node", "node-1", "k:NoSchedule"), 2, "there is no effect 'NoSchedule'"),
        (("drain", "node", "node-1", "k=1", "l=2"), 2, "more than one taint is given"),
        (("drain", "device", "--node", "node-1", "k:NoSchedule"), 2, "there is no effect 'NoSchedule'"),
        (("untaint", "device"), 2, "say which devices"),
        (("untaint", "device", "--rule", "nobody"), 2, "no rule nobody"),
        (("untaint", "node", "node-1", "k:Sometimes"), 2, "there is no effect 'Sometimes'"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(
    cluster: TaintCluster, arguments: tuple[str, ...], code: int, says: str
) -> None:
    done = cluster.dray(*arguments)
    assert done.exit_code == code
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert cluster.rules() == []


@pytest.mark.req("implied-9")
@pytest.mark.parametrize("rate", ["0", "-3", "1.5", "many", "9999999999"])
@pytest.mark.parametrize("what", [("taint", "device", "--node", "node-1", "k:NoExecute"), ("drain", "node", "node-1")])
def test_a_rate_is_a_whole_number_of_at_least_one(cluster: TaintCluster, what: tuple[str, ...], rate: str) -> None:
    done = cluster.dray(*what, "--evictions-per-second", rate)
    assert done.exit_code == 2
    assert "Invalid value for '--evictions-per-second'" in done.stderr
    assert cluster.rules() == []
    assert cluster.node_taints("node-1") == []


def test_who_may_not_is_told_so(cluster: TaintCluster, tmp_path: Path) -> None:
    kubeconfig = yaml.safe_load(cluster.server.kubeconfig.read_text())
    cluster.create("v1/namespaces/default/serviceaccounts", {"metadata": {"name": "viewer"}})
    binding = {
        "metadata": {"name": "viewer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "viewer", "namespace": "default"}],
    }
    cluster.create("rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    made = cluster.create("v1/namespaces/default/serviceaccounts/viewer/token", {"spec": {}})
    kubeconfig["users"][0]["user"] = {"token": made["status"]["token"]}
    viewer = tmp_path / "viewer"
    viewer.write_text(yaml.safe_dump(kubeconfig))
    done = cluster.dray("taint", "device", "--node", "node-1", "k:NoSchedule", kubeconfig=viewer)
    assert done.exit_code == 2
    assert "forbidden" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert cluster.rules() == []


def test_a_server_that_is_away_is_named(cluster: TaintCluster, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    kubeconfig = yaml.safe_load(cluster.server.kubeconfig.read_text())
    kubeconfig["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
    away = tmp_path / "away"
    away.write_text(yaml.safe_dump(kubeconfig))
    for arguments in (("drain", "node", "node-1"), ("untaint", "device", "--all"), ("taint", "device", "k:None")):
        done = cluster.dray(*arguments, kubeconfig=away)
        assert done.exit_code == 2
        assert f"127.0.0.1:{port}" in done.stderr
        assert "Traceback" not in done.stderr


def test_an_eviction_that_is_held_says_how_to_confirm_it(tmp_path: Path) -> None:
    with taint_cluster(tmp_path, "--max-evictions", "1") as guarded:
        guarded.run_pods("train", 2, "node-1")
        done = guarded.dray("taint", "device", "--node", "node-1", "k:NoExecute", "--wait", "--timeout", "3s")
        assert done.exit_code == 1
        (rule,) = guarded.rules()
        assert f"To confirm: kubectl annotate --overwrite devicetaintrule {rule['metadata']['name']}" in done.stderr
        assert len(guarded.pods("train")) == 2


def test_a_drain_that_is_held_is_confirmed_once(tmp_path: Path) -> None:
    with taint_cluster(tmp_path, "--max-evictions", "1") as guarded:
        guarded.run_pods("train", 3, "node-1")
        done = guarded.dray("drain", "node", "node-1", "--ignore-budgets", "--wait", "--timeout", "6s")
        assert done.exit_code == 1
        command = "kubectl annotate --overwrite node node-1 dray.dev/confirm-evictions=maintenance"
        assert f"more than 1. To confirm: {command}\n" in done.stderr
        undo = "to take it back: dray untaint node node-1 maintenance:NoExecute"
        assert f"3 pods still there. Nobody leaves while it is held; {undo}\n" in done.stdout
        guarded.kubectl(*command.split()[1:])
        assert guarded.dray("drain", "node", "node-1", "--ignore-budgets", "--wait").exit_code == 0
        assert guarded.dray("untaint", "node", "node-1").exit_code == 0
        assert "dray.dev/confirm-evictions" not in guarded.get("v1/nodes/node-1")["metadata"]["annotations"]


@pytest.mark.parametrize("change", ["delete", "cancel"])
def test_a_rule_that_somebody_takes_back_meanwhile_ends_the_wait(change: str, cluster: TaintCluster) -> None:
    waits = [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3600}]
    cluster.run_pods("patient", 1, "node-1", tolerations=waits)

    def take_back() -> None:
        (rule,) = eventually(cluster.rules)
        path = f"resource.k8s.io/v1/devicetaintrules/{rule['metadata']['name']}"
        if change == "delete":
            cluster.delete(path)
        else:
            cluster.patch(path, {"spec": {"taint": {"effect": "NoSchedule"}}})

    admin = threading.Timer(1.0, take_back)
    admin.start()
    done = cluster.dray(
        "taint", "device", "--node", "node-1", "k:NoExecute", "--wait", "--timeout", "30s", "-o", "json"
    )
    admin.join()
    assert done.exit_code == 1
    assert json.loads(done.stdout)["result"]["calledOff"] is True
