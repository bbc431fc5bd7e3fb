"""Extended resources that are devices: which requests their claim has, and on which nodes a pod gets what."""

from typing import Any

import pytest
from msgspec.structs import replace

from dray.allocator import Options
from dray.api.extended_resources import ClassesByResource
from dray.api.generated.core import Pod
from dray.api.resource import DeviceClass
from dray.scheduling.cause import Cause
from dray.scheduling.decide import Chosen, decide
from dray.scheduling.extended_claim import claim_name, make_claim
from dray.scheduling.pod_info import read_pod
from dray.scheduling.preemption import find_victims
from dray.scheduling.refusal import Preempts, Refused
from scheduler_objects import choose, chosen_node, cluster, node, pod, refusal, resource_slice, told, typed

GPU = "example.com/gpu"
NIC = "deviceclass.resource.kubernetes.io/nic"


def device_class(name: str = "gpu", resource: str | None = GPU, created: str = "2026-01-01T00:00:00Z") -> DeviceClass:
    spec = {"extendedResourceName": resource} if resource else {}
    meta = {"name": name, "creationTimestamp": created}
    made: DeviceClass = typed(
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": meta, "spec": spec}
    )
    return made


def container(name: str, restart: str | None = None, **amounts: Any) -> dict[str, Any]:
    resources = {{"gpu": GPU, "nic": NIC}.get(key, key): str(amount) for key, amount in amounts.items()}
    made = {"name": name, "image": "i", "resources": {"requests": resources, "limits": resources}}
    return {**made, "restartPolicy": restart} if restart else made


def asking(name: str = "p", count: int = 1, **spec: Any) -> Pod:
    return pod(name, containers=[container("c", gpu=count)], **spec)


def requests(init: list[dict[str, Any]], containers: list[dict[str, Any]]) -> tuple[dict[str, int], set[str]]:
    """Devices by request, and which container uses which for what."""
    wanted = pod(initContainers=init, containers=containers)
    made = make_claim(wanted, "x", {GPU: "gpu", NIC: "nic"})
    counts = {one.name: one.exactly.count for one in made.claim.spec.devices.requests if one.exactly is not None}
    names = {GPU: "gpu", NIC: "nic"}
    return counts, {f"{one.container_name} {names[one.resource_name]} {one.request_name}" for one in made.mappings}


def test_every_container_has_a_request_for_every_resource() -> None:
    counts, uses = requests([], [container("a", cpu=1, gpu=2, nic=1), container("b"), container("c", gpu=1)])
    # Named after the place of the container, and that of the resource among all of its requests by name.
    assert counts == {"container-0-request-1": 1, "container-0-request-2": 2, "container-2-request-0": 1}
    assert uses == {"a nic container-0-request-1", "a gpu container-0-request-2", "c gpu container-2-request-0"}


def test_init_containers_use_what_starts_after_them_and_share_the_rest() -> None:
    init = [container("i", gpu=1), container("s", "Always", gpu=1), container("j", gpu=4), container("k", gpu=3)]
    counts, uses = requests(init, [container("a", gpu=2)])
    # i: the sidecar's. j and k: the container's two, and two more, of which k needs one.
    assert counts == {"container-1-request-0": 1, "container-2-request-0": 2, "container-4-request-0": 2}
    assert uses == {
        "s gpu container-1-request-0",
        "a gpu container-4-request-0",
        "i gpu container-1-request-0",
        "j gpu container-4-request-0",
        "j gpu container-2-request-0",
        "k gpu container-4-request-0",
        "k gpu container-2-request-0",
    }


def test_the_newest_class_stands_for_a_name() -> None:
    classes = ClassesByResource()
    classes.set("b", device_class("b"))
    classes.set("a", device_class("a"))
    assert classes.get(GPU) == device_class("a")
    newer = device_class("c", created="2026-02-01T00:00:00Z")
    classes.set("c", newer)
    assert classes.get(GPU) is newer
    classes.set("c", replace(newer, spec=replace(newer.spec, extended_resource_name="example.com/other")))
    assert classes.get(GPU) == device_class("a")
    assert classes.get("deviceclass.resource.kubernetes.io/c") is not None
    classes.set("c", None)
    assert classes.get("example.com/other") is None
    assert classes.get("deviceclass.resource.kubernetes.io/c") is None


@pytest.mark.parametrize("resource", [GPU, "deviceclass.resource.kubernetes.io/gpu"])
def test_a_pod_gets_devices_through_a_claim_that_is_made_for_it(resource: str) -> None:
    here = cluster(node("a"), node("b"), device_class(), resource_slice("b", "gpu-0", "gpu-1"))
    wanted = pod(containers=[container("c", None, **{resource: 2})])
    answer = choose(here, wanted)
    assert isinstance(answer, Chosen)
    assert answer.node == "b"
    [claim] = answer.claims
    assert claim.metadata.name == claim_name(wanted)
    assert claim.metadata.generate_name == "p-extended-resources-"
    assert claim.metadata.annotations == {"resource.kubernetes.io/extended-resource-claim": "true"}
    [owner] = claim.metadata.owner_references
    assert (owner.kind, owner.uid, owner.controller) == ("Pod", "uid-p", True)
    [(_, allocation)] = answer.allocations.values()
    assert {one.device for one in allocation.devices.results} == {"gpu-0", "gpu-1"}
    assert answer.extended is not None
    assert answer.extended.resource_claim_name == claim.metadata.name
    [mapping] = answer.extended.request_mappings
    assert (mapping.container_name, mapping.resource_name) == ("c", resource)


