"""The OpenAPI documents: complete, consistent, cached by hash, and the same facts in every form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from dray.api import schema, wire
from dray.server.discovery.openapi import descriptions, documents, field_texts
from dray.server.discovery.openapi.v2_protobuf import encode_document
from dray.server.routes import Table
from live_server import LiveServer

CLAIM = "io.k8s.api.resource.v1.ResourceClaim"
PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


@pytest.fixture(scope="module")
def index(server: LiveServer) -> dict[str, str]:
    """The address of every document."""
    paths = server.request("GET", "/openapi/v3").json["paths"]
    return {name: entry["serverRelativeURL"] for name, entry in paths.items()}


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "$ref" and isinstance(inner, str):
                yield inner
            else:
                yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def test_there_is_a_document_for_every_version_in_discovery(server: LiveServer, index: dict[str, str]) -> None:
    groups = server.request("GET", "/apis").json["groups"]
    served = {f"apis/{version['groupVersion']}" for group in groups for version in group["versions"]}
    assert set(index) == served | {"api/v1"}


def test_every_document_is_whole(server: LiveServer, index: dict[str, str]) -> None:
    for name, url in index.items():
        document = server.request("GET", url).json
        schemas = document["components"]["schemas"]
        assert {ref.removeprefix("#/components/schemas/") for ref in references(document)} <= set(schemas), name
        assert all(path.startswith(f"/{name}/") for path in document["paths"]), name
        ids = [
            one["operationId"]
            for path in document["paths"].values()
            for key, one in path.items()
            if key != "parameters"
        ]
        assert len(ids) == len(set(ids)), name
        for full, found in schemas.items():
            assert found["description"], full
            assert all(one["description"] for one in found.get("properties", {}).values()), full


def test_operations_tell_kind_action_and_parameters(server: LiveServer, index: dict[str, str]) -> None:
    paths = server.request("GET", index["apis/resource.k8s.io/v1"]).json["paths"]
    one = paths["/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}"]
    patch = one["patch"]
    assert patch["x-kubernetes-action"] == "patch"
    assert patch["x-kubernetes-group-version-kind"] == {
        "group": "resource.k8s.io",
        "version": "v1",
        "kind": "ResourceClaim",
    }
    assert {found["name"] for found in patch["parameters"]} == {"dryRun", "fieldManager", "fieldValidation", "force"}
    assert set(one) == {"get", "put", "patch", "delete", "parameters"}
    assert "/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}/status" in paths
    assert "/apis/resource.k8s.io/v1/resourceslices/{name}/status" not in paths


def test_schemas_tell_how_to_merge(server: LiveServer, index: dict[str, str]) -> None:
    schemas = server.request("GET", index["apis/resource.k8s.io/v1"]).json["components"]["schemas"]
    reserved = schemas["io.k8s.api.resource.v1.ResourceClaimStatus"]["properties"]["reservedFor"]
    assert reserved["x-kubernetes-list-map-keys"] == ["uid"]
    assert reserved["x-kubernetes-patch-merge-key"] == "uid"
    assert reserved["x-kubernetes-patch-strategy"] == "merge"
    taints = schemas["io.k8s.api.resource.v1.ResourceSliceSpec"]["properties"]["taints"]
    assert taints["x-kubernetes-list-type"] == "atomic"
    spec = schemas[CLAIM]["properties"]["spec"]
    assert spec["allOf"] == [{"$ref": "#/components/schemas/io.k8s.api.resource.v1.ResourceClaimSpec"}]


def test_documents_are_cached_by_hash_and_tag(server: LiveServer, index: dict[str, str]) -> None:
    url = index["apis/apps/v1"]
    first = server.request("GET", url)
    assert "immutable" in first.headers["Cache-Control"]
    again = server.request("GET", url, If_None_Match=first.headers["ETag"])
    assert (again.code, again.body) == (304, b"")
    outdated = server.request("GET", "/openapi/v3/apis/apps/v1?hash=OLD")
    assert outdated.code == 301
    assert outdated.headers["Location"] == url
    assert "immutable" not in server.request("GET", "/openapi/v3/apis/apps/v1").headers["Cache-Control"]


def test_unknown_documents_and_forms(server: LiveServer) -> None:
    assert server.request("GET", "/openapi/v3/apis/nope/v1").code == 404
    assert server.request("GET", "/openapi/v3", Accept="text/html").code == 406
    assert server.request("POST", "/openapi/v3", {}).code == 405


def test_version_2_has_the_same_definitions(server: LiveServer, index: dict[str, str]) -> None:
    old = server.request("GET", "/openapi/v2").json
    assert old["swagger"] == "2.0"
    assert {ref.removeprefix("#/definitions/") for ref in references(old)} <= set(old["definitions"])
    new = server.request("GET", index["apis/resource.k8s.io/v1"]).json
    assert set(new["components"]["schemas"]) <= set(old["definitions"])
    assert set(new["paths"]) <= set(old["paths"])
    old_claim, new_claim = old["definitions"][CLAIM], new["components"]["schemas"][CLAIM]
    assert old_claim["x-kubernetes-group-version-kind"] == new_claim["x-kubernetes-group-version-kind"]


def named(data: memoryview, number: int) -> dict[str, memoryview]:
    """The pairs of a map in a message."""
    pairs = {}
    for found, _, value in wire.fields(data):
        if found == number and isinstance(value, memoryview):
            parts = {one: inner for one, _, inner in wire.fields(value) if isinstance(inner, memoryview)}
            pairs[bytes(parts[1]).decode()] = parts[2]
    return pairs


def part(data: memoryview, number: int) -> memoryview:
    return next(value for found, _, value in wire.fields(data) if found == number and isinstance(value, memoryview))


def test_version_2_in_protobuf_for_old_kubectl(server: LiveServer) -> None:
    answer = server.request("GET", "/openapi/v2", Accept=PROTOBUF)
    assert answer.headers["Content-Type"] == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    document = memoryview(answer.body)
    plain = documents.version_2(documents.served_kinds(Table()))
    assert answer.body == encode_document(plain)
    assert set(named(part(document, 8), 2)) == set(plain["paths"])
    definitions = named(part(document, 9), 1)
    assert set(definitions) == set(plain["definitions"])
    extensions = named(definitions[CLAIM], 31)
    told = json.loads(bytes(part(extensions["x-kubernetes-group-version-kind"], 2)))
    assert told == [{"group": "resource.k8s.io", "version": "v1", "kind": "ResourceClaim"}]
    assert set(named(part(definitions[CLAIM], 25), 1)) == {"apiVersion", "kind", "metadata", "spec", "status"}


def test_versions_that_are_switched_off_are_not_described() -> None:
    table = Table(frozenset({"resource.k8s.io/v1alpha3"}))
    paths = documents.version_2(documents.served_kinds(table))["paths"]
    assert not [path for path in paths if "resource.k8s.io/v1alpha3" in path]


def test_texts_are_about_fields_that_exist() -> None:
    packages = (
        ("resource.k8s.io", field_texts.OF_DEVICES),
        ("cluster.open-cluster-management.io", field_texts.OF_CLUSTERS),
    )
    for group, texts in packages:
        known = set()
        for version in Table().versions[group]:
            for short, found in schema.package(schema.package_of(group, version)).items():
                known |= {name for field in found.properties for name in (field, f"{short}.{field}")}
        assert set(texts) <= known


def test_descriptions_are_for_users() -> None:
    rule = schema.for_kind("resource.k8s.io", "v1", "DeviceTaintRule")
    spec = schema.definition("io.k8s.api.resource.v1.DeviceTaintRuleSpec")
    assert descriptions.of_definition(rule).startswith("Adds a taint to all devices")
    assert "5055" not in descriptions.of_definition(spec)
    assert "`{}` is all of them" in descriptions.of_field(spec, "deviceSelector", spec.properties["deviceSelector"])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("podIPs", "pod IPs"),
        ("CSIDriverSpec", "CSI driver spec"),
        ("nodeName", "node name"),
        ("CELDeviceSelector", "CEL device selector"),
        ("clusterIP", "cluster IP"),
        ("v1beta1", "v 1 beta 1"),
    ],
)
def test_names_as_words(name: str, said: str) -> None:
    assert descriptions.words(name) == said
