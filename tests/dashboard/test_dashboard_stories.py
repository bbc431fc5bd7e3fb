"""The page in a real browser, by clicking: what an admin does, what an attacker tries, what a viewer may not see."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from dray.cli.main import app
from dray.testing import Cluster, cluster
from dray_process import DrayProcess
from page_browser import PHONE, Page, browser
from patience import KUBECTL_PATIENCE, PATIENCE, eventually

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
CLASS = "gpu.example.com"
HELD, TAINTED = 2, 4
CAUGHT = """
const texts = [];
const kept = URL.createObjectURL;
URL.createObjectURL = (blob) => { texts.push(blob.text()); return kept(blob); };
for (const one of document.querySelectorAll(".strips")) {
  for (const button of one.parentElement.querySelectorAll("button.small")) button.click();
}
URL.createObjectURL = kept;
return Promise.all(texts);
"""
"""Presses CSV and JSON, and tells what would be saved."""
SHARED = """
const rows = arguments[0];
return import(new URL("tables.js", location.href)).then((tables) => tables.share(rows, 10).map((row) => row.name));
"""


def _picture(page: Page, name: str, height: int = 560) -> None:
    """For docs/, when they are made anew: DRAY_PICTURES=1."""
    if os.environ.get("DRAY_PICTURES"):
        PICTURES.mkdir(exist_ok=True)
        page.script("document.querySelector('#toasts')?.replaceChildren()")
        page.picture(PICTURES / f"{name}.png", height)


def _workload(name: str, count: int, namespace: str = "ml") -> str:
    claim = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": CLASS, "count": count}}]}}
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": claim},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "containers": [{"name": "main", "image": "train", "resources": {"claims": [{"name": "gpu"}]}}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": name}],
        },
    }
    return yaml.safe_dump_all([template, pod])


def _wait_for(here: Cluster, pod: str, namespace: str) -> None:
    here.wait(
        f"pod/{pod}",
        lambda found: found.get("status", {}).get("phase") == "Running",
        namespace=namespace,
        timeout=PATIENCE,
    )


def _groups(page: Page) -> int:
    return int(page.script("return document.querySelector('.map-canvas').heatMap.model.groups.length"))


def _way_in(here: Cluster) -> tuple[str, str]:
    """Where the server is, and the admin's token."""
    found = yaml.safe_load(Path(here.kubeconfig).read_text())
    return found["clusters"][0]["cluster"]["server"], found["users"][0]["user"]["token"]


