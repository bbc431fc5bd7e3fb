"""Custom resources over HTTP: served when the create of their definition is answered, until the definition is gone."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from live_server import Kubectl, LiveServer, running_server

_numbers = itertools.count(1)

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["image"],
            "properties": {
                "image": {"type": "string", "maxLength": 64, "description": "What runs."},
                "replicas": {"type": "integer", "minimum": 0, "default": 1},
                "mode": {"type": "string", "enum": ["fast", "slow"]},
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": {"type": "string"}, "port": {"type": "integer"}},
                    },
                },
                "anything": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        },
        "status": {
            "type": "object",
            "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}},
        },
    },
}


class Resource:
    """A custom resource of a test's own."""

    def __init__(self, server: LiveServer, **changes: Any) -> None:
        self.server = server
        number = next(_numbers)
        self.group, self.plural, self.kind = f"test{number}.example.com", "widgets", "Widget"
        self.name = f"{self.plural}.{self.group}"
        version = {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": copy.deepcopy(SCHEMA)},
            "subresources": {
                "status": {},
                "scale": {
                    "specReplicasPath": ".spec.replicas",
                    "statusReplicasPath": ".status.replicas",
                    "labelSelectorPath": ".status.selector",
                },
            },
            "additionalPrinterColumns": [
                {"name": "Image", "type": "string", "jsonPath": ".spec.image"},
                {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas", "priority": 1},
            ],
            "selectableFields": [{"jsonPath": ".spec.image"}],
        }
        self.definition: dict[str, Any] = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name},
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": {"plural": self.plural, "kind": self.kind, "shortNames": [f"wi{number}"]},
                "versions": [{**version, **changes}],
            },
        }

    @property
    def short(self) -> str:
        return str(self.definition["spec"]["names"]["shortNames"][0])

    def defined(self) -> Resource:
        made = self.server.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", self.definition)
        assert made.code == 201, made.body
        return self

    def path(self, name: str = "", version: str = "v1", namespace: str = "default") -> str:
        base = f"/apis/{self.group}/{version}/namespaces/{namespace}/{self.plural}"
        return f"{base}/{name}" if name else base

    def obj(self, name: str, version: str = "v1", **spec: Any) -> dict[str, Any]:
        return {
            "apiVersion": f"{self.group}/{version}",
            "kind": self.kind,
            "metadata": {"name": name},
            "spec": {"image": "x", **spec},
        }

    def create(self, name: str, **spec: Any) -> dict[str, Any]:
        made = self.server.request("POST", self.path(), self.obj(name, **spec))
        assert made.code == 201, made.body
        return dict(made.json)

    @property
    def definition_path(self) -> str:
        return f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{self.name}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server of its own: definitions change what others see of theirs."""
    with running_server(tmp_path_factory.mktemp("custom") / "state") as running:
        yield running


@pytest.fixture(scope="module")
def kubectl(server: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    return Kubectl(server, tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def widgets(server: LiveServer) -> Resource:
    return Resource(server).defined()


def test_a_definition_is_established_and_served_at_once(server: LiveServer) -> None:
    resource = Resource(server).defined()
    stored = server.request("GET", resource.definition_path).json
    said = {one["type"]: (one["status"], one["reason"]) for one in stored["status"]["conditions"]}
    assert said == {"NamesAccepted": ("True", "NoConflicts"), "Established": ("True", "InitialNamesAccepted")}
    assert stored["status"]["storedVersions"] == ["v1"]
    assert stored["spec"]["names"]["listKind"] == "WidgetList"
    made = resource.create("one")
    assert made["spec"] == {"image": "x", "replicas": 1}
    assert made["metadata"]["generation"] == 1
    listed = server.request("GET", resource.path()).json
    assert listed["kind"] == "WidgetList"
    assert [(one["kind"], one["metadata"]["name"]) for one in listed["items"]] == [("Widget", "one")]


def test_unknown_fields_are_dropped_and_told(widgets: Resource) -> None:
    server = widgets.server
    body = widgets.obj("pruned", bogus=1, anything={"a": {"b": 1}})
    made = server.request("POST", widgets.path(), body)
    assert made.json["spec"] == {"image": "x", "replicas": 1, "anything": {"a": {"b": 1}}}
    assert 'unknown field \\"spec.bogus\\"' in made.headers["Warning"]
    strict = server.request("POST", f"{widgets.path()}?fieldValidation=Strict", widgets.obj("strict", bogus=1))
    assert (strict.code, "strict decoding error" in strict.json["message"]) == (400, True)
    quiet = server.request("POST", f"{widgets.path()}?fieldValidation=Ignore", widgets.obj("quiet", bogus=1))
    assert (quiet.code, quiet.headers["Warning"]) == (201, None)


@pytest.mark.parametrize(
    ("spec", "cause", "message"),
    [
        ({"replicas": "two"}, ("FieldValueTypeInvalid", "spec.replicas"), "must be of type integer"),
        ({"replicas": -1}, ("FieldValueInvalid", "spec.replicas"), "should be greater than or equal to 0"),
        ({"mode": "odd"}, ("FieldValueNotSupported", "spec.mode"), 'supported values: "fast", "slow"'),
        ({"image": "x" * 65}, ("FieldValueTooLong", "spec.image"), "may not be more than 64 bytes"),
        ({"ports": [{"port": 1}]}, ("FieldValueRequired", "spec.ports[0].name"), "Required value"),
        ({"ports": [{"name": "a"}] * 2}, ("FieldValueDuplicate", "spec.ports[1]"), 'Duplicate value: {"name":"a"}'),
    ],
)
def test_what_the_schema_refuses_is_refused(
    widgets: Resource, spec: dict[str, Any], cause: tuple[str, str], message: str
) -> None:
    answer = widgets.server.request("POST", widgets.path(), widgets.obj("bad", **spec))
    assert answer.code == 422
    assert cause in answer.causes
    assert message in answer.json["message"]


def test_the_status_is_written_apart(widgets: Resource) -> None:
    server, path = widgets.server, widgets.path("stated")
    made = server.request("POST", widgets.path(), {**widgets.obj("stated"), "status": {"replicas": 9}}).json
    assert "status" not in made
    told = server.request("PUT", f"{path}/status", {**made, "spec": {"image": "y"}, "status": {"replicas": 2}}).json
    assert (told["spec"]["image"], told["status"], told["metadata"]["generation"]) == ("x", {"replicas": 2}, 1)
    changed = server.request("PUT", path, {**told, "spec": {"image": "z"}, "status": {"replicas": 5}}).json
    assert (changed["spec"]["image"], changed["status"]) == ("z", {"replicas": 2})
    assert changed["metadata"]["generation"] == 2
    blind = {**changed, "metadata": {"name": "stated"}}
    assert server.request("PUT", path, blind).causes == {("FieldValueInvalid", "metadata.resourceVersion")}


def test_an_object_is_scaled(widgets: Resource) -> None:
    server, path = widgets.server, widgets.path("scaled")
    made = widgets.create("scaled", replicas=2)
    server.request("PUT", f"{path}/status", {**made, "status": {"replicas": 1, "selector": "a=b"}})
    scale = server.request("GET", f"{path}/scale").json
    assert (scale["kind"], scale["spec"], scale["status"]) == (
        "Scale",
        {"replicas": 2},
        {"replicas": 1, "selector": "a=b"},
    )
    assert server.request("PUT", f"{path}/scale", {**scale, "spec": {"replicas": 7}}).code == 200
    assert server.request("GET", path).json["spec"]["replicas"] == 7


def test_appliers_share_a_list_by_its_keys(widgets: Resource) -> None:
    server, path = widgets.server, widgets.path("shared")

    def apply(manager: str, **spec: Any) -> Any:
        body = {**widgets.obj("shared"), "spec": spec}
        uri = f"{path}?fieldManager={manager}"
        return server.request("PATCH", uri, body, content_type="application/apply-patch+yaml")

    assert apply("one", image="x", ports=[{"name": "a", "port": 1}]).code == 201
    both = apply("two", ports=[{"name": "b", "port": 2}]).json
    assert [port["name"] for port in both["spec"]["ports"]] == ["a", "b"]
    refused = apply("two", ports=[{"name": "a", "port": 9}])
    assert (refused.code, refused.json["reason"]) == (409, "Conflict")
    assert [port["name"] for port in apply("one", image="x").json["spec"]["ports"]] == ["b"]


def test_a_null_that_is_applied_is_a_value_and_elsewhere_none(widgets: Resource) -> None:
    server, made = widgets.server, widgets.obj("nulls", image="a", ports=None, replicas=None)
    uri = f"{widgets.path('nulls')}?fieldManager=a"
    applied = server.request("PATCH", uri, made, content_type="application/apply-patch+yaml")
    assert applied.causes == {("FieldValueTypeInvalid", "spec.ports")}
    created = server.request("POST", widgets.path(), made)
    assert (created.code, created.json["spec"]) == (201, {"image": "a", "replicas": 1})


def test_people_see_columns_explanations_and_selections(widgets: Resource, kubectl: Kubectl) -> None:
    widgets.create("shown", image="special")
    wide = kubectl("get", widgets.short, "-o", "wide", "--field-selector", "spec.image=special").split("\n")
    assert wide[0].split() == ["NAME", "IMAGE", "REPLICAS"]
    assert wide[1].split() == ["shown", "special", "1"]
    assert "What runs." in kubectl("explain", f"{widgets.short}.spec.image")
    refused = widgets.server.request("GET", f"{widgets.path()}?fieldSelector=spec.mode=fast")
    assert (refused.code, "field label not supported" in refused.json["message"]) == (400, True)


def test_a_watch_sees_custom_objects(widgets: Resource) -> None:
    events = widgets.server.watch(f"{widgets.path()}?watch=1&fieldSelector=metadata.name=watched")
    widgets.create("watched")
    first = next(events)
    assert (first["type"], first["object"]["kind"]) == ("ADDED", "Widget")
    widgets.server.request("DELETE", widgets.path("watched"))
    assert next(events)["type"] == "DELETED"
    events.close()


def test_deleting_the_definition_deletes_its_objects_first(server: LiveServer) -> None:
    resource = Resource(server).defined()
    made = server.request(
        "POST",
        resource.path(),
        resource.obj("held") | {"metadata": {"name": "held", "finalizers": ["a.example.com/b"]}},
    )
    resource.create("free")
    events = server.watch(
        f"{resource.definition_path.rpartition('/')[0]}?watch=1&fieldSelector=metadata.name={resource.name}"
    )
    assert next(events)["type"] == "ADDED"
    server.request("DELETE", resource.definition_path)
    assert next(events)["object"]["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    waiting = next(events)["object"]
    assert waiting["status"]["conditions"][-1]["reason"] == "InstanceDeletionPending"
    assert [one["metadata"]["name"] for one in server.request("GET", resource.path()).json["items"]] == ["held"]
    late = server.request("POST", resource.path(), resource.obj("late"))
    assert (late.code, late.json["reason"]) == (405, "MethodNotAllowed")
    patch = {"metadata": {"finalizers": None}}
    server.request("PATCH", resource.path("held"), patch, content_type="application/merge-patch+json")
    assert made.code == 201
    assert next(event for event in events if event["type"] == "DELETED")
    events.close()
    assert server.request("GET", resource.path()).code == 404


def test_a_name_that_is_taken_is_not_given_twice(server: LiveServer) -> None:
    first = Resource(server).defined()
    late = Resource(server)
    late.group, late.plural = first.group, "gadgets"
    late.name = f"{late.plural}.{late.group}"
    late.definition["metadata"]["name"] = late.name
    late.definition["spec"] |= {
        "group": first.group,
        "names": {"plural": "gadgets", "singular": "gadget", "kind": "Widget", "listKind": "GadgetList"},
    }
    late.defined()
    said = server.request("GET", late.definition_path).json["status"]["conditions"]
    assert [(one["type"], one["status"], one["reason"]) for one in said] == [
        ("NamesAccepted", "False", "KindConflict"),
        ("Established", "False", "NotAccepted"),
    ]
    assert server.request("GET", late.path()).code == 404
    events = server.watch(f"{late.definition_path.rpartition('/')[0]}?watch=1&fieldSelector=metadata.name={late.name}")
    server.request("DELETE", first.definition_path)
    conditions = (event["object"]["status"]["conditions"] for event in events)
    assert next(all(one["status"] == "True" for one in found) for found in conditions if found[0]["status"] == "True")
    events.close()
    assert server.request("GET", late.path()).code == 200


def test_a_large_definition_is_judged_like_any_other(server: LiveServer) -> None:
    resource = Resource(server)
    schema = resource.definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"] |= {f"field{number}": {"type": "string"} for number in range(400)}
    resource.defined()
    assert resource.create("one", field7="x")["spec"]["field7"] == "x"
    worse = Resource(server)
    worse.definition["spec"]["versions"] = copy.deepcopy(resource.definition["spec"]["versions"])
    schema = worse.definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["field7"] = {"type": "odd"}
    refused = server.request("POST", worse.definition_path.rpartition("/")[0], worse.definition)
    assert (refused.code, len(refused.causes)) == (422, 1)


def test_a_version_that_is_no_longer_served_is_gone(server: LiveServer) -> None:
    resource = Resource(server)
    versions = resource.definition["spec"]["versions"]
    versions.append({**copy.deepcopy(versions[0]), "name": "v1beta1", "storage": False, "deprecated": True})
    resource.defined()
    resource.create("one")
    old = server.request("GET", resource.path("one", "v1beta1"))
    assert (old.json["apiVersion"], "is deprecated" in old.headers["Warning"]) == (f"{resource.group}/v1beta1", True)
    groups = {one["name"]: one for one in server.request("GET", "/apis").json["groups"]}
    assert [one["version"] for one in groups[resource.group]["versions"]] == ["v1", "v1beta1"]
    stored = server.request("GET", resource.definition_path).json
    stored["spec"]["versions"][1]["served"] = False
    assert server.request("PUT", resource.definition_path, stored).code == 200
    assert server.request("GET", resource.path("one", "v1beta1")).code == 404
    assert server.request("GET", f"/openapi/v3/apis/{resource.group}/v1beta1").code == 404
    assert server.request("GET", f"/openapi/v3/apis/{resource.group}/v1").code == 200


def test_a_stricter_schema_lets_old_sins_be(server: LiveServer) -> None:
    resource = Resource(server).defined()
    resource.create("old", image="long-name", mode="slow")
    stored = server.request("GET", resource.definition_path).json
    spec = stored["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["image"]["maxLength"] = 4
    spec["properties"]["added"] = {"type": "string", "default": "here"}
    del spec["properties"]["mode"]
    assert server.request("PUT", resource.definition_path, stored).code == 200
    shown = server.request("GET", resource.path("old")).json["spec"]
    assert shown == {"image": "long-name", "replicas": 1, "added": "here"}, "as the schema has it now"

    def patch(**spec: Any) -> int:
        body = {"spec": spec}
        return server.request("PATCH", resource.path("old"), body, content_type="application/merge-patch+json").code

    assert patch(replicas=3) == 200
    assert patch(image="other-name") == 422
