"""Between the versions of resource.k8s.io."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dray import validation
from dray.api import resource
from dray.validation.conversion import from_hub, to_hub

V1 = "resource.k8s.io/v1"
V1BETA1 = "resource.k8s.io/v1beta1"

SLICE = {
    "apiVersion": V1BETA1,
    "kind": "ResourceSlice",
    "metadata": {"name": "s"},
    "spec": {
        "driver": "d",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "n",
        "devices": [{"name": "a", "basic": {"attributes": {"x": {"int": 1}}, "capacity": {"m": {"value": "1Gi"}}}}],
    },
}
CLAIM = {
    "apiVersion": V1BETA1,
    "kind": "ResourceClaim",
    "metadata": {"name": "c", "namespace": "default"},
    "spec": {
        "devices": {
            "requests": [
                {"name": "a", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2},
                {"name": "b", "deviceClassName": "", "firstAvailable": [{"name": "s", "deviceClassName": "gpu"}]},
            ]
        }
    },
    "status": {},
}


@pytest.mark.req("SVS-33", "4381-247", "X-09", "4381-216")
def test_v1beta1_wraps_devices_and_flattens_requests() -> None:
    hub = validation.convert(SLICE, V1)
    assert hub["spec"]["devices"] == [
        {"name": "a", "attributes": {"x": {"int": 1}}, "capacity": {"m": {"value": "1Gi"}}}
    ]
    requests = validation.convert(CLAIM, V1)["spec"]["devices"]["requests"]
    assert requests[0]["exactly"] == {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}
    assert "exactly" not in requests[1]
    assert requests[1]["firstAvailable"] == [{"name": "s", "deviceClassName": "gpu"}]


@pytest.mark.req("4381-204", "4381-212", "SVS-32")
@pytest.mark.parametrize("obj", [SLICE, CLAIM], ids=lambda obj: obj["kind"])
@pytest.mark.parametrize("version", [V1, "resource.k8s.io/v1beta2"])
def test_there_and_back(obj: dict[str, Any], version: str) -> None:
    there = validation.convert(obj, version)
    assert there["apiVersion"] == version
    again = validation.convert(validation.convert(there, V1BETA1), version)
    assert again == there


@pytest.mark.req("SVS-33")
def test_a_device_without_content() -> None:
    bare: dict[str, Any] = {**SLICE, "spec": {**SLICE["spec"], "devices": [{"name": "a"}]}}  # type: ignore[dict-item]
    assert validation.convert(bare, V1)["spec"]["devices"] == [{"name": "a"}]
    assert validation.convert(validation.convert(bare, V1), V1BETA1)["spec"]["devices"] == [{"name": "a", "basic": {}}]


@pytest.mark.parametrize("version", ["v1", "resource.k8s.io/v2", "apps/v1"])
def test_versions_that_are_not_served(version: str) -> None:
    with pytest.raises(validation.InvalidObjectError, match="apiVersion"):
        validation.convert(SLICE, version)


names = st.sampled_from(["a", "b", "c"])
alternatives = st.builds(
    resource.ExactDeviceRequest,
    device_class_name=names,
    allocation_mode=st.sampled_from(["All", "ExactCount"]),
    count=st.integers(0, 3),
    admin_access=st.sampled_from([None, True, False]),
    tolerations=st.lists(st.builds(resource.DeviceToleration, key=names), max_size=2).map(tuple),
)
subrequests = st.builds(resource.DeviceSubRequest, name=names, device_class_name=names)
requests = st.one_of(
    st.builds(resource.DeviceRequest, name=names, exactly=alternatives),
    st.builds(resource.DeviceRequest, name=names, first_available=st.lists(subrequests, min_size=1).map(tuple)),
)
claims = st.lists(requests, max_size=4).map(
    lambda found: resource.ResourceClaim(
        kind="ResourceClaim",
        api_version=V1,
        spec=resource.ResourceClaimSpec(devices=resource.DeviceClaim(requests=tuple(found))),
    )
)


@pytest.mark.req("4381-212", "X-09")
@given(claims)
def test_nothing_of_a_claim_is_lost_in_v1beta1(claim: resource.ResourceClaim) -> None:
    assert to_hub(from_hub(claim, V1BETA1), V1) == claim
