"""The rules for the status of ResourceClaims."""

from __future__ import annotations

from typing import Any

import pytest

import builders

RESULT = {"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}
UUID = "0a0b0c0d-1111-2222-3333-444455556666"
POD = {"resource": "pods", "name": "p", "uid": "u1"}
CONDITION = {"type": "Ready", "status": "True", "reason": "Fine", "lastTransitionTime": "2026-01-01T00:00:00Z"}


def a_claim(**status: Any) -> dict[str, Any]:
    return builders.claim("claim", builders.request("gpu"), status=status)


def allocation(*results: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"devices": {"results": list(results), **more}}


RESULTS = [
    ({}, set()),
    ({"request": "other"}, {("Invalid", "request")}),
    ({"driver": "a b"}, {("Invalid", "driver")}),
    ({"driver": ""}, {("Required", "driver")}),
    ({"pool": "A"}, {("Invalid", "pool")}),
    ({"pool": ""}, {("Required", "pool")}),
    ({"device": "A"}, {("Invalid", "device")}),
    ({"shareID": UUID}, set()),
    ({"shareID": UUID.upper()}, {("Invalid", "shareID")}),
    ({"shareID": "x"}, {("Invalid", "shareID")}),
    ({"tolerations": [{"key": "a", "operator": "Exists"}] * 17}, set()),
    ({"tolerations": [{"key": "a", "operator": "Has"}]}, {("NotSupported", "tolerations[0].operator")}),
    ({"bindingConditions": ["a"]}, {("Invalid", "bindingFailureConditions")}),
]


@pytest.mark.req("4381-58", "4381-64", "4381-67", "SVS-16", "SVS-48")
@pytest.mark.parametrize(("fields", "expected"), RESULTS)
def test_results(verdict: Any, fields: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    found = verdict(a_claim(allocation=allocation({**RESULT, **fields})), a_claim())
    assert found == {(reason, f"status.allocation.devices.results[0].{field}") for reason, field in expected}


@pytest.mark.req("4381-65", "4381-66", "4381-68", "SVS-46")
def test_limits_and_configuration(verdict: Any) -> None:
    config = {"source": "FromClass", "opaque": {"driver": "d.example.com", "parameters": {}}}
    path = "status.allocation.devices"

    def judge(*results: dict[str, Any], **more: Any) -> set[tuple[str, str]]:
        found: set[tuple[str, str]] = verdict(a_claim(allocation=allocation(*results, **more)), a_claim())
        return found

    assert judge(*[RESULT] * 32, config=[config] * 64) == set()
    assert judge(*[RESULT] * 33) == {("TooMany", f"{path}.results")}
    assert judge(config=[config] * 65) == {("TooMany", f"{path}.config")}
    assert judge(config=[{**config, "source": ""}]) == {("Required", f"{path}.config[0].source")}
    assert judge(config=[{**config, "source": "X"}]) == {("NotSupported", f"{path}.config[0].source")}
    assert judge(config=[{**config, "requests": ["x"]}]) == {("Invalid", f"{path}.config[0].requests[0]")}


@pytest.mark.req("4381-59", "4381-60", "4381-61", "4381-131", "4381-252", "SVS-44", "SVS-49")
def test_reserved_for(verdict: Any) -> None:
    path = "status.reservedFor"

    def judge(*consumers: dict[str, Any], allocated: bool = True) -> set[tuple[str, str]]:
        status: dict[str, Any] = {"reservedFor": list(consumers)}
        if allocated:
            status["allocation"] = allocation(RESULT)
        found: set[tuple[str, str]] = verdict(a_claim(**status), a_claim())
        return found

    assert judge(POD, {"apiGroup": "x.example.com", "resource": "jobs", "name": "j", "uid": "u2"}) == set()
    assert judge(*({**POD, "uid": f"u{number}"} for number in range(256))) == set()
    assert judge(*({**POD, "uid": f"u{number}"} for number in range(257))) == {("TooMany", path)}
    assert judge(POD, POD) == {("Duplicate", f"{path}[1]")}
    assert judge({}) == {("Required", f"{path}[0].{field}") for field in ("resource", "name", "uid")}
    assert judge(POD, allocated=False) == {("Forbidden", path)}


@pytest.mark.req("SVS-49")
def test_a_claim_that_is_being_deleted_gets_no_new_users(verdict: Any, edit: Any) -> None:
    old = edit(
        a_claim(allocation=allocation(RESULT), reservedFor=[POD]),
        {"metadata.deletionTimestamp": "2026-01-01T00:00:00Z"},
    )
    more = edit(old, {"status.reservedFor": [POD, {**POD, "uid": "u2"}]})
    assert verdict(more, old) == {("Forbidden", "status.reservedFor")}
    assert verdict(edit(old, {"status.reservedFor": []}), old) == set()


@pytest.mark.req("4381-100", "SVS-49")
def test_an_allocation_stays_until_it_is_cleared(verdict: Any, edit: Any) -> None:
    old = a_claim(allocation=allocation(RESULT))
    changed = edit(old, {"status.allocation.devices.results[0].device": "gpu-1"})
    assert verdict(changed, old) == {("Invalid", "status.allocation")}
    assert verdict(a_claim(), old) == set()


DEVICE = {"driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}
DEVICES = [
    ({}, set()),
    ({"device": "gpu-1"}, {("Invalid", "")}),
    ({"conditions": [CONDITION]}, set()),
    ({"conditions": [{**CONDITION, "status": "Maybe"}]}, {("NotSupported", ".conditions[0].status")}),
    ({"conditions": [{**CONDITION, "type": ""}]}, {("Required", ".conditions[0].type")}),
    ({"conditions": [{**CONDITION, "reason": "a b"}]}, {("Invalid", ".conditions[0].reason")}),
    ({"conditions": [CONDITION, CONDITION]}, {("Duplicate", ".conditions[1]")}),
    (
        {"conditions": [{**CONDITION, "type": f"T{number}"} for number in range(9)]},
        {("TooMany", ".conditions")},
    ),
    ({"data": {"a": 1}}, set()),
    ({"data": [1]}, {("Invalid", ".data")}),
    ({"networkData": {"ips": ["10.1.1.1/24", "2001:db8::1/64"]}}, set()),
    ({"networkData": {"ips": ["10.1.1.1"]}}, {("Invalid", ".networkData.ips[0]")}),
    ({"networkData": {"ips": ["2001:DB8::1/64"]}}, {("Invalid", ".networkData.ips[0]")}),
    ({"networkData": {"ips": ["10.1.1.1/24"] * 2}}, {("Duplicate", ".networkData.ips[1]")}),
    ({"networkData": {"interfaceName": "a" * 257}}, {("TooLong", ".networkData.interfaceName")}),
    ({"networkData": {"hardwareAddress": "a" * 129}}, {("TooLong", ".networkData.hardwareAddress")}),
]


@pytest.mark.req("SVS-48")
@pytest.mark.parametrize(("fields", "expected"), DEVICES)
def test_what_drivers_say_of_devices(verdict: Any, fields: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    claim = a_claim(allocation=allocation(RESULT), devices=[{**DEVICE, **fields}])
    assert verdict(claim, a_claim()) == {(reason, f"status.devices[0]{field}") for reason, field in expected}
