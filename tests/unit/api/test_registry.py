"""The table of kinds."""

import pytest

from dray.api import registry
from dray.api.meta import Object


@pytest.mark.parametrize("kind", registry.kinds(), ids=lambda kind: f"{kind.group}/{kind.kind}")
def test_every_kind_has_a_type_in_every_version(kind: registry.Kind) -> None:
    for version in kind.versions:
        assert issubclass(kind.type_of(version), Object)


@pytest.mark.req("4381-01", "4381-36", "4381-62", "4381-69", "5055-29", "5027-01", "X-08", "5027-56")
@pytest.mark.parametrize(
    ("kind", "namespaced", "versions"),
    [
        ("ResourceSlice", False, ("v1", "v1beta2", "v1beta1")),
        ("DeviceClass", False, ("v1", "v1beta2", "v1beta1")),
        ("ResourceClaim", True, ("v1", "v1beta2", "v1beta1")),
        ("ResourceClaimTemplate", True, ("v1", "v1beta2", "v1beta1")),
        ("DeviceTaintRule", False, ("v1", "v1beta2", "v1alpha3")),
        ("ResourceSlicePatch", False, ("v1alpha3",)),
    ],
)
def test_resource_kinds(kind: str, namespaced: bool, versions: tuple[str, ...]) -> None:
    found = registry.by_kind(f"resource.k8s.io/{versions[-1]}", kind)
    assert found.namespaced is namespaced
    assert found.versions == versions


@pytest.mark.req("OCM-01", "OCM-07", "OCM-46")
def test_cluster_kinds() -> None:
    assert not registry.by_kind("cluster.open-cluster-management.io/v1", "ManagedCluster").namespaced
    for version in ("v1beta1", "v1alpha1"):
        assert registry.by_kind(f"cluster.open-cluster-management.io/{version}", "Placement").namespaced


@pytest.mark.parametrize(
    ("api_version", "kind", "says"),
    [
        ("resource.k8s.io/v1alpha2", "ResourceClaim", "resource.k8s.io/v1, resource.k8s.io/v1beta2"),
        ("resource.k8s.io/v1", "ResourceCliam", "did you mean 'ResourceClaim'?"),
        ("v1", "Deployment", "there is one in apps/v1"),
        ("", "", "unknown kind"),
    ],
)
def test_an_unknown_kind_says_what_there_is(api_version: str, kind: str, says: str) -> None:
    with pytest.raises(registry.UnknownKind, match=says.replace("?", r"\?")):
        registry.by_kind(api_version, kind)
