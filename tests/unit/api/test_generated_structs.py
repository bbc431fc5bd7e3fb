"""The generated structs have the fields of the schema, under the names and with the zero values of Kubernetes."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dray.api import generated, registry, schema
from dray.api.generated import apps, core
from dray.api.struct import Struct, decode_value, encode_value

MODULES = sorted(path.stem for path in Path(generated.__file__).parent.glob("*.py") if path.stem != "__init__")

# Types that stand in a module because it refers to them.
BORROWED = ("io.k8s.apimachinery.pkg.apis.meta.v1", "io.k8s.api.scheduling.v1alpha3")


def structs_of(module: str) -> dict[str, type[Struct]]:
    found = import_module(f"dray.api.generated.{module}")
    return {name: value for name, value in vars(found).items() if getattr(value, "__module__", "") == found.__name__}


def definition_of(struct: type[Struct]) -> schema.Definition:
    module, version, name = (struct.__doc__ or "").removesuffix(".").replace("/", " ").split()
    group = {"apiextensions": "apiextensions.k8s.io", "apiregistration": "apiregistration.k8s.io", "core": ""}
    for package in (schema.package_of(group.get(module, module), version), *BORROWED):
        if name in schema.package(package):
            return schema.package(package)[name]
    raise AssertionError(f"no definition for {struct}")


@pytest.mark.parametrize("module", MODULES)
def test_every_struct_has_exactly_the_fields_of_its_definition(module: str) -> None:
    structs = structs_of(module)
    assert structs
    for struct in structs.values():
        assert set(struct.__struct_encode_fields__) == set(definition_of(struct).properties), struct


@pytest.mark.parametrize("kind", registry.kinds(), ids=lambda kind: f"{kind.group}/{kind.kind}")
def test_every_kind_is_served_with_a_schema(kind: registry.Kind) -> None:
    for version in kind.versions:
        found = schema.for_kind(kind.group, version, kind.kind)
        assert set(kind.type_of(version).__struct_encode_fields__) == set(found.properties)


@pytest.mark.parametrize(
    ("struct", "attribute", "json_name"),
    [
        (core.PodStatus, "pod_ips", "podIPs"),
        (core.PodStatus, "host_ips", "hostIPs"),
        (core.PodSpec, "host_pid", "hostPID"),
        (core.PodSpec, "host_ipc", "hostIPC"),
        (core.PodSpec, "set_hostname_as_fqdn", "setHostnameAsFQDN"),
        (core.NodeSpec, "pod_cidrs", "podCIDRs"),
        (core.NodeSpec, "provider_id", "providerID"),
        (core.NodeSystemInfo, "system_uuid", "systemUUID"),
        (core.ServiceSpec, "cluster_ip", "clusterIP"),
        (core.ServiceSpec, "cluster_ips", "clusterIPs"),
        (core.ServiceSpec, "external_ips", "externalIPs"),
        (core.ContainerStatus, "container_id", "containerID"),
        (core.SecurityContext, "se_linux_options", "seLinuxOptions"),
        (core.FCVolumeSource, "target_wwns", "targetWWNs"),
        (core.Volume, "scale_io", "scaleIO"),
    ],
)
def test_irregular_names(struct: type[Struct], attribute: str, json_name: str) -> None:
    assert dict(zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True))[attribute] == json_name


def test_names_that_python_keeps_for_itself() -> None:
    extensions = structs_of("apiextensions")["JSONSchemaProps"]
    assert "not_" in extensions.__struct_fields__
    assert "from_" in structs_of("networking")["NetworkPolicyIngressRule"].__struct_fields__


@pytest.mark.parametrize(
    ("struct", "given", "written"),
    [
        # Go leaves out a zero, unless the field is a pointer.
        (core.EnvVar, {"name": "A", "value": ""}, {"name": "A"}),
        (core.NodeSpec, {"unschedulable": False}, {}),
        (core.PersistentVolumeClaimSpec, {"storageClassName": ""}, {"resources": {}, "storageClassName": ""}),
        (core.SecurityContext, {"privileged": False, "runAsUser": 0}, {"privileged": False, "runAsUser": 0}),
        (core.Toleration, {"tolerationSeconds": 0, "key": ""}, {"tolerationSeconds": 0}),
        (core.VolumeMount, {"mountPath": "/", "name": "v", "readOnly": False}, {"mountPath": "/", "name": "v"}),
        (core.Probe, {"periodSeconds": 0, "terminationGracePeriodSeconds": 0}, {"terminationGracePeriodSeconds": 0}),
        # Required fields and plain structs are always written.
        (core.Container, {}, {"name": "", "resources": {}}),
        (core.ContainerPort, {}, {"containerPort": 0}),
        (core.ResourceFieldSelector, {"resource": "limits.cpu"}, {"resource": "limits.cpu", "divisor": "0"}),
        (core.Service, {}, {"metadata": {}, "spec": {}, "status": {"loadBalancer": {}}}),
        (core.ServicePort, {"port": 1}, {"port": 1, "targetPort": 0}),
        (core.NodeDaemonEndpoints, {}, {"kubeletEndpoint": {"Port": 0}}),
        (core.PodTemplateSpec, {"spec": {"containers": []}}, {"metadata": {}, "spec": {"containers": []}}),
        # A time that is no pointer is written as null.
        (
            core.PodCondition,
            {"type": "Ready", "status": "True"},
            {"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": None},
        ),
        (
            apps.ReplicaSetSpec,
            {"replicas": 0},
            {"replicas": 0, "selector": None, "template": {"metadata": {}, "spec": {"containers": []}}},
        ),
        (core.PodSpec, {"hostNetwork": False, "hostUsers": False}, {"containers": [], "hostUsers": False}),
    ],
)
def test_zero_values_go_to_the_wire_as_in_kubernetes(
    struct: type[Struct], given: dict[str, Any], written: dict[str, Any]
) -> None:
    decoded = msgspec.convert(given, struct, dec_hook=decode_value)
    encoded = msgspec.json.encode(decoded, enc_hook=encode_value)
    assert msgspec.json.decode(encoded) == written


def test_a_module_loads_only_what_it_refers_to() -> None:
    code = "import sys, dray.api.generated.core; print([m for m in sys.modules if m.startswith('dray.api.generated.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['dray.api.generated.core']"
