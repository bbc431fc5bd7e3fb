"""What the server stores acts, or the answer says that it does nothing; the cluster knows its address."""

from __future__ import annotations

import pytest

from controller_world import controller_world
from dray.api.effects import EFFECTS, Effect
from dray.api.registry import Kind, kinds
from dray.server.answers.route_warnings import warnings
from dray.server.routes import Route

STILL = [kind for kind in kinds() if EFFECTS[kind.resource].effect is Effect.NOTHING]


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.resource)
@pytest.mark.parametrize("verb", ["create", "update", "patch"])
def test_who_writes_what_does_nothing_is_told(kind: Kind, verb: str) -> None:
    said = warnings(Route(verb, kind, kind.versions[0]))
    if kind in STILL:
        assert said == [f"{kind.kind} is stored and does nothing here: {EFFECTS[kind.resource].text}"]
    else:
        assert said == []
    assert warnings(Route("get", kind, kind.versions[0])) == []
    assert warnings(Route(verb, kind, kind.versions[0], subresource="status")) == []


async def test_the_cluster_knows_its_own_address() -> None:
    async with controller_world() as world:
        service = await world.get("services", "kubernetes")
        assert service.spec.cluster_ip == "10.96.0.1"
        assert [port.name for port in service.spec.ports] == ["https"]
