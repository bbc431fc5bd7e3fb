"""The tables of field numbers: as complete as the types are, and right for what kubectl was seen to send."""

from __future__ import annotations

import base64
import typing
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from dray.api import registry
from dray.server.bodies.protobuf import decode as protobuf
from dray.server.bodies.protobuf.messages import KINDS, MESSAGES, ONE_OF, SCALARS, Field, Message

# Posted to have something done, and no kinds that are served by themselves.
NO_KINDS = {("authentication.k8s.io/v1", "TokenRequest"), ("autoscaling/v1", "Scale"), ("policy/v1", "Eviction")}
ANSWERS = {"authentication.k8s.io/v1", "authorization.k8s.io/v1"}
"""The status of a review is the server's answer: nobody sends it."""
OWN_FIELDS = {
    "DeviceTaint": {"data", "description", "evictionsPerSecond"},
    "DeviceTaintSelector": {"deviceClassName", "selectors"},
    "ResourceSliceSpec": {"taints"},
}
"""What has no number: our own additions, and what was there before numbers were published."""


def flat(message: Message) -> dict[str, Field]:
    """The fields as JSON has them."""
    found: dict[str, Field] = {}
    for field in message.values():
        found |= flat(MESSAGES[field.type]) if field.many == "+" else {field.name: field}
    return found


def structs(kind: Any) -> list[Any]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return [kind]
    return [found for inner in typing.get_args(kind) for found in structs(inner)]


def missing(message: Message, kind: Any, path: str, around: tuple[Any, ...] = ()) -> Iterator[str]:
    """The fields of a type that a message has no number for, and those that are text here and an object there."""
    if kind in around:
        return  # a schema in a schema
    fields = flat(message)
    of_kind = msgspec.structs.fields(kind)
    is_object = any(known.encode_name == "metadata" for known in of_kind)
    for known in of_kind:
        name, inner = known.encode_name, structs(known.type)
        if is_object and name in ("apiVersion", "kind"):
            continue  # the envelope names them
        if name not in fields:
            if name not in OWN_FIELDS.get(kind.__name__, set()):
                yield f"{path}.{name}"
        elif bool(inner) == (fields[name].type in SCALARS):
            yield f"{path}.{name} is {fields[name].type}"
        elif inner:
            yield from missing(MESSAGES[fields[name].type], inner[0], f"{path}.{name}", (*around, kind))


@pytest.mark.parametrize(("api_version", "kind"), sorted(set(KINDS) - NO_KINDS))
def test_every_field_has_a_number(api_version: str, kind: str) -> None:
    found = registry.by_kind(api_version, kind)
    lost = set(missing(KINDS[api_version, kind], found.type_of(registry.split_api_version(api_version)[1]), kind))
    assert lost - ({f"{kind}.status"} if api_version in ANSWERS else set()) == set()


def test_no_field_is_named_that_no_type_has() -> None:
    """Some messages serve several types; each field must be in one of them."""
    known: dict[str, set[str]] = {}

    def note(name: str, message: Message, kind: Any) -> None:
        fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
        if fields.keys() <= known.get(name, set()):
            return  # seen before, perhaps around this one
        known.setdefault(name, set()).update(fields)
        for field in flat(message).values():
            if field.name in fields and field.type not in SCALARS:
                note(field.type, MESSAGES[field.type], structs(fields[field.name].type)[0])

    for (api_version, name), message in KINDS.items():
        if (api_version, name) not in NO_KINDS:
            version = registry.split_api_version(api_version)[1]
            note(f"{api_version} {name}", message, registry.by_kind(api_version, name).type_of(version))
    wrong = [
        f"{name}.{field}"
        for name, fields in known.items()
        if name not in ONE_OF  # whose field is told by what stands there
        for field in flat(MESSAGES[name] if name in MESSAGES else KINDS[_kind(name)])
        if field not in fields
    ]
    assert wrong == []


def _kind(text: str) -> tuple[str, str]:
    api_version, _, kind = text.partition(" ")
    return api_version, kind


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
    decoded = protobuf.decode(base64.b64decode(body))
    assert has(decoded, wanted), f"kubectl {command}: {decoded}"