def _namespace(name: str) -> str:
    return yaml.safe_dump({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


@contextlib.contextmanager
def _logged_in(page: Page, token: str, namespace: str = "") -> Iterator[Page]:
    page.open(f"{page.url}/dashboard/")
    page.sees("Log in to dray")
    assert page.faults() == []
    page.type("#token", token)
    if namespace:
        page.type("#namespace", namespace)
    page.press("Log in")
    eventually(lambda: "Log in to dray" not in page.text(), "nobody was let in")
    yield page


@pytest.fixture(scope="module")
def one_browser() -> Iterator[Page]:
    with browser() as page:
        yield page


def test_the_link_of_dray_up_leads_to_a_live_map(tmp_path: Path, one_browser: Page) -> None:
    directory = tmp_path / "up"
    words = ("up", "--dir", directory, "--port", "0", "--nodes", "4", "--profile", "gpu-8", "--max-evictions", "1")
    with DrayProcess(*words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            assert process.stdout is not None
            said = ""
            while (found := re.search(r"(https://\S+?)/dashboard/#\S+", said)) is None:
                line = process.stdout.readline()
                assert line, said
                said += line
            page = one_browser.turn_to(found[1])
            page.open(found[0])
            page.sees("32", "of 32 devices on 4 nodes", "kubernetes-admin")
            assert "code=" not in page.script("return location.href")
            page.click_device(f"{CLASS}/node-1/gpu-3", "node-1")
            page.sees("gpu-3", "Nobody holds it.", "H100")
            _means_it(page, directory / "kubeconfig")
            _means_it_of_nodes(page, directory / "kubeconfig")
            page.press("Log out")
            page.sees("Log in to dray")
            page.open(found[0])
            page.sees("this link was used already")
            assert [one for one in page.complaints() if "401" not in one] == []
        finally:
            process.terminate()
            process.wait(PATIENCE)


def test_reports_are_readable_by_everybody_and_ask_for_nothing(tmp_path: Path, one_browser: Page) -> None:
    cluster_files, change = (
        ["-f", str(ROOT / "examples" / "cluster")],
        ROOT / "examples" / "what-if" / "retire-node-1.yaml",
    )
    reports = {
        "fleet": [*cluster_files, "--by", "node"],
        "what-if": [*cluster_files, "--apply", str(change)],
        "scale-up": [*cluster_files, "-f", str(ROOT / "examples" / "scale-up")],
    }
    page = one_browser.turn_to("")
    for name, options in reports.items():
        file = tmp_path / f"{name}.html"
        done = CliRunner().invoke(app, ["report", name, *options, "-o", str(file), "--now", "2026-06-01T12:00:00Z"])
        assert done.exit_code == 0, done.output
        page.open(file.as_uri())
        page.sees("dray", "2026-06-01T12:00:00Z")
        assert page.script("return document.querySelectorAll('svg').length") >= 1
        assert page.script("return getComputedStyle(document.body).maxWidth") != "none", "its style is not allowed"
        assert page.script("return performance.getEntriesByType('resource').length") == 0
        assert page.faults() == []
        if name == "what-if":
            _picture(page, "report-what-if", 640)
    assert page.complaints() == []
    if os.environ.get("DRAY_PICTURES"):
        map_file = PICTURES / "fleet-map.png"
        CliRunner().invoke(app, ["report", "fleet", *cluster_files, "-o", str(map_file)])


def _means_it(page: Page, kubeconfig: Path) -> None:
    """More pods than the guard lets go: a number to type, and a rule that is held until somebody confirms it."""
    documents = _namespace("ml") + "---\n" + "---\n".join(_workload(f"pair-{number}", 4) for number in (1, 2))
    kubectl = ["kubectl", "--kubeconfig", str(kubeconfig)]
    subprocess.run([*kubectl, "apply", "-f", "-"], input=documents, text=True, check=True, timeout=PATIENCE)
    waiting = [*kubectl, "wait", "-n", "ml", "--for=condition=Ready", "pod", "--all", KUBECTL_PATIENCE]
    subprocess.run(waiting, check=True, timeout=2 * PATIENCE)
    node = subprocess.check_output([*kubectl, "get", "pod", "pair-1", "-n", "ml", "-o", "jsonpath={.spec.nodeName}"])
    page.open(f"#/service?node={node.decode()}")
    page.sees(
        "2 pods would leave 8 devices",
        "Guard: 2 of 2 pods would leave; 1 pod may without being confirmed (limit 1).",
        "Type 8 to go on",
    )
    page.type("#typed", "8")
    page.press("Apply to 8 devices")
    page.sees("Held:")
    assert page.faults() == [], "with buttons in the table"
    gone = [*kubectl, "get", "pods", "-n", "ml", "-o", "name"]
    assert subprocess.check_output(gone).count(b"pair-") == 2
    page.press("Confirm")
    eventually(lambda: b"pair-" not in subprocess.check_output(gone), "the pods stay")
    page.press("Put back")
    page.sees("No rule taints a device.")


def _means_it_of_nodes(page: Page, kubeconfig: Path) -> None:
    """Pods that have to leave nodes are on the same page, and so is whether everything was stopped."""
    kubectl = ["kubectl", "--kubeconfig", str(kubeconfig)]
    documents = "---\n".join(_workload(f"more-{number}", 4) for number in (1, 2))
    subprocess.run([*kubectl, "apply", "-f", "-"], input=documents, text=True, check=True, timeout=PATIENCE)
    waiting = [*kubectl, "wait", "-n", "ml", "--for=condition=Ready", "pod", "--all", KUBECTL_PATIENCE]
    subprocess.run(waiting, check=True, timeout=2 * PATIENCE)
    stop = ["annotate", "--overwrite", "namespace", "kube-system"]
    subprocess.run([*kubectl, *stop, "dray.dev/stop-evictions=true"], check=True, timeout=PATIENCE)
    subprocess.run([*kubectl, "taint", "nodes", "--all", "broken=yes:NoExecute"], check=True, timeout=PATIENCE)
    page.sees(
        "Nodes that pods have to leave", "broken=yes:NoExecute", "Held: taint broken:", "All evictions are stopped:"
    )
    assert page.faults() == []
    page.press("Stop")
    eventually(lambda: "Held: taint broken:" not in page.text(), "the node that was cancelled is there still")
    taints = [*kubectl, "get", "nodes", "-o", "jsonpath={.items[*].spec.taints[*].effect}"]
    assert b"NoSchedule" in subprocess.check_output(taints)


def test_an_admin_looks_after_the_fleet(one_browser: Page) -> None:
    with cluster(nodes=4, profile="gpu-8") as here:
        page = one_browser.turn_to(_way_in(here)[0])
        here.apply(_namespace("ml"))
        for document in yaml.safe_load_all(HUB):
            here.apply(document)
        for number, count in enumerate((8, 3, 2), start=1):
            here.apply(_workload(f"train-{number}", count))
            _wait_for(here, f"train-{number}", "ml")
        with _logged_in(page, _way_in(here)[1]):
            _looks_at_the_map(here, page)
            _takes_a_device_out_and_puts_it_back(here, page)
            _asks_why_a_pod_waits(here, page)
            page.open("#/timeline")
            page.sees("Utilisation", "Fragmentation", "allocation", "ml/train-1")
            _picture(page, "timeline")
            page.open("#/placement")
            page.sees("paris", "rome", "not accepted", "selected 0 of 2 wanted clusters")
            page.sees("taint maintenance:NoSelect is not tolerated", "belongs to no ManagedClusterSet")
            _picture(page, "placement", 560)
            _is_usable_without_a_mouse(page)
            _is_usable_by_everybody(here, page)
            _comes_back_after_the_session_has_ended(page, _way_in(here)[1])
        assert [one for one in page.complaints() if "422" not in one and "401" not in one] == []


def _looks_at_the_map(here: Cluster, page: Page) -> None:
    page.sees("13", "held", "19", "free")
    page.choose("#by", "attribute:gpu.example.com/numa")
    eventually(lambda: _groups(page) == 2)
    assert "by=attribute" in page.script("return location.hash")
    page.type("#cel", 'device.attributes["gpu.example.com"].index < 2')
    page.press("Filter")
    page.sees("8 devices match the filter.")
    page.type("#cel", '["index", "wheels"].exists(name, device.attributes["gpu.example.com"][name] < 2)')
    page.press("Filter")
    page.sees("8 devices match the filter.", "fails on 24 devices, as it would in a claim: no such key: wheels")
    page.type("#cel", "device.nonsense")
    page.press("Filter")
    page.sees("undefined field")
    page.type("#cel", "")
    page.press("Filter")
    page.choose("#by", "none")
    held = eventually(lambda: _held_device(here), "nothing is held")
    eventually(lambda: page.state_of(*held) & HELD, "the map does not show what is held")
    _picture(page, "fleet", 300)
    page.press("As a table")
    page.sees("Devices 32", "gpu-7")
    page.press("As a table")
    page.click_device(*held)
    page.sees("Held by", "used by ml/train-1", "driverVersion", "History of the last hour", "allocation")
    _picture(page, "device")
    page.press("ml/train-1")
    page.sees("is on a node", "What it has", "8 × gpu.example.com")
    page.press(held[0].removeprefix(f"{CLASS}/"))
    page.sees("Held by")
    page.open("#/fleet")


def _held_device(here: Cluster) -> tuple[str, str] | None:
    claims = [one for one in here.list("resourceclaims", "ml") if one["metadata"]["name"].startswith("train-1")]
    for claim in claims:
        for one in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ()):
            return f"{one['driver']}/{one['pool']}/{one['device']}", one["pool"]
    return None


def _takes_a_device_out_and_puts_it_back(here: Cluster, page: Page) -> None:
    device, node = _held_device(here) or ("", "")
    page.sees("of 32 devices")
    page.click_device(device, node, with_shift=True)
    page.sees("1 device chosen")
    page.press("Take out of service …")
    page.sees("1 pod would leave 1 device", "ml/train-1", "Apply to 1 device")
    _picture(page, "out-of-service")
    assert here.list("devicetaintrules") == []
    page.press("Apply to 1 device")
    page.sees("Follow it below.", "maintenance:NoExecute")
    eventually(lambda: _is_gone(here, "train-1"), "the pod stays")
    page.open("#/fleet")
    eventually(lambda: page.state_of(device, node) & TAINTED, "the map does not show the taint")
    page.open("#/service")
    page.press("Stop")
    page.sees("maintenance:NoSchedule")
    page.press("Put back")
    page.sees("No rule taints a device.")
    assert here.list("devicetaintrules") == []
    page.open("#/service?class=gpu.example.com")
    page.sees("Type 32 to go on", "Apply to 32 devices")
    assert not page.find(".danger").is_enabled()
    page.type("#typed", "32")
    assert page.find(".danger").is_enabled()


def _is_gone(here: Cluster, name: str) -> bool:
    return not any(pod["metadata"]["name"] == name for pod in here.list("pods", "ml"))


def _sees_a_share_of_each_namespace(page: Page) -> None:
    """Who has thousands of rows hides nobody who has few (issue 14)."""
    names = [*(f"crowd/p-{number:04}" for number in range(1000)), "ml/a", "ml/b", "zoo/c"]
    shown = page.script(SHARED, [{"name": name} for name in names])
    assert shown == [*names[:7], "ml/a", "ml/b", "zoo/c"]


def _asks_why_a_pod_waits(here: Cluster, page: Page) -> None:
    for number in (4, 5, 6, 7):
        here.apply(_workload(f"big-{number}", 6))
    page.open("#/waiting")
    page.sees("Pending pods", "cannot allocate all claims")
    waits = eventually(lambda: _waiting_pod(here))
    eventually(lambda: waits in page.text())
    _sees_a_share_of_each_namespace(page)
    page.press(f"ml/{waits}")
    page.sees("is pending", "6 devices", "What would help", "It would fit on", "closest")
    assert page.script("return document.querySelectorAll('.cell.check-inUse').length") > 0
    saved = page.script(CAUGHT)
    assert saved[0].startswith("Node,Devices,Match,Free,Short by,Blocked by\r\nnode-")
    assert len(json.loads(saved[1])) == 4
    _picture(page, "explanation")


def _waiting_pod(here: Cluster) -> str:
    pods = here.list("pods", "ml")
    return next((one["metadata"]["name"] for one in pods if not one["spec"].get("nodeName")), "")


def _is_usable_without_a_mouse(page: Page) -> None:
    page.open("#/fleet")
    page.sees("of 32 devices")
    eventually(lambda: page.script("return document.querySelector('main').dataset.ready") == "yes")
    canvas = page.find(".map-canvas")
    for key in ("\ue014", "\ue014", "\ue015"):  # right, right, down
        canvas.send_keys(key)
    said = page.script("return document.querySelector('#announce').textContent")
    assert re.fullmatch(r"gpu-\d on node-2: .+", said)
    canvas.send_keys("\ue007")  # Enter
    page.sees("Attributes and capacities")
    page.script("document.querySelector('.theme').click()")
    assert page.script("return document.documentElement.dataset.theme") == "dark"
    page.open("#/fleet")
    page.sees("of 32 devices")
    _picture(page, "fleet-dark", 300)


def _is_usable_by_everybody(here: Cluster, page: Page) -> None:
    """As far as axe-core can tell, in both colours: every view, with something in it."""
    views = {
        "fleet": "of 32 devices",
        f"device?id={CLASS}/node-1/gpu-0&node=node-1": "Attributes and capacities",
        "device?id=none": "there is no device none",
        "waiting": "Pending pods",
        f"pod?name=ml/{_waiting_pod(here)}": "Short by",
        "claim?name=ml/none": "none",
        "service?node=node-1": "Apply to 8 devices",
        "timeline": "Fragmentation",
        "placement": "Clusters and why",
    }
    for view, told in views.items():
        page.open(f"#/{view}")
        page.sees(told)
        for theme in ("light", "dark"):
            page.script("document.documentElement.dataset.theme = arguments[0]", theme)
            assert page.faults() == [], f"{view} in {theme} colours"


def _comes_back_after_the_session_has_ended(page: Page, token: str) -> None:
    page.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
    page.open("#/timeline?kind=allocation")
    page.sees("Your session has ended.")
    page.type("#token", token)
    page.press("Log in")
    page.sees("The last hour")
    assert page.script("return location.hash") == "#/timeline?kind=allocation"


def test_a_partition_is_shown_with_what_it_is_a_part_of(one_browser: Page) -> None:
    with cluster(nodes=1, profile="mig") as here:
        page = one_browser.turn_to(_way_in(here)[0])
        with _logged_in(page, _way_in(here)[1]):
            page.sees("of 40 devices")
            page.open(f"#/device?id={CLASS}/node-1/gpu-0-small-1&node=node-1")
            page.sees("draws 10Gi of 80Gi", "gpu-0-half-0")
            parts = page.script("return [...document.querySelectorAll('.tree .tree li')].map((one) => one.innerText)")
            assert parts[:2] == ["gpu-0-half-0 free", "gpu-0-half-1 free"]
            assert len(parts) == 9
            assert page.find(".tree [aria-current]").text == "gpu-0-small-1"
            assert page.faults() == []
            page.press("gpu-0-half-0")
            page.sees("draws 40Gi of 80Gi")
        assert page.complaints() == []


def test_where_nothing_is_it_is_said_so(one_browser: Page) -> None:
    with cluster(nodes=0) as here:
        page = one_browser.turn_to(_way_in(here)[0])
        views = {
            "fleet": "There are no devices: no driver has published any",
            "fleet?as=table": "No device matches.",
            "waiting": "No pod waits",
            "service": "No rule taints a device.",
            "timeline": "Nothing happened in the last hour.",
            "placement": "No cluster has joined.",
        }
        with _logged_in(page, _way_in(here)[1]):
            for view, told in views.items():
                page.open(f"#/{view}")
                page.sees(told)
                assert page.faults() == [], view
        assert page.complaints() == []


HUB = """
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata: {name: gpu}
spec: {clusterSelector: {selectorType: ExclusiveClusterSetLabel}}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: gpu, namespace: ml}
spec: {clusterSet: gpu}
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: paris, labels: {cluster.open-cluster-management.io/clusterset: gpu}}
spec: {hubAcceptsClient: true, taints: [{key: maintenance, effect: NoSelect}]}
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: rome}
spec: {hubAcceptsClient: false}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: train, namespace: ml}
spec: {numberOfClusters: 2, clusterSets: [gpu]}
"""
EVIL = "<img src=x onerror='window.hacked=1'>"


def test_what_others_write_is_text_and_never_markup(one_browser: Page) -> None:
    device = {
        "name": "gpu-0",
        "attributes": {"model": {"string": EVIL}, "serial": {"string": '"><script>hacked=1</script>'}},
    }
    slice_ = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "evil"},
        "spec": {
            "driver": "evil.example.com",
            "nodeName": "node-1",
            "pool": {"name": "evil", "generation": 1, "resourceSliceCount": 1},
            "devices": [device],
        },
    }
    with cluster(nodes=1, profile="gpu-8") as here:
        page = one_browser.turn_to(_way_in(here)[0], PHONE)
        here.apply(slice_)
        here.apply(_namespace("ml"))
        here.apply(_workload("huge", 9))
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "evil", "namespace": "ml"},
            "involvedObject": {"kind": "Pod", "namespace": "ml", "name": EVIL},
            "reason": "Evicted",
            "message": EVIL,
            "lastTimestamp": "2999-01-01T00:00:00Z",
        }
        here.apply(event)
        with _logged_in(page, _way_in(here)[1]):
            page.sees("of 9 devices")
            page.choose("#by", "attribute:evil.example.com/model")
            eventually(
                lambda: page.script("return document.querySelector('.map-canvas').heatMap.model.groups.length") == 2
            )
            page.click_device("evil.example.com/evil/gpu-0", "node-1")
            page.sees(EVIL, '"><script>hacked=1</script>')
            page.open("#/timeline")
            page.sees(EVIL)
            views = ("device?id=", "pod?name=ml/", f"fleet?by={EVIL}&cel=", "service?node=")
            for address in [f"#/{view}{EVIL}" for view in views]:
                page.open(address)
                page.sees("<img")
            page.open("#/waiting")
            page.sees("ml/huge")
            width = "return document.documentElement.scrollWidth <= window.innerWidth"
            for address in ("#/fleet", "#/waiting", "#/service", "#/timeline"):
                page.open(address)
                page.sees("dray")
                assert page.script(width), f"{address} is wider than a phone"
            _picture(page, "phone", 844)
            _has_its_buttons_side_by_side(page)
        assert page.script("return window.hacked") is None
        assert page.script("return document.querySelectorAll('main img, main script').length") == 0
        assert [one for one in page.complaints() if "422" not in one and "404" not in one] == []


