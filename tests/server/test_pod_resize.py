"""`pods/resize`: cpu and memory of containers may change while the node can follow, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dray.api.generated.core import ContainerState, ContainerStateRunning, ContainerStatus, Pod, PodStatus
from dray.api.quantity import Quantity
from dray.api.status import ApiError
from dray.server.local import LocalClient
from local_server import local_server, typed


async def make(client: LocalClient, **resources: Any) -> Pod:
    given = resources or {"requests": {"cpu": "1", "memory": "1Gi"}}
    spec = {"containers": [{"name": "c", "image": "i", "resources": given}]}
    made = await client.create(
        typed({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": spec})
    )
    assert isinstance(made, Pod)
    return made


def sized(pod: Pod, image: str = "i", **requests: str) -> Pod:
    (container,) = pod.spec.containers
    amounts = {name.replace("_", "-"): Quantity.parse(value) for name, value in requests.items()}
    resources = replace(container.resources, requests=amounts)
    return replace(pod, spec=replace(pod.spec, containers=(replace(container, resources=resources, image=image),)))


async def test_requests_change_and_nothing_else() -> None:
    async with local_server(with_roles=False) as server:
        client = server.client()
        pod = await make(client)
        wanted = replace(sized(pod, "other", cpu="2", memory="1Gi"), metadata=replace(pod.metadata, labels={"a": "b"}))
        changed = await client.update(wanted, subresource="resize")
        assert isinstance(changed, Pod)
        assert str(changed.spec.containers[0].resources.requests["cpu"]) == "2"
        assert changed.spec.containers[0].image == "i"
        assert changed.metadata.labels == {}
        assert changed.metadata.generation == 2


@pytest.mark.parametrize(
    ("requests", "why"),
    [
        ({"cpu": "2"}, r"spec.containers\[0\].resources.requests: Forbidden: resource requests cannot be removed"),
        ({"cpu": "1", "memory": "1Gi", "ephemeral_storage": "1Gi"}, "only cpu and memory resources are mutable"),
        ({"cpu": "0", "memory": "0"}, "Pod QOS Class may not change as a result of resizing"),
    ],
)
async def test_what_a_resize_may_not(requests: dict[str, str], why: str) -> None:
    async with local_server(with_roles=False) as server:
        client = server.client()
        pod = await make(client)
        with pytest.raises(ApiError, match=why) as failure:
            await client.update(sized(pod, **requests), subresource="resize")
        assert failure.value.code == 422


async def test_a_node_that_does_not_say_what_containers_have_cannot_follow() -> None:
    async with local_server(with_roles=False) as server:
        client = server.client()
        pod = await make(client)
        state = ContainerState(running=ContainerStateRunning())
        status = PodStatus(phase="Running", container_statuses=(ContainerStatus(name="c", image="i", state=state),))
        running = await client.update(replace(pod, status=status), subresource="status")
        assert isinstance(running, Pod)
        with pytest.raises(ApiError, match="Pod running on node without support for resize"):
            await client.update(sized(running, cpu="2", memory="1Gi"), subresource="resize")


async def test_an_ordinary_update_does_not_resize() -> None:
    async with local_server(with_roles=False) as server:
        client = server.client()
        pod = await make(client)
        with pytest.raises(ApiError, match="spec: Forbidden"):
            await client.update(sized(pod, cpu="2", memory="1Gi"))