def test_a_device_plugin_comes_first_where_a_node_has_one() -> None:
    here = cluster(node("a", plugins={GPU: "1"}), device_class(), resource_slice("a", "gpu-0"))
    answer = choose(here, asking())
    assert isinstance(answer, Chosen)
    assert (answer.node, answer.claims, answer.extended) == ("a", (), None)
    here.set_pod(asking("there", nodeName="a"), "uid-there")
    # It has run out, and devices of the node do not count instead.
    assert told(here, asking()) == "0/1 nodes are available: 1 Insufficient example.com/gpu."
    here.set_node(node("a", plugins={GPU: "1"}), node("a"))
    assert chosen_node(here, asking()) == "a"


def test_some_from_a_device_plugin_and_some_as_devices() -> None:
    here = cluster(
        node("a", plugins={GPU: "2"}), device_class(), device_class("nic", None), resource_slice("a", "nic-0")
    )
    answer = choose(here, pod(containers=[container("c", gpu=2, nic=1)]))
    assert isinstance(answer, Chosen)
    [claim] = answer.claims
    [request] = claim.spec.devices.requests
    assert request.exactly is not None
    assert (request.exactly.device_class_name, request.exactly.count) == ("nic", 1)


def test_what_is_lacking_says_what_would_help() -> None:
    nobody = refusal(cluster(node("a"), resource_slice("a", "gpu-0")), asking())
    assert Cause.CLASS in nobody.causes
    assert Cause.DEVICES not in nobody.causes
    taken = cluster(node("a"), device_class(), resource_slice("a", "gpu-0"))
    refused = refusal(taken, asking(count=2))
    assert Cause.DEVICES in refused.causes
    assert [one.metadata.name for one in refused.unallocated] == [claim_name(asking())]


def test_what_is_in_flight_stays_taken_while_the_claim_is_made() -> None:
    here = cluster(node("a"), device_class(), resource_slice("a", "gpu-0"))
    first = read_pod(asking("first"))
    answer = decide(here, first, Options())
    assert isinstance(answer, Chosen)
    here.assume(first, answer.node, answer.allocations)
    [claim] = answer.claims
    made = replace(claim, metadata=replace(claim.metadata, uid="made"))
    here.set_claim(None, made)  # the news of it comes before that of its allocation
    assert isinstance(choose(here, asking("second")), Refused)
    here.take_back(first, answer.allocations)
    here.set_claim(made, None)
    assert chosen_node(here, asking("second")) == "a"


def left_behind(wanted: Pod, count: int = 1, **status: Any) -> Any:
    made = make_claim(asking(count=count), claim_name(wanted), {GPU: "gpu"}).claim
    found = replace(made, metadata=replace(made.metadata, uid="left"))
    return replace(found, status=replace(found.status, **status))


def test_a_claim_that_was_left_behind_is_used_again_if_it_fits() -> None:
    wanted = asking()
    left = left_behind(wanted)
    here = cluster(node("a"), device_class(), resource_slice("a", "gpu-0"), left)
    answer = choose(here, wanted)
    assert isinstance(answer, Chosen)
    assert answer.claims == (left,)


def test_a_claim_that_was_left_behind_and_asks_for_something_else_is_in_the_way() -> None:
    left = left_behind(asking(), count=2)
    here = cluster(node("a"), device_class(), resource_slice("a", "gpu-0"), left)
    assert refusal(here, asking()).unused_claims == (left,)
    here.set_node(node("a"), node("a", plugins={GPU: "4"}))
    assert refusal(here, asking()).unused_claims == (left,)


def test_somebody_elses_claim_of_the_name_is_left_alone() -> None:
    wanted = asking()
    foreign = replace(left_behind(wanted), metadata=replace(left_behind(wanted).metadata, owner_references=()))
    here = cluster(node("a"), device_class(), resource_slice("a", "gpu-0"), foreign)
    answer = choose(here, wanted)
    assert isinstance(answer, Chosen)
    assert [one.metadata.name for one in answer.claims] == [claim_name(wanted, 1)]


def test_a_more_important_pod_takes_devices_of_extended_resources() -> None:
    here = cluster(node("a"), device_class(), resource_slice("a", "gpu-0"))
    low = asking("low", priority=1)
    answer = choose(here, low)
    assert isinstance(answer, Chosen)
    [(claim, allocation)] = answer.allocations.values()
    here.set_claim(None, replace(claim, status=replace(claim.status, allocation=allocation)))
    status = replace(low.status, extended_resource_claim_status=answer.extended)
    here.set_pod(replace(low, spec=replace(low.spec, node_name="a"), status=status), "uid-low")
    high = read_pod(asking("high", priority=2))
    refused = decide(here, high, Options())
    assert isinstance(refused, Refused)
    found = find_victims(here, high, Options(), refused).preemption
    assert isinstance(found, Preempts)
    assert [str(victim.name) for victim in found.victims] == ["ns/low"]
