"""The stories of KEP-4381, told end to end with stock kubectl on a `dray up` with simulated nodes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import builders
from live_server import Kubectl, LiveServer, running_server
from patience import KUBECTL_PATIENCE, eventually

EXAMPLES = Path(__file__).parents[2] / "examples" / "devices"
V1 = "resource.k8s.io/v1"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """Two machines without devices of their own; each story brings its driver."""
    directory = tmp_path_factory.mktemp("stories") / "state"
    with running_server(directory, "--nodes", "2", "--profile", "cpu-only", program="up") as server:
        yield server


class Story:
    """A namespace, and kubectl in it."""

    def __init__(self, server: LiveServer, home: Path) -> None:
        self.namespace = server.new_namespace()
        self._kubectl = Kubectl(server, home)

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        return self._kubectl("-n", self.namespace, *arguments, stdin=stdin)

    def refused(self, *arguments: str, stdin: str = "") -> str:
        """What kubectl says when it is refused."""
        done = self._kubectl.run("-n", self.namespace, *arguments, stdin=stdin)
        assert done.returncode != 0, done.stdout
        return done.stderr

    def apply(self, *objects: dict[str, Any]) -> None:
        self.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))

    def wait(self, what: str, condition: str) -> None:
        self.kubectl("wait", what, f"--for={condition}", KUBECTL_PATIENCE)

    def get(self, what: str) -> Any:
        return json.loads(self.kubectl("get", what, "-o", "json"))

    def claims(self) -> list[Any]:
        items: list[Any] = self.get("resourceclaims")["items"]
        return items


@pytest.fixture
def story(server: LiveServer, tmp_path: Path) -> Story:
    return Story(server, tmp_path)


def slice_of(driver: str, pool: str, *devices: str, memory: str = "16Gi", **where: Any) -> dict[str, Any]:
    entries = [builders.device(name, memory=memory) for name in devices]
    place: dict[str, Any] = where or {"nodeName": pool}
    return builders.resource_slice(f"{pool}-{driver}", *entries, driver=driver, pool=pool, **place)


def class_of(driver: str) -> dict[str, Any]:
    spec = {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]}
    return {"apiVersion": V1, "kind": "DeviceClass", "metadata": {"name": driver}, "spec": spec}


def claim(driver: str, name: str, kind: str = "ResourceClaim") -> dict[str, Any]:
    make = builders.claim if kind == "ResourceClaim" else builders.claim_template
    return make(name, builders.request("device", deviceClassName=driver), namespace="")


def pod(name: str, node: str = "", **source: str) -> dict[str, Any]:
    containers = [builders.container(resources={"claims": [{"name": "device"}]})]
    where: dict[str, Any] = {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
    return builders.pod(name, namespace="", containers=containers, claims=[{"name": "device", **source}], **where)


@pytest.mark.req("4381-230", "4381-231", "4381-235", "4381-246", "4381-262", "4381-265")
def test_two_containers_share_a_part_of_a_gpu_that_the_admin_configures(story: Story) -> None:
    """The seed's manifests, in v1beta1; the memory of the device is a capacity."""
    driver = "gpu.acme.example.com"
    story.apply(
        slice_of(driver, "node-1", "just-2gi", memory="2Gi"),
        slice_of(driver, "node-2", "large", memory="16Gi"),
    )
    story.kubectl("apply", "-f", str(EXAMPLES / "device-class.yaml"), "-f", str(EXAMPLES / "partial-gpu.yaml"))
    story.wait("pod/device-consumer", "condition=Ready")
    consumer = story.get("pod/device-consumer")
    used = [container["resources"]["claims"] for container in consumer["spec"]["containers"]]
    assert used == [[{"name": "gpu"}]] * 2
    [made] = story.claims()
    assert made["metadata"]["name"] == consumer["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    devices = made["status"]["allocation"]["devices"]
    assert [(one["driver"], one["device"]) for one in devices["results"]] == [(driver, "large")]
    [config] = devices["config"]
    assert config["source"] == "FromClass"
    parameters = config["opaque"]["parameters"]
    assert parameters["kind"] == "GPUInit"
    assert parameters["initCommand"] == ["/usr/local/bin/acme-gpu-init", "--cluster", "my-cluster"]
    assert [one["name"] for one in made["status"]["reservedFor"]] == ["device-consumer"]
    # The allocation lives as long as the pod.
    story.kubectl("delete", "pod", "device-consumer", KUBECTL_PATIENCE)
    story.wait(f"resourceclaim/{made['metadata']['name']}", "delete")
    assert story.claims() == []


@pytest.mark.req("4381-234", "4381-252")
def test_many_pods_share_one_claim_and_go_where_its_device_is(story: Story) -> None:
    driver = "shared.example.com"
    story.apply(class_of(driver), slice_of(driver, "node-1", "gpu-0"), claim(driver, "shared"))
    names = [f"user-{number}" for number in range(33)]
    story.apply(*(pod(name, resourceClaimName="shared") for name in names))
    eventually(lambda: {one["status"]["phase"] for one in story.get("pods")["items"]} == {"Running"})
    assert {one["spec"]["nodeName"] for one in story.get("pods")["items"]} == {"node-1"}
    [shared] = story.claims()
    assert sorted(one["name"] for one in shared["status"]["reservedFor"]) == sorted(names)
    assert len(shared["status"]["allocation"]["devices"]["results"]) == 1
    # Who must be elsewhere cannot have it.
    story.apply(pod("elsewhere", node="node-2", resourceClaimName="shared"))
    story.wait("pod/elsewhere", "condition=PodScheduled=False")
    [refusal] = story.get("pod/elsewhere")["status"]["conditions"]
    assert "resourceclaim not available on the node" in refusal["message"]
    # The claim outlives its users, and the device is free once they are gone.
    story.kubectl("delete", "pods", "--all", "--wait=false")
    eventually(lambda: not story.get("resourceclaim/shared").get("status"))


@pytest.mark.req("4381-234")
def test_a_device_on_the_network_is_used_from_any_node(story: Story) -> None:
    driver = "fpga.example.com"
    story.apply(
        class_of(driver),
        slice_of(driver, "shelf", "fpga-0", "fpga-1", allNodes=True),
        claim(driver, "one", "ResourceClaimTemplate"),
        claim(driver, "common"),
    )
    story.apply(
        pod("own", node="node-1", resourceClaimTemplateName="one"),
        pod("left", node="node-1", resourceClaimName="common"),
        pod("right", node="node-2", resourceClaimName="common"),
    )
    story.kubectl("wait", "pod", "--all", "--for=condition=Ready", KUBECTL_PATIENCE)
    held = {
        one["metadata"]["name"]: one["status"]["allocation"]["devices"]["results"][0]["device"]
        for one in story.claims()
    }
    assert len(held) == 2
    assert set(held.values()) == {"fpga-0", "fpga-1"}
    common = story.get("resourceclaim/common")["status"]
    assert "nodeSelector" not in common["allocation"]
    assert sorted(one["name"] for one in common["reservedFor"]) == ["left", "right"]


@pytest.mark.req("4381-210", "4381-217", "4381-221", "4381-228", "4381-239", "4381-203")
def test_a_driver_that_comes_late_and_goes_again(story: Story) -> None:
    driver = "late.example.com"
    story.apply(class_of(driver), claim(driver, "one", "ResourceClaimTemplate"))
    story.apply(pod("early", resourceClaimTemplateName="one"))
    story.wait("pod/early", "condition=PodScheduled=False")
    described = story.kubectl("describe", "pod", "early")
    assert "FailedScheduling" in described
    assert "cannot allocate all claims" in described
    story.apply(slice_of(driver, "node-2", "gpu-0", "gpu-1"))
    story.wait("pod/early", "condition=Ready")
    [made] = story.claims()
    described = story.kubectl("describe", "resourceclaim", made["metadata"]["name"])
    assert "gpu-0" in described
    assert "early" in described
    # Without its driver, what runs goes on, and nothing more is scheduled.
    story.kubectl("delete", "resourceslice", f"node-2-{driver}")
    story.apply(pod("late", resourceClaimTemplateName="one"))
    story.wait("pod/late", "condition=PodScheduled=False")
    assert re.search(r'Request "device": 0 of \d+ devices? match', story.kubectl("describe", "pod", "late"))
    assert story.get("pod/early")["status"]["phase"] == "Running"


@pytest.mark.req("4381-239")
def test_a_pod_that_gets_only_some_of_its_devices_holds_none(story: Story) -> None:
    here, missing = "here.example.com", "missing-half.example.com"
    story.apply(class_of(here), class_of(missing), slice_of(here, "node-1", "gpu-0"))
    story.apply(claim(here, "one"), claim(missing, "other"), claim(here, "small"))
    greedy = pod("greedy", resourceClaimName="one")
    greedy["spec"]["resourceClaims"].append({"name": "other", "resourceClaimName": "other"})
    story.apply(greedy)
    story.wait("pod/greedy", "condition=PodScheduled=False")
    story.apply(pod("modest", resourceClaimName="small"))
    story.wait("pod/modest", "condition=Ready")  # the one device there is was not kept for the greedy pod
    story.kubectl("delete", "pod", "modest")
    story.apply(slice_of(missing, "node-1", "nic-0"))
    story.wait("pod/greedy", "condition=Ready")
    held = {each["metadata"]["name"] for each in story.claims() if each.get("status", {}).get("allocation")}
    assert held == {"one", "other"}


@pytest.mark.req("4381-218", "4381-220", "4381-221")
def test_what_the_cluster_says_when_something_is_missing(story: Story) -> None:
    driver = "missing.example.com"
    story.apply(class_of(driver), slice_of(driver, "node-1", "gpu-0"))
    story.apply(pod("waiting", resourceClaimTemplateName="one"))
    story.wait("pod/waiting", "condition=PodScheduled=False")
    assert "ResourceClaim not created yet" in story.kubectl("describe", "pod", "waiting")
    story.apply(claim(driver, "one", "ResourceClaimTemplate"))
    story.wait("pod/waiting", "condition=Ready")
    said = story.refused("create", "-f", "-", stdin=yaml.safe_dump(pod("without-source")))
    assert "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`" in said or (
        "must specify one of: resourceClaimName, resourceClaimTemplateName" in said
    )


@pytest.mark.req("4381-233", "4381-239")
def test_a_pod_that_was_put_on_a_node_by_hand_does_not_start_without_its_devices(story: Story) -> None:
    """Whoever sets the node must allocate first; the node refuses, and says why."""
    driver = "preset.example.com"
    story.apply(class_of(driver), slice_of(driver, "node-1", "gpu-0"), claim(driver, "one"))
    preset = pod("preset", resourceClaimName="one")
    preset["spec"]["nodeName"] = "node-1"
    story.apply(preset)
    eventually(lambda: "FailedPrepareDynamicResources" in story.kubectl("describe", "pod", "preset"))
    assert story.get("pod/preset")["status"]["phase"] == "Pending"
    # Another pod on the same node, scheduled as it should be, brings the allocation.
    story.apply(pod("scheduled", resourceClaimName="one"))
    story.wait("pod/scheduled", "condition=Ready")
    story.wait("pod/preset", "condition=Ready")
    [shared] = story.claims()
    assert sorted(one["name"] for one in shared["status"]["reservedFor"]) == ["preset", "scheduled"]
