"""What the server stores acts, or the answer says that it does nothing; the cluster knows its address."""

from __future__ import annotations

import pytest

from controller_world import controller_world
from dray.api.effects import EFFECTS, Effect
from dray.api.idle_fields import IDLE_FIELDS
from dray.api.registry import Kind, by_kind, kinds
from dray.server.answers.route_warnings import warnings
from dray.server.engine import Call
from dray.server.routes import Route
from dray.server.verbs.writes import create
from local_server import ADMIN, local_server, typed

BETAS = ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice")
DEPRECATED = {
    (kind, version): [f"{group}{version} {kind} is deprecated in {since}"]
    for group, version, kinds_, since in (
        ("", "v1", ("ComponentStatus",), "v1.19+"),
        ("", "v1", ("Endpoints",), "v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
        ("resource.k8s.io/", "v1alpha3", ("DeviceTaintRule",), "v1.36+, unavailable in v1.39+"),
        ("resource.k8s.io/", "v1beta1", BETAS, "v1.35+, unavailable in v1.38+"),
        ("resource.k8s.io/", "v1beta2", BETAS, "v1.36+, unavailable in v1.39+"),
    )
    for kind in kinds_
}
STILL = [kind for kind in kinds() if EFFECTS[kind.resource].effect is Effect.NOTHING]


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.resource)
@pytest.mark.parametrize("verb", ["create", "update", "patch"])
def test_who_writes_what_does_nothing_is_told(kind: Kind, verb: str) -> None:
    always = warnings(Route("get", kind, kind.versions[0]))
    assert always == DEPRECATED.get((kind.kind, kind.versions[0]), [])
    said = warnings(Route(verb, kind, kind.versions[0]))
    if kind in STILL:
        assert said == [f"{kind.kind} is stored and does nothing here: {EFFECTS[kind.resource].text}"]
    else:
        assert said == always
    assert warnings(Route(verb, kind, kind.versions[0], subresource="status")) == always


def test_who_uses_what_is_on_its_way_out_is_told() -> None:
    """Recorded from Kubernetes 1.37: every kind in every version that it shares with this server, and no other."""
    told = {
        (kind.kind, version): said
        for kind in kinds()
        for version in kind.versions
        if (said := warnings(Route("list", kind, version)))
    }
    assert told == DEPRECATED


async def test_who_sets_a_field_that_does_nothing_is_told() -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim |= {"volumeAttributesClassName": "fast"}
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": [volume]}
    pod = typed({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": spec})
    async with local_server() as server:
        route = Route("create", by_kind("v1", "Pod"), "v1", "default")
        call = Call(route, ADMIN, server.engine.clock(), warnings=[])
        await create(server.engine, call, pod)
    path = "spec.volumes[].ephemeral.volumeClaimTemplate.spec.volumeAttributesClassName"
    assert call.warnings == [f"{path} is stored and does nothing here: {IDLE_FIELDS['pods'][path]}"]


async def test_the_cluster_knows_its_own_address() -> None:
    async with controller_world() as world:
        service = await world.get("services", "kubernetes")
        assert service.spec.cluster_ip == "10.96.0.1"
        assert [port.name for port in service.spec.ports] == ["https"]
