"""Devices in quotas under the names of extended resources, for pods, claims, and claims that are made for pods."""

from typing import Any

import pytest
from msgspec.structs import replace

from controller_world import manifest, typed
from dray.api.generated.core import Pod, PodExtendedResourceClaimStatus
from dray.api.resource import ResourceClaim
from dray.scheduling.extended_claim import make_claim
from dray.validation.quota_devices import Listed
from dray.validation.quota_usage import counted_kinds, usage

GPU = "example.com/gpu"
CLAIMS = "resourceclaims.resource.k8s.io"
EXPLICIT, IMPLICIT = f"requests.{GPU}", "requests.deviceclass.resource.kubernetes.io/gpu"
DEVICES = "gpu.deviceclass.resource.k8s.io/devices"
CLASS = typed(manifest("resource.k8s.io/v1", "DeviceClass", "gpu", "", spec={"extendedResourceName": GPU}))


def asking(resource: str = GPU, count: int = 2) -> Pod:
    amounts = {"requests": {resource: str(count)}, "limits": {resource: str(count)}}
    spec = {"containers": [{"name": "c", "image": "i", "resources": amounts}]}
    made: Pod = typed(manifest("v1", "Pod", "p", spec=spec))
    return replace(made, metadata=replace(made.metadata, uid="u"))


def made_for(pod: Pod, name: str = "made", created: str = "2026-01-01T00:00:00Z", **classes: str) -> ResourceClaim:
    claim = make_claim(pod, name, classes or {GPU: "gpu"}).claim
    meta = typed(manifest("v1", "Pod", name, meta={"creationTimestamp": created})).metadata
    return replace(
        claim,
        metadata=replace(claim.metadata, resource_version="1", creation_timestamp=meta.creation_timestamp),
    )


def counted(claim: ResourceClaim, *others: Any) -> dict[str, str]:
    used = usage(CLAIMS, claim, Listed((CLASS, claim, *others)))
    return {name: str(amount) for name, amount in used.items() if not name.startswith("count/")}


def test_a_claim_counts_under_every_name_of_its_class() -> None:
    claim = replace(made_for(asking()), metadata=replace(made_for(asking()).metadata, annotations={}))
    assert counted(claim, asking()) == {DEVICES: "2", IMPLICIT: "2", EXPLICIT: "2"}


def test_a_claim_that_is_made_for_a_pod_counts_for_what_the_pod_does_not() -> None:
    assert counted(made_for(asking()), asking()) == {DEVICES: "2", IMPLICIT: "2"}
    named = asking("deviceclass.resource.kubernetes.io/gpu")
    claim = made_for(named, **{"deviceclass.resource.kubernetes.io/gpu": "gpu"})
    assert counted(claim, named) == {DEVICES: "2", EXPLICIT: "2"}


def test_only_one_claim_counts_for_less_because_of_a_pod() -> None:
    first, second = made_for(asking()), made_for(asking(), "second", "2026-01-01T00:00:01Z")
    assert EXPLICIT not in counted(first, second, asking())
    assert EXPLICIT in counted(second, first, asking())
    told = PodExtendedResourceClaimStatus(resource_claim_name="second")
    recorded = replace(asking(), status=replace(asking().status, extended_resource_claim_status=told))
    assert EXPLICIT in counted(first, second, recorded)
    assert EXPLICIT not in counted(second, first, recorded)
    assert EXPLICIT in counted(first)  # the pod is gone


@pytest.mark.parametrize(
    ("resource", "kinds"),
    [
        (EXPLICIT, ["Pod", "ResourceClaim"]),
        (IMPLICIT, ["Pod", "ResourceClaim"]),
        ("requests.cpu", ["Pod"]),
        (DEVICES, ["ResourceClaim"]),
        ("whatever", []),
    ],
)
def test_whose_objects_use_up_what(resource: str, kinds: list[str]) -> None:
    assert [kind.kind for kind in counted_kinds(resource)] == kinds
