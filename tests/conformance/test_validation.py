"""Requests that were sent to a real Kubernetes 1.37, replayed against the rules: same code, fields and object.

`MiniServer` serves one object at a time, in process: decode, default, prepare, validate; merge and JSON patches.

That is enough for the cases that are about the rules for objects; those that need more wait for the API server
(`needs_a_server` tells them apart by what they ask for, not by how they end).
"""

from __future__ import annotations

import copy
import json
import lzma
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from dray import validation
from dray.api import codec, registry
from dray.api.field import FieldError
from dray.api.meta import Object
from dray.api.times import Time
from dray.validation.metadata import with_metadata

NOW = Time("2026-06-01T12:00:00Z")
UID = "11111111-2222-3333-4444-555555555555"

PATH = re.compile(
    r"/(?:api/(?P<core>v1)|apis/(?P<group>[^/]+)/(?P<version>[^/]+))"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/))?/(?P<plural>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<sub>[^/]+))?)?"
)
QUERIES = ("", "dryRun=All", "fieldValidation=Warn", "fieldValidation=Ignore")


PATCHES = {"application/merge-patch+json", "application/json-patch+json"}


def needs_a_server(step: dict[str, Any]) -> bool:
    """Whether a step is about more than the rules for objects: other formats, missing things, conflicts, deletes."""
    expect, body = step["expect"], step.get("body")
    target = Target.of(step["path"])
    if target is None or "${" in json.dumps(step) or expect["code"] not in (200, 201, 400, 422):
        return True
    match step["method"]:
        case "GET":
            return not target.name or "accept" in step
        case "POST" | "PUT":
            strange = step.get("contentType") != "application/json" or not target.describes(body)
        case "PATCH":
            strange = step.get("contentType") not in PATCHES or body is None or _renames(body, target)
        case _:
            return True
    return strange or (expect["code"] == 422 and not expect.get("causes"))


def _renames(patch: Any, target: Target) -> bool:
    """Whether a merge patch names another object than the path does, which is the server's business."""
    metadata = patch.get("metadata") or {} if isinstance(patch, dict) else {}
    name, namespace = metadata.get("name", target.name), metadata.get("namespace", target.namespace)
    kind = patch.get("kind", target.kind.kind) if isinstance(patch, dict) else target.kind.kind
    revision = metadata.get("resourceVersion", "1")
    return (name, namespace, kind, revision) != (target.name, target.namespace, target.kind.kind, "1")


class Answer(msgspec.Struct):
    """What a request comes back with."""

    code: int
    obj: dict[str, Any] | None = None
    errors: list[FieldError] = []
    warnings: int = 0


class Target(msgspec.Struct, frozen=True):
    """What a path names."""

    kind: registry.Kind
    version: str
    namespace: str
    name: str
    subresource: str

    @classmethod
    def of(cls, path: str) -> Target | None:
        """Read a path; None if it names no object, list of objects or status."""
        split = urlsplit(path)
        match = PATH.fullmatch(split.path)
        kind = registry.by_resource(match["group"] or "", match["plural"]) if match else None
        if match is None or kind is None or kind.namespaced != (match["namespace"] is not None):
            return None
        if split.query not in QUERIES or match["sub"] not in (None, "status"):
            return None
        version = match["core"] or match["version"]
        return cls(kind, version, match["namespace"] or "", match["name"] or "", match["sub"] or "")

    def describes(self, body: Any) -> bool:
        """Whether a body says the same of its place as the path does."""
        if not isinstance(body, dict) or not isinstance(body.get("metadata"), dict | None):
            return False
        metadata = body.get("metadata") or {}
        return (
            body.get("apiVersion") == self.kind.api_version_of(self.version)
            and body.get("kind") == self.kind.kind
            and metadata.get("namespace", self.namespace) in (self.namespace, "")
            and (not self.name or metadata.get("name") == self.name)
        )


