"""The contracts on the wire: names of services and methods, and the field numbers of every message."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor import FileDescriptor

from dray.plugins import contracts
from dray.plugins.generated import (
    dra_v1_pb2,
    dra_v1beta1_pb2,
    health_v1_pb2,
    health_v1alpha1_pb2,
    registration_pb2,
)
from patience import PATIENCE

REGISTRATION = {
    "InfoRequest": {},
    "PluginInfo": {"type": 1, "name": 2, "endpoint": 3, "supported_versions": 4},
    "RegistrationStatus": {"plugin_registered": 1, "error": 2},
    "RegistrationStatusResponse": {},
}
DRA = {
    "Claim": {"namespace": 1, "uid": 2, "name": 3},
    "NodePrepareResourcesRequest": {"claims": 1},
    "NodePrepareResourcesResponse": {"claims": 1},
    "NodePrepareResourceResponse": {"devices": 1, "error": 2},
    "Device": {"request_names": 1, "pool_name": 2, "device_name": 3, "cdi_device_ids": 4},
    "NodeUnprepareResourcesRequest": {"claims": 1},
    "NodeUnprepareResourcesResponse": {"claims": 1},
    "NodeUnprepareResourceResponse": {"error": 1},
}
DRA_V1 = {**DRA, "Device": {**DRA["Device"], "share_id": 5}}
HEALTH = {
    "NodeWatchResourcesRequest": {},
    "NodeWatchResourcesResponse": {"devices": 1},
    "DeviceIdentifier": {"pool_name": 1, "device_name": 2},
    "DeviceHealth": {
        "device": 1,
        "health": 2,
        "last_updated_time": 3,
        "health_check_timeout_seconds": 4,
        "message": 5,
    },
}


@pytest.mark.parametrize(
    ("module", "package", "messages"),
    [
        (registration_pb2, "pluginregistration", REGISTRATION),
        (dra_v1_pb2, "k8s.io.kubelet.pkg.apis.dra.v1", DRA_V1),
        (dra_v1beta1_pb2, "k8s.io.kubelet.pkg.apis.dra.v1beta1", DRA),
        (health_v1_pb2, "v1", HEALTH),
        (health_v1alpha1_pb2, "v1alpha1", HEALTH),
    ],
)
@pytest.mark.req("4381-160", "4381-169", "SVS-55")
def test_packages_and_field_numbers(module: Any, package: str, messages: dict[str, dict[str, int]]) -> None:
    file: FileDescriptor = module.DESCRIPTOR
    assert file.package == package
    found = {
        name: {field.name: field.number for field in message.fields}
        for name, message in file.message_types_by_name.items()
    }
    assert found == messages


@pytest.mark.req("4381-151", "4381-259", "SVS-55")
def test_method_paths_are_those_of_the_services() -> None:
    declared = {
        f"/{service.full_name}/{method.name}"
        for module in (registration_pb2, dra_v1_pb2, dra_v1beta1_pb2, health_v1_pb2, health_v1alpha1_pb2)
        for service in module.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    }
    methods: list[contracts.Method[Any, Any]] = [contracts.GET_INFO, contracts.NOTIFY]
    for table in (contracts.PREPARE, contracts.UNPREPARE, contracts.WATCH_HEALTH):
        methods += list(table.values())
    assert {method.path for method in methods} == declared
    assert declared == {
        "/pluginregistration.Registration/GetInfo",
        "/pluginregistration.Registration/NotifyRegistrationStatus",
        "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources",
        "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources",
        "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodePrepareResources",
        "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodeUnprepareResources",
        "/v1.DRAResourceHealth/NodeWatchResources",
        "/v1alpha1.DRAResourceHealth/NodeWatchResources",
    }


@pytest.mark.req("4381-152")
def test_v1_messages_serve_v1beta1_too() -> None:
    answer = dra_v1_pb2.NodePrepareResourcesResponse()
    answer.claims["uid-1"].devices.add(
        request_names=["gpu"], pool_name="node-1", device_name="gpu-0", cdi_device_ids=["example.com/gpu=a"]
    )
    data = answer.SerializeToString(deterministic=True)
    older = dra_v1beta1_pb2.NodePrepareResourcesResponse.FromString(data)
    assert older.claims["uid-1"].devices[0].cdi_device_ids == ["example.com/gpu=a"]
    assert older.SerializeToString(deterministic=True) == data


@pytest.mark.req("4381-152")
def test_the_plugin_orders_dra_versions_and_the_node_orders_health_versions() -> None:
    assert contracts.choose_dra_version(("v2.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAPlugin")) == "v1beta1.DRAPlugin"
    assert contracts.choose_dra_version(("v1", "1.0.0")) is None
    both = ("v1alpha1.DRAResourceHealth", "v1.DRAResourceHealth")
    assert contracts.choose_health_version(both) == "v1.DRAResourceHealth"
    assert contracts.choose_health_version(("v1.DRAPlugin",)) is None


def test_the_generated_modules_are_current() -> None:
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", "tools.generate_protos", "--check"]
    checked = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
