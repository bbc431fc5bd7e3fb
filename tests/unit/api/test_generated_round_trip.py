"""No field of an object is lost between decoding and encoding: schema-driven, over every generated kind."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dray.api import registry, schema
from dray.api.generated import apiextensions, core
from dray.api.meta import Object
from dray.api.struct import decode_value, encode_value
from filled_objects import GENERATED, Filler


def round_trip(data: Any, type_: type[Object]) -> Any:
    decoder = msgspec.json.Decoder(type_, dec_hook=decode_value)
    encoder = msgspec.json.Encoder(enc_hook=encode_value)
    decoded = decoder.decode(msgspec.json.encode(data))
    again = encoder.encode(decoded)
    assert decoder.decode(again) == decoded
    return msgspec.json.decode(again)


def lost(given_: Any, kept: Any, path: str = "") -> list[str]:
    """Paths of what stands in `given_` and not, or otherwise, in `kept`."""
    if isinstance(given_, dict) and isinstance(kept, dict):
        found = [f"{path}.{key}" for key in given_ if key not in kept]
        return found + [
            inner for key in given_ if key in kept for inner in lost(given_[key], kept[key], f"{path}.{key}")
        ]
    if isinstance(given_, list) and isinstance(kept, list) and len(given_) == len(kept):
        pairs = enumerate(zip(given_, kept, strict=True))
        return [inner for index, (one, other) in pairs for inner in lost(one, other, f"{path}[{index}]")]
    return [] if given_ == kept else [path]


@pytest.mark.parametrize("kind", GENERATED, ids=lambda kind: f"{kind.group}/{kind.kind}")
def test_every_field_survives(kind: registry.Kind) -> None:
    full = Filler().fill(schema.for_kind(kind.group, kind.versions[0], kind.kind))
    assert round_trip(full, kind.hub) == full


def test_the_filler_reaches_deep_fields() -> None:
    pod = Filler().fill(schema.for_kind("", "v1", "Pod"))
    container = pod["spec"]["containers"][1]
    assert container["lifecycle"]["preStop"]["httpGet"]["httpHeaders"][0]["value"] == "text"
    assert pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"] == "text"
    assert len(pod["spec"]["volumes"][0]) > 25


NAMES = sorted({name for found in schema.package("io.k8s.api.core.v1").values() for name in found.properties})


@pytest.mark.parametrize("kind", [core.Pod, core.Node])
@settings(max_examples=40)
@given(data=st.data())
def test_whatever_else_is_absent_no_field_is_lost(kind: type[Object], data: st.DataObject) -> None:
    left_out = data.draw(st.frozensets(st.sampled_from(NAMES), max_size=40))
    partial = Filler(left_out).fill(schema.for_kind("", "v1", kind.__name__))
    assert lost(partial, round_trip(partial, kind)) == []


def test_a_real_pod_is_kept() -> None:
    pod = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "train", "namespace": "ml", "labels": {"app": "train"}, "generateName": "train-"},
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example/train:1",
                    "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
                    "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                    "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 10},
                    "resources": {
                        "claims": [{"name": "gpu", "request": "big"}],
                        "limits": {"memory": "1Gi"},
                        "requests": {"cpu": "500m", "memory": "1Gi"},
                    },
                    "volumeMounts": [{"name": "token", "mountPath": "/var/run", "readOnly": True}],
                }
            ],
            "hostUsers": False,
            "nodeSelector": {"zone": "a"},
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
            "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}],
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
            ],
            "volumes": [
                {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
                {"name": "scratch", "emptyDir": {}},
            ],
        },
        "status": {
            "phase": "Running",
            "podIP": "10.0.0.7",
            "podIPs": [{"ip": "10.0.0.7"}],
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "lastProbeTime": None,
                    "lastTransitionTime": "2026-06-01T12:00:00Z",
                }
            ],
        },
    }
    assert round_trip(pod, core.Pod) == pod


def test_schemas_in_a_custom_resource_definition_are_kept() -> None:
    structural = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "one": {"type": "array", "items": {"type": "integer", "maximum": 10, "minimum": 0.5}},
            "each": {"items": [{"type": "string"}, {"$ref": "#/x"}], "additionalItems": True},
            "map": {"additionalProperties": {"type": "string", "x-kubernetes-int-or-string": True}},
            "either": {"not": {"required": ["a"]}, "enum": ["a", 1, None], "default": {"a": [1]}},
        },
        "dependencies": {"a": ["b"], "c": {"type": "object"}},
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": structural}}
    definition = {
        "spec": {"group": "g", "names": {"kind": "K", "plural": "ks"}, "scope": "Cluster", "versions": [version]}
    }
    assert lost(definition, round_trip(definition, apiextensions.CustomResourceDefinition)) == []