class MiniServer:
    """Holds the objects of one case."""

    def __init__(self) -> None:
        self.objects: dict[tuple[registry.Kind, str, str], Object] = {}
        self.namespaces: dict[str, dict[str, str]] = {"default": {}}

    def handle(self, step: dict[str, Any]) -> Answer:
        """One request for which `needs_a_server` is false."""
        target = Target.of(step["path"])
        assert target is not None
        match step["method"]:
            case "POST":
                return self._create(target, step["body"])
            case "PUT":
                return self._update(target, step["body"])
            case "PATCH":
                return self._patch(target, step["body"], step["contentType"])
            case _:
                return self._shown(200, self._stored(target), target)

    def _context(self, target: Target) -> validation.Context:
        labels = self.namespaces.get(target.namespace)
        return validation.Context(now=NOW, namespace_labels=labels, version=target.version)

    def _stored(self, target: Target) -> Object:
        return self.objects[target.kind, target.namespace, target.name]

    def _read(self, target: Target, body: Any) -> Object | Answer:
        reading = codec.read(body, target.kind.type_of(target.version))
        if reading.obj is None:
            return Answer(400, errors=list(reading.errors))
        hub = validation.to_hub(reading.obj, target.kind.api_version)
        return validation.default_object(with_metadata(hub, namespace=target.namespace), NOW)

    def _create(self, target: Target, body: Any) -> Answer:
        obj = self._read(target, body)
        if isinstance(obj, Answer):
            return obj
        name = obj.metadata.name or (obj.metadata.generate_name and obj.metadata.generate_name[:58] + "abcde")
        obj = with_metadata(
            obj,
            name=name,
            uid=UID,
            creation_timestamp=NOW,
            deletion_timestamp=None,
            deletion_grace_period_seconds=None,
            resource_version="",
        )
        ctx = self._context(target)
        obj = validation.prepare_for_create(obj, ctx)
        errors = validation.validate_create(obj, ctx)
        if errors:
            return Answer(422, errors=errors)
        obj = with_metadata(obj, resource_version="1")
        self.objects[target.kind, target.namespace, name] = obj
        if target.kind.kind == "Namespace":
            self.namespaces[name] = obj.metadata.labels
        return self._shown(201, obj, target)

    def _update(self, target: Target, body: Any) -> Answer:
        old = self._stored(target)
        new = self._read(target, body)
        if isinstance(new, Answer):
            return new
        new = with_metadata(new, resource_version=old.metadata.resource_version)
        ctx = self._context(target)
        if target.subresource:
            new = validation.prepare_for_status_update(new, old, ctx)
            errors = validation.validate_status_update(new, old, ctx)
        else:
            new = validation.prepare_for_update(new, old, ctx)
            errors = validation.validate_update(new, old, ctx)
        if errors:
            return Answer(422, errors=errors)
        self.objects[target.kind, target.namespace, target.name] = new
        if target.kind.kind == "Namespace":
            self.namespaces[target.name] = new.metadata.labels
        return self._shown(200, new, target)

    def _patch(self, target: Target, patch: Any, content_type: str) -> Answer:
        shown = self._shown(200, self._stored(target), target).obj
        change = merge_patch if content_type == "application/merge-patch+json" else json_patch
        return self._update(target, change(shown, patch))

    def _shown(self, code: int, obj: Object, target: Target) -> Answer:
        version = target.kind.api_version_of(target.version)
        shown = msgspec.json.decode(codec.encode(validation.from_hub(obj, version)))
        return Answer(code, shown, warnings=len(validation.warnings(obj)))


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def json_patch(document: Any, operations: Any) -> Any:
    """The part of RFC 6902 that the cases use."""
    document = copy.deepcopy(document)
    for operation in operations:
        *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        parent = document
        for part in parents:
            parent = parent[int(part)] if isinstance(parent, list) else parent[part]
        _apply(parent, last, operation)
    return document