def _has_its_buttons_side_by_side(page: Page) -> None:
    """However wide the window is: the header never takes a second line for one of them."""
    buttons = "return [...document.querySelectorAll('#top button')].map(one => one.getBoundingClientRect().top)"
    seen = "return document.querySelector('#top').lastElementChild.getBoundingClientRect().right <= window.innerWidth"
    for width in (320, 640, 701, 760, 820, 900, 1000, 1280):
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        brand = page.script("return document.querySelector('#top .brand').getBoundingClientRect().top")
        tops = page.script(buttons)
        assert len(tops) == 2
        assert len(set(tops)) == 1, f"{width} px: {tops}"
        assert abs(tops[0] - brand) < 20, f"{width} px: not beside the name"
        assert page.script(seen), f"{width} px: cut off"


def test_somebody_with_few_rights_sees_those_and_is_told_the_rest(one_browser: Page) -> None:
    account = yaml.safe_load_all(f"""
{_namespace("team")}
---
{_namespace("other")}
---
apiVersion: v1
kind: ServiceAccount
metadata: {{name: looker, namespace: team}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: devices}}
rules:
- {{apiGroups: [resource.k8s.io], resources: [resourceslices, deviceclasses], verbs: [list, watch]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: looker}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: devices}}
subjects: [{{kind: ServiceAccount, name: looker, namespace: team}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: looker, namespace: team}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}}
subjects: [{{kind: ServiceAccount, name: looker, namespace: team}}]
""")
    with cluster(nodes=2, profile="gpu-8") as here:
        page = one_browser.turn_to(_way_in(here)[0])
        for document in account:
            here.apply(document)
        here.apply(_workload("secret-project", 8, "other"))
        _wait_for(here, "secret-project", "other")
        here.apply(_workload("own", 2, "team"))
        _wait_for(here, "own", "team")
        token = _token(here)
        with _logged_in(page, token, "team"):
            page.sees("you may not list and watch nodes", "of namespace team only", "not held by what you see")
            page.sees("of 16 devices")
            page.open("#/waiting")
            page.sees("team/own", "running")
            assert "secret-project" not in page.text()
            page.open("#/service?node=node-1")
            page.sees("writing rules is not among your rights")
            page.open("#/timeline")
            page.sees("team/own")
            assert "secret-project" not in page.text()
        assert "secret-project" not in page.text()


def _token(here: Cluster) -> str:
    command = ["kubectl", "--kubeconfig", str(here.kubeconfig), "create", "token", "looker", "-n", "team"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout.strip()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
