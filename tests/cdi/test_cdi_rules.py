"""CDI specs: reading, the rules of the schema, versions."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dray import cdi
from dray.api import codec


def spec_document(**changes: Any) -> dict[str, Any]:
    """A valid spec with one device, changed."""
    device = {"name": "gpu0", "containerEdits": {"env": ["GPU=0"]}}
    return {"cdiVersion": "0.6.0", "kind": "example.com/gpu", "devices": [device], **changes}


def edited(**edits: Any) -> dict[str, Any]:
    """A spec whose device has these edits."""
    return spec_document(cdiVersion="1.1.0", devices=[{"name": "gpu0", "containerEdits": edits}])


def problems_of(document: Any) -> str:
    """Why a spec is refused; empty if it is not."""
    try:
        cdi.parse(json.dumps(document).encode(), "x.json")
    except cdi.CdiError as error:
        return str(error)
    return ""


VALID = [
    spec_document(),
    spec_document(cdiVersion="v0.6.0"),
    spec_document(kind="vendor.com/class.sub_1"),
    spec_document(annotations={"Example.com/Key": "any value"}),
    spec_document(devices=[{"name": "0:a-b_c.d", "containerEdits": {"env": ["A="]}}]),
    edited(deviceNodes=[{"path": "/dev/x", "hostPath": "/dev/y", "type": "c", "permissions": "rwm", "fileMode": 438}]),
    edited(deviceNodes=[{"path": "/dev/x", "permissions": "none", "uid": 0, "gid": 4294967295}]),
    edited(mounts=[{"hostPath": "/a", "containerPath": "/b", "options": ["ro"], "type": "bind"}]),
    edited(hooks=[{"hookName": "createContainer", "path": "/bin/x", "args": ["x"], "env": ["A=b"], "timeout": 5}]),
    edited(netDevices=[{"hostInterfaceName": "eth0", "name": "net0"}]),
    edited(intelRdt={"closID": "/", "schemata": ["L3:0=ff"], "enableMonitoring": True}),
    edited(additionalGids=[0, 44]),
    edited(env=["A=b"], mounts=None),
]


@pytest.mark.parametrize("document", VALID)
@pytest.mark.req("4381-161")
def test_valid_specs_are_read_and_written_unchanged(document: dict[str, Any]) -> None:
    spec = cdi.parse(json.dumps(document).encode())
    assert cdi.validate(spec) == ()
    assert cdi.parse(codec.encode(spec)) == spec


INVALID = [
    (spec_document(cdiVersion="9.9.9"), "cdiVersion: Unsupported value"),
    (spec_document(cdiVersion=""), "cdiVersion"),
    (spec_document(kind="gpu"), "kind: .*<vendor>/<class>"),
    (spec_document(kind="1vendor/gpu"), "kind: .*vendor must be"),
    (spec_document(kind="vendor/gpu-"), "kind: .*class must be"),
    (spec_document(kind="vendor/a/b"), "kind: .*class must be"),
    (spec_document(devices=[]), "devices: Required"),
    (spec_document(devices=spec_document()["devices"] * 2), r"devices\[1\].name: Duplicate"),
    (spec_document(devices=[{"name": "a b", "containerEdits": {"env": ["A=b"]}}]), r"devices\[0\].name: Invalid"),
    (spec_document(devices=[{"name": "", "containerEdits": {"env": ["A=b"]}}]), r"devices\[0\].name: Invalid"),
    (spec_document(devices=[{"name": "a", "containerEdits": {}}]), r"devices\[0\].containerEdits: Required"),
    (spec_document(devices=[{"name": "a"}]), r"devices\[0\].containerEdits: Required"),
    (spec_document(annotations={"a b": "x"}), "annotations"),
    (spec_document(annotations={"a": "x" * 300_000}), "at most 262144 bytes"),
    (spec_document(annotations={"a": 1}), "annotations"),
    (spec_document(more=1), "more: unknown field"),
    (spec_document(containerEdits={"env": ["=x"]}), r"^x.json: containerEdits.env\[0\]: .*NAME=value"),
    (edited(env=["NAME"]), r"env\[0\]: .*NAME=value"),
    (edited(env=[1]), "env"),
    (edited(deviceNodes=[{"hostPath": "/dev/x"}]), r"deviceNodes\[0\].path: Required"),
    (edited(deviceNodes=[{"path": "/dev/x", "type": "d"}]), r"deviceNodes\[0\].type: Unsupported"),
    (edited(deviceNodes=[{"path": "/dev/x", "permissions": "rx"}]), r"deviceNodes\[0\].permissions"),
    (edited(deviceNodes=[{"path": "/dev/x", "uid": -1}]), r"deviceNodes\[0\].uid"),
    (edited(mounts=[{"hostPath": "/a"}]), r"mounts\[0\].containerPath: Required"),
    (edited(mounts=[{"containerPath": "/a"}]), r"mounts\[0\].hostPath: Required"),
    (edited(hooks=[{"hookName": "preStart", "path": "/x"}]), r"hooks\[0\].hookName: Unsupported"),
    (edited(hooks=[{"hookName": "prestart"}]), r"hooks\[0\].path: Required"),
    (edited(hooks=[{"hookName": "prestart", "path": "/x", "env": ["x"]}]), r"hooks\[0\].env\[0\]"),
    (edited(hooks=[{"hookName": "prestart", "path": "/x", "args": ["x", "a\0"]}]), r"hooks\[0\].args\[1\].*zero byte"),
    (edited(netDevices=[{"hostInterfaceName": "eth0"}]), r"netDevices\[0\].name: Required"),
    (
        edited(netDevices=[{"hostInterfaceName": "a", "name": "x"}, {"hostInterfaceName": "b", "name": "x"}]),
        r"netDevices\[1\].name: Duplicate",
    ),
    (edited(intelRdt={"closID": "a/b"}), "intelRdt.closID"),
    (edited(additionalGids=[-1]), r"additionalGids\[0\]"),
    ([], "must be one JSON object"),
    ("text", "must be one JSON object"),
]


@pytest.mark.parametrize(("document", "why"), INVALID)
@pytest.mark.req("4381-161")
def test_invalid_specs_are_refused_with_the_field(document: Any, why: str) -> None:
    said = problems_of(document)
    assert said.startswith("x.json: ")
    assert re.search(why, said), said


def test_every_problem_is_said_at_once() -> None:
    said = problems_of({"cdiVersion": "0.3.0", "kind": "x", "devices": [], "more": 1})
    assert all(word in said for word in ("kind:", "devices:", "more:"))


@pytest.mark.parametrize(
    ("edits", "version"),
    [
        ({"env": ["A=b"]}, "0.3.0"),
        ({"mounts": [{"hostPath": "/a", "containerPath": "/b", "type": "bind"}]}, "0.4.0"),
        ({"deviceNodes": [{"path": "/dev/x", "hostPath": "/dev/y"}]}, "0.5.0"),
        ({"additionalGids": [44]}, "0.7.0"),
        ({"intelRdt": {"closID": "x"}}, "0.7.0"),
        ({"netDevices": [{"hostInterfaceName": "eth0", "name": "net0"}]}, "1.1.0"),
        ({"intelRdt": {"enableMonitoring": True}}, "1.1.0"),
    ],
)
def test_a_spec_must_say_a_version_that_has_its_fields(edits: dict[str, Any], version: str) -> None:
    document = edited(**edits)
    assert cdi.minimum_version(cdi.parse(json.dumps(document).encode())) == version
    assert problems_of({**document, "cdiVersion": version}) == ""
    older = {"0.3.0": None, "0.4.0": "0.3.0", "0.5.0": "0.4.0", "0.7.0": "0.6.0", "1.1.0": "1.0.0"}[version]
    if older:
        assert f"need at least {version}" in problems_of({**document, "cdiVersion": older})


def test_names_also_decide_the_version() -> None:
    digit = spec_document(devices=[{"name": "0", "containerEdits": {"env": ["A=b"]}}])
    assert "need at least 0.5.0" in problems_of({**digit, "cdiVersion": "0.4.0"})
    assert "need at least 0.6.0" in problems_of(spec_document(kind="example.com/a.b", cdiVersion="0.5.0"))
    assert "need at least 0.6.0" in problems_of(spec_document(annotations={"a": "b"}, cdiVersion="0.5.0"))


def test_yaml_is_read_too() -> None:
    text = b"---\ncdiVersion: 0.6.0\nkind: example.com/gpu\ndevices:\n- name: a\n  containerEdits:\n    env: [A=b]\n"
    assert cdi.parse(text).devices[0].name == "a"
    with pytest.raises(cdi.CdiError, match=r"^x.yaml:3: "):
        cdi.parse(b"a: b\nc: [", "x.yaml")


@given(st.binary(max_size=200))
def test_garbage_is_refused_in_one_way(data: bytes) -> None:
    with pytest.raises(cdi.CdiError):
        cdi.parse(data)


@pytest.mark.parametrize(
    "text",
    ["", "gpu0", "example.com/gpu", "example.com=gpu0", "/gpu=0", "a/=0", "a/b=", "a/b=-x", "a/b c=0", "a/b=x\n"],
)
def test_ids_must_be_qualified(text: str) -> None:
    with pytest.raises(cdi.CdiError, match="CDI device"):
        cdi.DeviceId.parse(text)


@pytest.mark.req("4381-161")
def test_an_id_in_its_parts() -> None:
    parsed = cdi.DeviceId.parse("example.com/gpu=0:1")
    assert parsed == ("example.com", "gpu", "0:1")
    assert str(parsed) == cdi.qualify("example.com/gpu", "0:1") == "example.com/gpu=0:1"
    assert parsed.kind == "example.com/gpu"


@pytest.mark.parametrize(
    ("driver", "vendor", "own"),
    [
        ("gpu.nvidia.com", "k8s.gpu.nvidia.com", True),
        ("gpu.nvidia.com", "nvidia.com", True),
        ("gpu.intel.com", "intel.com", True),
        ("gpu.example.com", "gpu.example.com", True),
        ("gpu.example.com", "GPU.example.com", True),
        ("0.example.com", "dra.0.example.com", True),
        ("gpu.example.com", "com", False),
        ("gpu.example.com", "other.example.com", False),
        ("gpu.example.com", "fakegpu.example.com", False),
        ("gpu.example.com", "ample.com", False),
        ("gpu.example.com", "k8s.gpu.nvidia.com", False),
        ("gpu.example.com", "gpu.example.com.evil.org", False),
    ],
)
def test_whose_devices_are_a_drivers_own(driver: str, vendor: str, own: bool) -> None:
    assert cdi.is_vendor_of(vendor, driver) is own
