"""Who set which field of a new pod: found once for all pods that are alike, and the same as if each were looked at."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dray.api import codec, schema
from dray.api.generated.core import Pod, PodSpec, PodStatus
from dray.api.kinds import PODS
from dray.api.meta import ObjectMeta, OwnerReference
from dray.process.clock import as_time
from dray.server.engine import Call
from dray.server.patch import managed
from dray.server.routes import Route
from dray.server.security.identity import MASTERS, authenticated
from dray.server.verbs import field_owners

NOW = as_time(0)
SPEC = PodSpec(node_name="n")
OWNER = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web", uid="u")

METADATA: dict[str, dict[str, Any]] = {
    "a name": {"name": "a"},
    "another name": {"name": "b"},
    "a generated name": {"generate_name": "a-"},
    "a label": {"name": "a", "labels": {"app": "web"}},
    "the same label, another value": {"name": "a", "labels": {"app": "db"}},
    "another label": {"name": "a", "labels": {"tier": "web"}},
    "an annotation by the name of a label": {"name": "a", "annotations": {"app": "web"}},
    "an owner": {"name": "a", "owner_references": (OWNER,)},
    "another owner": {"name": "a", "owner_references": (replace(OWNER, uid="v"),)},
    "a finalizer": {"name": "a", "finalizers": ("example.com/kept",)},
}


def entries(pod: Pod) -> Any:
    call = Call(Route("create", PODS, "v1", "ns", ""), authenticated("ann", (MASTERS,)), NOW, field_manager="kubectl")
    return codec.to_builtins(field_owners.track(call, None, pod).metadata.managed_fields)


@pytest.mark.parametrize("status", [PodStatus(), PodStatus(phase="Running")], ids=["no status", "a status"])
def test_pods_that_are_alike_are_looked_at_once(status: PodStatus) -> None:
    for _ in range(2):  # the second time it is known
        for case, given in METADATA.items():
            pod = Pod(kind="Pod", api_version="v1", metadata=ObjectMeta(**given), spec=SPEC, status=status)
            fields = managed.first_fields(codec.to_builtins(pod), schema.for_kind("", "v1", "Pod"))
            [entry] = entries(pod)
            assert entry["fieldsV1"] == codec.to_builtins(fields), case
