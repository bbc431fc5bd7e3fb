"""What dynamic admission adds to a write: nothing configured, and a policy of three expressions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from dray.api import codec
from dray.api.kinds import CONFIG_MAPS
from dray.api.meta import Object
from dray.api.registry import by_kind
from dray.process.clock import RealClock
from dray.server.api_server import ApiServer, Options
from dray.server.engine import Call
from dray.server.instance import ADMIN, decode_stored
from dray.server.routes import Route
from dray.server.security.certificates import create_private_key
from dray.store import LocalStore, MemoryBackend

POLICY_LIMIT_US = 30.0
ROUNDS, CALLS = 40, 250
GROUP = "admissionregistration.k8s.io/v1"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
EXPRESSIONS = (
    "object.data.size == '3'",
    "!has(object.metadata.labels) || object.metadata.labels.size() < 5",
    "request.operation == 'CREATE' || oldObject.data.size == object.data.size",
)


def _typed(document: dict[str, Any]) -> Object:
    found = codec.read(document, by_kind(document["apiVersion"], document["kind"]).hub).obj
    assert found is not None
    return found


async def _microseconds(work: Callable[[], Awaitable[object]]) -> float:
    """What one call takes, in the best of some rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(CALLS):
            await work()
        best = min(best, (time.process_time() - began) / CALLS)
    return best * 1e6


async def _measure() -> dict[str, float]:
    store = LocalStore(MemoryBackend(), decode_stored)
    server = ApiServer(store, RealClock(), Options(signing_key=create_private_key()))
    await server.prepare(with_roles=False)
    engine, admin = server.engine, server.client_of(ADMIN)
    metadata = {"name": "c", "namespace": "default"}
    obj = _typed({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"size": "3"}})
    call = Call(Route("create", CONFIG_MAPS, "v1", "default"), ADMIN, engine.clock())

    async def admitted() -> None:
        await engine.admission.mutate(engine, call, obj, None)
        await engine.admission.check(engine, call, obj, None)

    idle = await _microseconds(admitted)
    validations = [{"expression": expression} for expression in EXPRESSIONS]
    spec = {"validations": validations, "matchConstraints": {"resourceRules": [RULE]}}
    kind = {"apiVersion": GROUP, "kind": "ValidatingAdmissionPolicy"}
    await admin.create(_typed(kind | {"metadata": {"name": "p"}, "spec": spec}))
    bound = {"policyName": "p", "validationActions": ["Deny"]}
    kind = {"apiVersion": GROUP, "kind": "ValidatingAdmissionPolicyBinding"}
    await admin.create(_typed(kind | {"metadata": {"name": "p"}, "spec": bound}))
    with_policy = await _microseconds(admitted)
    await server.stop()
    await store.close()
    return {"nothing configured (us)": round(idle, 2), "a policy of three adds (us)": round(with_policy - idle, 2)}


def run() -> dict[str, Any]:
    """The figures, and whether they are within their limits."""
    found: dict[str, Any] = dict(asyncio.run(_measure()))
    found["within limits"] = found["a policy of three adds (us)"] <= POLICY_LIMIT_US
    for name, value in found.items():
        print(f"  {name}: {value}")
    return found
