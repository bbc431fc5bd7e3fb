"""The tables of field numbers: as complete as the types are, and right for what kubectl was seen to send."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

import msgspec
import pytest

from dray.api import schema
from dray.api.resource import DeviceTaint, DeviceTaintSelector
from dray.server.bodies import unsaid
from dray.server.protobuf import read, tables, write
from dray.server.protobuf.tables import Field
from served_kinds import TYPED

OWN_FIELDS = {
    "DeviceTaint": {"data", "description", "evictionsPerSecond"},
    "DeviceTaintSelector": {"deviceClassName", "selectors"},
    "ResourceSliceSpec": {"taints"},
}
"""What has no number: our own additions, and what was there before numbers were published."""


def test_what_has_no_number_is_kept_when_a_client_that_does_not_see_it_writes_the_object() -> None:
    def names(fields: tuple[str, ...], struct: type[msgspec.Struct]) -> set[str]:
        known = {field.name: field.encode_name for field in msgspec.structs.fields(struct)}
        return {known[name] for name in fields}

    assert names(unsaid.TAINT_FIELDS, DeviceTaint) == OWN_FIELDS["DeviceTaint"]
    assert names(unsaid.SELECTOR_FIELDS, DeviceTaintSelector) == OWN_FIELDS["DeviceTaintSelector"]


def all_messages() -> set[str]:
    """The messages that served kinds are made of."""
    found: set[str] = set()
    waiting = [tables.name_of(*typed) for typed in TYPED]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [field.type for field in tables.message(name) if field.type not in tables.VALUES]
    return found


@pytest.mark.parametrize("name", sorted(all_messages()))
def test_every_field_has_a_number_and_the_type_that_the_schema_has(name: str) -> None:
    try:
        definition = schema.definition(name)
    except schema.UnknownDefinitionError:
        return  # a message whose fields JSON has one level higher, where they are looked at
    if not definition.properties:
        return  # nothing is in it, or a schema in one of the forms that schemas may have
    fields = tables.flat(name)
    own = OWN_FIELDS.get(name.rpartition(".")[2], set())
    is_object = "metadata" in definition.properties
    named_outside = {"apiVersion", "kind"} if is_object else set()
    assert set(definition.properties) - own - named_outside == set(fields)
    for json_name, field in fields.items():
        found = definition.properties[json_name]
        of_many = {"*": found.items, "@": found.values}.get(field.many, found)
        assert of_many is not None, json_name
        if field.type not in tables.VALUES:
            assert of_many.ref == field.type, json_name


class Maker:
    """Makes objects of a message, as many-sided as their depth allows."""

    def __init__(self, seed: int, *, fill: float) -> None:
        self._random = random.Random(seed)
        self._fill = fill

    def object(self, name: str, depth: int = 6) -> dict[str, Any]:
        """A value of a message; of alternatives, JSON has one."""
        made = {}
        for json_name, field in tables.flat(name).items():
            if self._random.random() < self._fill and (depth or field.type in tables.VALUES):
                made[json_name] = self._field(field, depth - 1)
        return made

    def _field(self, field: Field, depth: int) -> Any:
        if field.many == "*":
            return [self._one(field.type, depth) for _ in range(self._random.randint(1, 2))]
        if field.many == "@":
            return {f"k{number}": self._one(field.type, depth) for number in range(self._random.randint(1, 2))}
        return self._one(field.type, depth)

    def _one(self, kind: str, depth: int) -> Any:
        choose = self._random
        match kind:
            case "text":
                return choose.choice(("", "a", "\u00e9\u2713", "x" * 300))
            case "int":
                return choose.choice((0, -1, 300, 2**63 - 1, -(2**63)))
            case "bool":
                return choose.random() < 0.5
            case "double":
                return choose.choice((0, 1, -2.5))
            case "bytes":
                return base64.b64encode(choose.randbytes(choose.randint(0, 9))).decode()
            case "time":
                return choose.choice(("2026-06-01T12:00:00Z", "1969-12-31T23:59:59Z"))
            case "microtime":
                return "2026-06-01T12:00:00.000123Z"
            case "quantity":
                return choose.choice(("0", "12Gi", "500m"))
            case "json":
                return choose.choice(({"a": [1, None, "x"]}, [1], "text", 7, False))
            case "int-or-string":
                return choose.choice((0, 8080, -1, "http", ""))
            case "texts":
                return ["a", ""]
        return self._alternative(kind, depth) if ".JSONSchemaPropsOr" in kind else self.object(kind, depth)

    def _alternative(self, kind: str, depth: int) -> Any:
        inner = self.object(f"{kind.rpartition('.')[0]}.JSONSchemaProps", min(depth, 1))
        if kind.endswith("OrBool"):
            return self._random.choice((True, False, inner))
        return self._random.choice((inner, ["a"] if kind.endswith("OrStringArray") else [inner, inner]))


@pytest.mark.parametrize(("api_version", "kind"), sorted(TYPED))
def test_what_is_written_is_read_as_it_was(api_version: str, kind: str) -> None:
    for seed, fill in enumerate((0.9, 0.5, 0.2, 0.2)):
        depth = 3 if kind in ("CustomResourceDefinition",) else 6
        made = Maker(seed, fill=fill).object(tables.name_of(api_version, kind), depth)
        value = {"apiVersion": api_version, "kind": kind, **made}
        text = json.dumps(value).encode()
        assert read.decode(write.from_json(text)) == value
        listed = {
            "apiVersion": api_version,
            "kind": f"{kind}List",
            "metadata": {"resourceVersion": "7"},
            "items": [made],
        }
        if tables.is_known(api_version, f"{kind}List"):
            assert read.decode(write.from_json(json.dumps(listed).encode())) == listed


def test_what_has_no_number_is_left_out() -> None:
    rule = {"taint": {"key": "a", "effect": "NoExecute", "description": "x"}, "deviceSelector": {"driver": "d"}}
    value = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "spec": rule}
    decoded = read.decode(write.from_json(json.dumps(value).encode()))
    assert decoded["spec"] == {"taint": {"key": "a", "effect": "NoExecute"}, "deviceSelector": {"driver": "d"}}


def test_schemas_may_be_nested_deeply() -> None:
    found: dict[str, Any] = {"type": "string"}
    for _ in range(150):
        found = {"type": "object", "properties": {"a": found}}
    version = {"name": "v1", "schema": {"openAPIV3Schema": found}}
    spec = {"group": "example.com", "versions": [version]}
    value = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}
    assert read.decode(write.from_json(json.dumps(value).encode())) == value


POD = {"dnsPolicy": "", "restartPolicy": "", "schedulerName": "", "hostNetwork": False}
SEEN: list[tuple[str, str, dict[str, Any]]] = [
    (
        "create deployment web --image=nginx --port=80",
        (
            "azhzAAoVCgdhcHBzL3YxEgpEZXBsb3ltZW50ErgBCh8KA3dlYhIAGgAiACoAMgA4AEIAWgoKA2FwcBIDd2ViEoYBCAESDAoKCgNhcHASA3dlYhps"
            "ChwKABIAGgAiACoAMgA4AEIAWgoKA2FwcBIDd2ViEkwSLgoFbmdpbngSBW5naW54KgAyCgoAEAAYUCIAKgBCAGoAcgCAAQCIAQCQAQCiAQAaADIA"
            "QgBKAFIAWABgAGgAggEAigEAmgEAwgEAIgIKACgAOAAaDAgAEAAYACAAKAA4ABoAIgA="
        ),
        {
            "kind": "Deployment",
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"app": "web"}},
                "strategy": {"type": ""},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": POD
                    | {"containers": [{"name": "nginx", "image": "nginx", "ports": [{"containerPort": 80}]}]},
                },
            },
        },
    ),
    (
        "create job j --image=busybox -- sleep 1",
        (
            "azhzAAoPCghiYXRjaC92MRIDSm9iEoIBChEKAWoSABoAIgAqADIAOABCABJjMmEKEAoAEgAaACIAKgAyADgAQgASTRIqCgFqEgdidXN5Ym94GgVz"
            "bGVlcBoBMSoAQgBqAHIAgAEAiAEAkAEAogEAGgVOZXZlcjIAQgBKAFIAWABgAGgAggEAigEAmgEAwgEAGgggACgAMAA6ABoAIgA="
        ),
        {
            "kind": "Job",
            "metadata": {"name": "j"},
            "spec": {
                "template": {
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [{"name": "j", "image": "busybox", "command": ["sleep", "1"]}],
                    }
                }
            },
        },
    ),
    (
        "create cronjob c --image=busybox --schedule=@daily -- true",
        (
            "azhzAAoTCghiYXRjaC92MRIHQ3JvbkpvYhKcAQoRCgFjEgAaACIAKgAyADgAQgAShAEKBkBkYWlseRoAKngKEQoBYxIAGgAiACoAMgA4AEIAEmMy"
            "YQoQCgASABoAIgAqADIAOABCABJNEiYKAWMSB2J1c3lib3gaBHRydWUqAEIAagByAIABAIgBAJABAKIBABoJT25GYWlsdXJlMgBCAEoAUgBYAGAA"
            "aACCAQCKAQCaAQDCAQAaABoAIgA="
        ),
        {
            "kind": "CronJob",
            "spec": {
                "schedule": "@daily",
                "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "OnFailure"}}}},
            },
        },
    ),
    (
        "create service nodeport s --tcp=80:8080",
        (
            "azhzAAoNCgJ2MRIHU2VydmljZRJiChsKAXMSABoAIgAqADIAOABCAFoICgNhcHASAXMSPwobCgc4MC04MDgwEgNUQ1AYUCIHCAAQkD8aACgAEggK"
            "A2FwcBIBcxoAIghOb2RlUG9ydDoAQgBSAFoAYABoABoCCgAaACIA"
        ),
        {
            "kind": "Service",
            "spec": {
                "type": "NodePort",
                "selector": {"app": "s"},
                "ports": [{"name": "80-8080", "protocol": "TCP", "port": 80, "targetPort": 8080, "nodePort": 0}],
            },
        },
    ),
    (
        "create ingress i --rule=a.example.com/x=s:80",
        (
            "azhzAAofChRuZXR3b3JraW5nLms4cy5pby92MRIHSW5ncmVzcxJIChEKAWkSABoAIgAqADIAOABCABIvGi0KDWEuZXhhbXBsZS5jb20SHAoaChgK"
            "Ai94EgsiCQoBcxIECgAQUBoFRXhhY3QaAgoAGgAiAA=="
        ),
        {
            "kind": "Ingress",
            "spec": {
                "rules": [
                    {
                        "host": "a.example.com",
                        "http": {
                            "paths": [
                                {
                                    "path": "/x",
                                    "pathType": "Exact",
                                    "backend": {"service": {"name": "s", "port": {"number": 80}}},
                                }
                            ]
                        },
                    }
                ]
            },
        },
    ),
    (
        "create pdb b --selector=app=web --min-available=50%",
        (
            "azhzAAogCglwb2xpY3kvdjESE1BvZERpc3J1cHRpb25CdWRnZXQSOgoRCgFiEgAaACIAKgAyADgAQgASGQoJCAEQABoDNTAlEgwKCgoDYXBwEgN3"
            "ZWIaCggAGAAgACgAMAAaACIA"
        ),
        {
            "kind": "PodDisruptionBudget",
            "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": 0, "expectedPods": 0},
        },
    ),
    (
        "create priorityclass pc --value=-5",
        (
            "azhzAAolChRzY2hlZHVsaW5nLms4cy5pby92MRINUHJpb3JpdHlDbGFzcxI5ChIKAnBjEgAaACIAKgAyADgAQgAQ+///////////ARgAIgAqFFBy"
            "ZWVtcHRMb3dlclByaW9yaXR5GgAiAA=="
        ),
        {"kind": "PriorityClass", "value": -5, "globalDefault": False, "preemptionPolicy": "PreemptLowerPriority"},
    ),
]


def has(found: Any, wanted: Any) -> bool:
    """Whether a value has everything of another one."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(name in found and has(found[name], it) for name, it in wanted.items())
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(has, found, wanted))
    return bool(found == wanted)


@pytest.mark.parametrize(("command", "body", "wanted"), SEEN, ids=[command for command, _, _ in SEEN])
def test_what_kubectl_sends_is_read(command: str, body: str, wanted: dict[str, Any]) -> None:
    decoded = read.decode(base64.b64decode(body))
    assert has(decoded, wanted), f"kubectl {command}: {decoded}"
