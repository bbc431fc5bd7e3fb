"""Extended resources that are devices, against a twin that counts by hand: who gets what where."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from dray.allocator import Options
from dray.api.generated.core import Pod
from dray.scheduling.cluster import Cluster
from dray.scheduling.decide import Chosen, decide
from dray.scheduling.extended_claim import make_claim
from dray.scheduling.pod_info import PodInfo, read_pod, total_requests
from dray.tracker import Remove, Upsert
from scheduler_objects import node, pod, resource_slice, typed

RESOURCES = {"example.com/gpu": "gpu", "deviceclass.resource.kubernetes.io/nic": "nic"}
NODES = "ab"
ONE = 10**9

amounts = st.fixed_dictionaries({name: st.integers(0, 3) for name in RESOURCES}).map(
    lambda asked: {name: count for name, count in asked.items() if count}
)
containers = st.tuples(amounts, st.booleans())
pods = st.tuples(st.lists(containers, max_size=4), st.lists(amounts, min_size=1, max_size=2))
steps = st.one_of(
    st.tuples(st.just("node"), st.sampled_from(NODES), amounts, st.integers(0, 3), st.integers(0, 2)),
    st.tuples(st.just("class"), st.sampled_from(("gpu", "nic")), st.booleans()),
    st.tuples(st.just("pod"), pods),
    st.tuples(st.just("gone"), st.integers(0, 5)),
)


def container(name: str, asked: dict[str, int], **fields: Any) -> dict[str, Any]:
    texts = {resource: str(count) for resource, count in asked.items()}
    return {"name": name, "image": "i", "resources": {"requests": texts, "limits": texts}, **fields}


def made(name: str, wanted: Any) -> Pod:
    init, lasting = wanted
    return pod(
        name,
        initContainers=[
            container(f"i{place}", asked, **({"restartPolicy": "Always"} if sidecar else {}))
            for place, (asked, sidecar) in enumerate(init)
        ],
        containers=[container(f"c{place}", asked) for place, asked in enumerate(lasting)],
    )


def devices(resource: str, wanted: Pod) -> int:
    """How many a pod needs of a resource: what stays has its own, init containers use it before."""
    init, lasting = wanted.spec.init_containers, wanted.spec.containers
    asked = [_amount(one, resource) for one in (*init, *lasting)]
    keeps = [one.restart_policy == "Always" for one in init] + [True] * len(lasting)
    own = sum(count for count, kept in zip(asked, keeps, strict=True) if kept)
    extra = [
        asked[place] - sum(asked[later] for later in range(place, len(asked)) if keeps[later])
        for place in range(len(init))
        if not keeps[place]
    ]
    return own + max(0, *extra, 0)


def _amount(one: Any, resource: str) -> int:
    quantity = one.resources.requests.get(resource)
    return quantity.nanos // ONE if quantity is not None else 0


class Twin:
    """Nodes with plugins and devices, and what pods on them took, counted one by one."""

    def __init__(self) -> None:
        self.nodes: dict[str, tuple[dict[str, int], dict[str, int]]] = {}
        self.classes: set[str] = set()
        self.placed: dict[str, tuple[Pod, str, dict[str, int]]] = {}

    def needs(self, wanted: Pod, name: str) -> dict[str, int] | None:
        """Devices by class that the pod would take on a node; None if it cannot go there."""
        plugins, published = self.nodes[name]
        total = total_requests(wanted.spec)
        needed: dict[str, int] = {}
        for resource, class_name in RESOURCES.items():
            asked = total.get(resource, 0) // ONE
            if not asked:
                continue
            if plugins.get(resource):
                used = sum(
                    total_requests(one.spec).get(resource, 0) // ONE
                    for one, on, _ in self.placed.values()
                    if on == name
                )
                if used + asked > plugins[resource]:
                    return None
            elif class_name in self.classes:
                needed[class_name] = devices(resource, wanted)
            else:
                return None
        for class_name, count in needed.items():
            held = sum(took.get(class_name, 0) for _, on, took in self.placed.values() if on == name)
            if held + count > published[class_name]:
                return None
        return needed


def device_class(name: str) -> Any:
    selector = {"cel": {"expression": f'device.attributes["gpu.example.com"].type == "{name}"'}}
    resource = next(resource for resource, class_name in RESOURCES.items() if class_name == name)
    spec: dict[str, Any] = {"selectors": [selector]}
    if not resource.startswith("deviceclass"):
        spec["extendedResourceName"] = resource
    return typed({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec})


def published(name: str, gpus: int, nics: int) -> Any:
    made = [("gpu", number) for number in range(gpus)] + [("nic", number) for number in range(nics)]
    return resource_slice(
        name, *({"name": f"{kind}-{number}", "attributes": {"type": {"string": kind}}} for kind, number in made)
    )


class World:
    """A cluster, and its twin."""

    def __init__(self) -> None:
        self.here, self.twin = Cluster(), Twin()
        self.claims: dict[str, Any] = {}
        self.count = 0

    def set_node(self, name: str, plugins: dict[str, int], gpus: int, nics: int) -> None:
        if any(on == name for _, on, _ in self.twin.placed.values()):
            return  # what it published is in use
        texts = {resource: str(count) for resource, count in plugins.items()}
        old = self.here.nodes.get(name)
        self.here.set_node(old.node if old is not None else None, replace(node(name, plugins=texts)))
        self.here.track(Upsert(published(name, gpus, nics)))
        self.twin.nodes[name] = (plugins, {"gpu": gpus, "nic": nics})

    def set_class(self, name: str, there: bool) -> None:
        obj = device_class(name)
        self.here.set_class(name, obj if there else None)
        self.here.track(Upsert(obj) if there else Remove.of(obj))
        (self.twin.classes.add if there else self.twin.classes.discard)(name)

    def schedule(self, wanted: Any) -> None:
        self.count += 1
        new = made(f"p{self.count}", wanted)
        crowded = {one.name for one in self.here.nodes if len(one.pods) >= 3}
        possible = {name: self.twin.needs(new, name) for name in self.twin.nodes if name not in crowded}
        fitting = {name: took for name, took in possible.items() if took is not None}
        answer = decide(self.here, read_pod(new), Options())
        assert isinstance(answer, Chosen) == bool(fitting), (answer, possible)
        if isinstance(answer, Chosen):
            self._bind(read_pod(new), answer, fitting[answer.node])

    def _bind(self, info: PodInfo, answer: Chosen, took: dict[str, int]) -> None:
        self.here.assume(info, answer.node, answer.allocations)
        given = [one for _, allocation in answer.allocations.values() for one in allocation.devices.results]
        by_class = {kind: sum(one.device.startswith(kind) for one in given) for kind in took}
        assert by_class == took
        assert len({one.device for one in given}) == len(given)
        told = answer.extended
        mapped = {mapping.request_name for mapping in told.request_mappings} if told is not None else set()
        assert mapped == {one.request for one in given}
        for key, (claim, allocation) in answer.allocations.items():
            self.claims[info.pod.metadata.uid] = stored = replace(
                claim,
                metadata=replace(claim.metadata, uid=key),
                status=replace(claim.status, allocation=allocation),
            )
            self.here.set_claim(None, stored)
        spec = replace(info.pod.spec, node_name=answer.node)
        bound = replace(info.pod, spec=spec, status=replace(info.pod.status, extended_resource_claim_status=told))
        self.here.set_pod(bound, bound.metadata.uid)
        self.twin.placed[bound.metadata.uid] = (bound, answer.node, took)

    def remove(self, number: int) -> None:
        uid = f"uid-p{number}"
        if uid in self.twin.placed:
            del self.twin.placed[uid]
            self.here.set_pod(None, uid)
            claim = self.claims.pop(uid, None)
            if claim is not None:
                self.here.set_claim(claim, None)


@settings(max_examples=150, deadline=None)
@given(st.lists(steps, min_size=6, max_size=16))
def test_pods_get_what_a_twin_counts(history: list[Any]) -> None:
    world = World()
    world.set_class("gpu", there=True)
    world.set_node("a", {}, 3, 1)
    for step in history:
        match step:
            case "node", name, plugins, gpus, nics:
                world.set_node(name, plugins, gpus, nics)
            case "class", name, there:
                world.set_class(name, there)
            case "pod", wanted:
                world.schedule(wanted)
            case "gone", number:
                world.remove(number)


@settings(max_examples=150, deadline=None)
@given(pods)
def test_every_container_has_as_many_devices_as_it_asks_for(wanted: Any) -> None:
    new = made("p", wanted)
    claim = make_claim(new, "x", RESOURCES)
    counts = {one.name: one.exactly.count for one in claim.claim.spec.devices.requests if one.exactly is not None}
    assert all(counts.values())
    for resource in RESOURCES:
        of_class = [
            one
            for one in claim.claim.spec.devices.requests
            if one.exactly and one.exactly.device_class_name == RESOURCES[resource]
        ]
        assert sum(counts[one.name] for one in of_class) == devices(resource, new)
        for one in (*new.spec.init_containers, *new.spec.containers):
            names = [
                m.request_name for m in claim.mappings if (m.container_name, m.resource_name) == (one.name, resource)
            ]
            assert len(names) == len(set(names))
            asked = _amount(one, resource)
            assert sum(counts[name] for name in names) >= asked
            assert bool(names) == bool(asked)
