"""LimitRanges and RuntimeClasses: what pods and volume claims get, and what they are refused."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from dray.api.generated.core import LimitRange, Pod
from dray.api.status import ApiError
from dray.pod_admission import limit_range
from local_server import local_server, refused, typed
from work import lines_run


def limits(*items: dict[str, Any]) -> Any:
    meta = {"name": "range", "namespace": "default"}
    return typed({"apiVersion": "v1", "kind": "LimitRange", "metadata": meta, "spec": {"limits": list(items)}})


def pod(name: str, *resources: dict[str, Any], **spec: Any) -> Any:
    containers = [
        {"name": f"c{index}", "image": "pause", "resources": given} for index, given in enumerate(resources or ({},))
    ]
    meta = {"name": name, "namespace": "default"}
    return typed({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": containers, **spec}})


def runtime(name: str, **more: Any) -> Any:
    return typed({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, **more})


async def test_containers_that_ask_for_nothing_get_the_defaults() -> None:
    async with local_server(with_roles=False) as server:
        client = server.client()
        stored = await client.create(limits({"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Mi"}}))
        assert isinstance(stored, LimitRange)
        assert {name: str(value) for name, value in stored.spec.limits[0].default_request.items()} == {
            "cpu": "2",
            "memory": "1Mi",
        }
        made = await client.create(pod("p"))
        assert isinstance(made, Pod)
        given = made.spec.containers[0].resources
        assert {name: str(value) for name, value in given.limits.items()} == {"cpu": "2"}
        assert {name: str(value) for name, value in given.requests.items()} == {"cpu": "2", "memory": "1Mi"}
        said = "LimitRanger plugin set: cpu, memory request for container c0; cpu limit for container c0"
        assert made.metadata.annotations["kubernetes.io/limit-ranger"] == said


def _try(pod: Any, found: Any) -> None:
    with contextlib.suppress(limit_range.TooMuch):
        limit_range.defaulted(pod.spec, limit_range.range_of(found))


async def test_many_containers_do_not_get_many_defaults_each() -> None:
    """Both are short, and what they make together is not: it was worked out on the event loop, and refused then."""
    defaults = {f"example.com/r{number}": "1" for number in range(500)}
    async with local_server(with_roles=False) as server:
        client = server.client()
        ranged = await client.create(limits({"type": "Container", "default": defaults}))
        many = pod("many", *[{}] * 300)
        with pytest.raises(ApiError, match="would add more to its containers than an object may have") as failure:
            await client.create(many)
        assert failure.value.code == 403
        assert sum(lines_run(lambda: _try(many, ranged)).values()) < 40_000
        own = {"limits": defaults, "requests": defaults}
        assert isinstance(await client.create(pod("own", *[own] * 20)), Pod)


@pytest.mark.parametrize(
    ("item", "resources", "why"),
    [
        (
            {"type": "Container", "min": {"cpu": "200m"}},
            {"requests": {"cpu": "100m"}},
            "minimum cpu usage per Container is 200m, but request is 100m",
        ),
        (
            {"type": "Container", "max": {"cpu": "1"}},
            {"limits": {"cpu": "2"}},
            "maximum cpu usage per Container is 1, but limit is 2",
        ),
        (
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
            {"limits": {"cpu": "3"}, "requests": {"cpu": "1"}},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
        (
            {"type": "Pod", "max": {"memory": "1Gi"}},
            {},
            r"maximum memory usage per Pod is 1Gi.  No limit is specified",
        ),
    ],
)
async def test_too_little_and_too_much(item: dict[str, Any], resources: dict[str, Any], why: str) -> None:
    async with local_server(with_roles=False) as server:
        client = server.client()
        await client.create(limits(item))
        await refused(client.create(pod("p", resources)), f'pods "p" is forbidden: {why}')


async def test_a_pod_counts_as_a_whole() -> None:
    async with local_server(with_roles=False) as server:
        client = server.client()
        await client.create(limits({"type": "Pod", "max": {"cpu": "2"}}))
        one = {"limits": {"cpu": "1"}}
        await client.create(pod("fits", one, one))
        await refused(client.create(pod("large", one, one, one)), "maximum cpu usage per Pod is 2, but limit is 3")


async def test_volume_claims_are_held_to_it_too() -> None:
    async with local_server(with_roles=False) as server:
        client = server.client()
        await client.create(limits({"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}))
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
        meta = {"name": "v", "namespace": "default"}
        claim = typed({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec})
        await refused(
            client.create(claim), "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi"
        )


async def test_a_range_that_contradicts_itself() -> None:
    async with local_server(with_roles=False) as server:
        wrong = limits({"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}, "default": {"cpu": "1"}})
        with pytest.raises(ApiError, match="min value 2 is greater than max value 1") as failure:
            await server.client().create(wrong)
        assert failure.value.code == 422


async def test_a_runtime_class_gives_overhead_and_nodes() -> None:
    async with local_server(with_roles=False) as server:
        client = server.client()
        scheduling = {"nodeSelector": {"runtime": "vm"}, "tolerations": [{"key": "vm", "operator": "Exists"}]}
        overhead = {"podFixed": {"cpu": "250m"}}
        await client.create(runtime("vm", handler="vm", overhead=overhead, scheduling=scheduling))
        made = await client.create(pod("p", runtimeClassName="vm"))
        assert isinstance(made, Pod)
        assert {name: str(value) for name, value in made.spec.overhead.items()} == {"cpu": "250m"}
        assert made.spec.node_selector == {"runtime": "vm"}
        assert "vm" in {toleration.key for toleration in made.spec.tolerations}
        why = r"conflict: runtimeClass.scheduling.nodeSelector\[runtime\] = vm"
        await refused(client.create(pod("q", runtimeClassName="vm", nodeSelector={"runtime": "other"})), why)


async def test_a_runtime_class_that_there_is_not_and_overhead_of_nobody() -> None:
    async with local_server(with_roles=False) as server:
        client = server.client()
        await refused(client.create(pod("p", runtimeClassName="gone")), 'pod rejected: RuntimeClass "gone" not found')
        why = "Pod Overhead set without corresponding RuntimeClass defined Overhead"
        await refused(client.create(pod("p", overhead={"cpu": "1"})), why)
