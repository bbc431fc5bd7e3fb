"""The facts about types: what patches, server-side apply and OpenAPI work from."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from dray.api import registry, schema
from dray.api.schema import Property

PACKAGES = sorted({schema.package_of(kind.group, version) for kind in registry.kinds() for version in kind.versions})


def test_a_field_of_a_pod() -> None:
    containers = schema.definition("io.k8s.api.core.v1.PodSpec").properties["containers"]
    assert containers.type == "array"
    assert containers.items == Property(ref="io.k8s.api.core.v1.Container")
    assert (containers.patch_strategy, containers.merge_key) == (("merge",), "name")
    assert (containers.list_type, containers.map_keys) == ("map", ("name",))


def test_kinds_are_found_by_group_version_and_kind() -> None:
    pod = schema.for_kind("", "v1", "Pod")
    assert pod.name == "io.k8s.api.core.v1.Pod"
    assert pod.kinds == (schema.GroupVersionKind("", "v1", "Pod"),)
    assert schema.for_kind("rbac.authorization.k8s.io", "v1", "RoleList").name == "io.k8s.api.rbac.v1.RoleList"
    assert schema.for_kind("apps", "v1", "DeleteOptions").name.endswith("meta.v1.DeleteOptions")
    assert schema.for_kind("internal.apiserver.k8s.io", "v1alpha1", "StorageVersion").required


@pytest.mark.parametrize(
    ("group", "version", "kind"),
    [
        ("", "v1", "PodSpec"),
        ("", "v2", "Pod"),
        ("apps", "v1", "Pod"),
        ("no.such.group", "v1", "Thing"),
        ("../../../etc", "v1", "passwd"),
        ("resource.k8s.io", "v1", "ResourceSlicePatch"),
    ],
)
def test_unknown_kinds_are_refused(group: str, version: str, kind: str) -> None:
    with pytest.raises(schema.UnknownDefinitionError, match=kind):
        schema.for_kind(group, version, kind)


@pytest.mark.parametrize("name", ["", "Pod", "io.k8s.api.core.v1.Nothing", "../kinds", "io.k8s.api.core.v1"])
def test_unknown_definitions_are_refused(name: str) -> None:
    with pytest.raises(schema.UnknownDefinitionError):
        schema.definition(name)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_reference_leads_to_a_definition(package: str) -> None:
    assert schema.package(package)
    for found in schema.package(package).values():
        assert set(found.required) <= found.properties.keys()
        for prop in found.properties.values():
            for ref in references(prop):
                assert schema.definition(ref).name == ref


def references(prop: Property) -> Iterator[str]:
    if prop.ref:
        yield prop.ref
    for inner in (prop.items, prop.values):
        if inner is not None:
            yield from references(inner)


@pytest.mark.req("5055-06", "5055-29")
@pytest.mark.parametrize(
    ("definition", "fields"),
    [
        ("ResourceSliceSpec", {"taints"}),
        ("DeviceTaint", {"data", "description", "evictionsPerSecond"}),
        ("DeviceTaintSelector", {"deviceClassName", "selectors"}),
    ],
)
@pytest.mark.parametrize("version", ["v1", "v1beta2"])
def test_fields_that_only_dray_has(version: str, definition: str, fields: set[str]) -> None:
    properties = schema.definition(f"io.k8s.api.resource.{version}.{definition}").properties
    assert fields <= properties.keys()
    for name in fields:
        if properties[name].type == "array":
            assert properties[name].list_type == "atomic"


def test_what_openapi_says_of_a_field_counts() -> None:
    status = schema.definition("io.k8s.api.resource.v1.ResourceClaimStatus")
    assert status.properties["reservedFor"].map_keys == ("uid",)
    assert status.properties["reservedFor"].patch_strategy == ("merge",)
    assert status.properties["devices"].map_keys == ("driver", "device", "pool", "shareID")
    assert schema.definition("io.k8s.api.resource.v1beta1.Device").properties["basic"].ref.endswith(".BasicDevice")


@pytest.mark.req("4381-80")
@pytest.mark.parametrize("kind", ["ResourceSlice", "DeviceClass", "ResourceClaim", "ResourceClaimTemplate"])
def test_nothing_about_devices_refers_to_secrets(kind: str) -> None:
    seen: set[str] = set()
    waiting = [schema.for_kind("resource.k8s.io", "v1", kind)]
    while waiting:
        found = waiting.pop()
        seen.add(found.name)
        for name, prop in found.properties.items():
            assert "secret" not in name.lower()
            inner = [one.ref for one in (prop, prop.items, prop.values) if one is not None and one.ref]
            waiting += [schema.definition(ref) for ref in inner if ref not in seen]
    assert len(seen) > 3


@pytest.mark.req("5027-01", "5027-04")
def test_a_kind_that_kubernetes_does_not_ship() -> None:
    patch = schema.for_kind("resource.k8s.io", "v1alpha3", "ResourceSlicePatch")
    spec = schema.definition(patch.properties["spec"].ref)
    devices = schema.definition(spec.properties["devices"].ref)
    assert devices.properties["attributes"].values == Property(
        ref="io.k8s.api.resource.v1alpha3.NullableDeviceAttribute"
    )
    listed = schema.for_kind("resource.k8s.io", "v1alpha3", "ResourceSlicePatchList").properties["items"].items
    assert listed == Property(ref=patch.name)


@pytest.mark.req("OCM-01")
def test_cluster_kinds() -> None:
    cluster = schema.for_kind(registry.CLUSTER_GROUP, "v1", "ManagedCluster")
    assert schema.definition(cluster.properties["spec"].ref).properties["taints"].list_type == "atomic"
    status = schema.definition(cluster.properties["status"].ref)
    assert status.properties["conditions"].map_keys == ("type",)
    assert status.properties["managedNamespaces"].map_keys == ("clusterSet", "name")


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    code = (
        "from dray.api import schema\n"
        "print(schema._load.cache_info().currsize)\n"
        "schema.for_kind('batch', 'v1', 'Job')\n"
        "print(schema._load.cache_info().currsize)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "1"]