def _apply(parent: Any, last: str, operation: dict[str, Any]) -> None:
    key: Any = (len(parent) if last == "-" else int(last)) if isinstance(parent, list) else last
    match operation["op"]:
        case "add" if isinstance(parent, list):
            parent.insert(key, operation["value"])
        case "add" | "replace":
            parent[key] = operation["value"]
        case "remove":
            del parent[key]
        case other:
            raise AssertionError(other)


DATA = Path(__file__).parent / "data" / "validation.jsonl.xz"
CASES = [json.loads(line) for line in lzma.decompress(DATA.read_bytes()).decode().splitlines()]

SERVER_FIELDS = ("uid", "resourceVersion", "creationTimestamp", "managedFields")
PLACEHOLDERS = {
    "<timestamp>": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"),
    "<uid>": re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    "<string>": re.compile(r".*"),
}
DEFAULT_TOLERATIONS = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("not-ready", "unreachable")
]
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


PLAYABLE = [case for case in CASES if not any(map(needs_a_server, case["steps"]))]


def test_most_cases_are_about_objects_and_not_about_a_server() -> None:
    assert len(CASES) == 349
    assert len(PLAYABLE) >= 295


@pytest.mark.parametrize("case", PLAYABLE, ids=lambda case: case["id"])
def test_case(case: dict[str, Any]) -> None:
    server = MiniServer()
    for number, step in enumerate(case["steps"]):
        expect = step["expect"]
        answer = server.handle(step)
        assert answer.code == expect["code"], (number, answer.errors)
        if answer.code == 422:
            found = {(error.reason, error.field) for error in answer.errors}
            assert found == {(cause["reason"], cause["field"]) for cause in expect["causes"]}
        elif answer.obj is not None:
            assert _matches(_admitted(_stripped(answer.obj)), _stripped(expect["object"])), (
                _admitted(_stripped(answer.obj)),
                _stripped(expect["object"]),
            )


def _stripped(obj: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in obj["metadata"].items() if key not in SERVER_FIELDS}
    stripped: dict[str, Any] = _without_nulls({**obj, "metadata": metadata})
    return stripped


def _without_nulls(value: Any) -> Any:
    """Go writes some empty lists as null; to every reader that is the same as their absence."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _admitted(obj: dict[str, Any]) -> dict[str, Any]:
    """What admission would have added on the recorded server."""
    spec = obj.get("spec", {})
    if obj["kind"] == "Pod":
        added = [toleration for toleration in DEFAULT_TOLERATIONS if not _tolerated(spec, toleration["key"])]
        spec = {"priority": 0, "preemptionPolicy": "PreemptLowerPriority", **spec}
        spec["tolerations"] = [*spec.get("tolerations", []), *added]
        return {**obj, "spec": spec}
    if obj["kind"] == "Node" and NOT_READY not in spec.get("taints", []):
        return {**obj, "spec": {**spec, "taints": [*spec.get("taints", []), NOT_READY]}}
    return obj


def _tolerated(spec: dict[str, Any], key: Any) -> bool:
    return any(
        toleration.get("key", "") in ("", key) and toleration.get("effect", "") in ("", "NoExecute")
        for toleration in spec.get("tolerations", [])
    )


def _matches(actual: Any, expected: Any) -> bool:
    if isinstance(expected, str) and expected.startswith("<suffix:"):
        return isinstance(actual, str) and actual.startswith(expected[8:-1])
    if isinstance(expected, str) and expected in PLACEHOLDERS:
        return isinstance(actual, str) and PLACEHOLDERS[expected].fullmatch(actual) is not None
    if expected == "<int>":
        return isinstance(actual, int)
    if isinstance(expected, dict) and isinstance(actual, dict):
        return actual.keys() == expected.keys() and all(_matches(actual[key], expected[key]) for key in expected)
    if isinstance(expected, list) and isinstance(actual, list):
        return len(actual) == len(expected) and all(map(_matches, actual, expected))
    return bool(actual == expected)
