"""Configuration in allocation results."""

from __future__ import annotations

from typing import Any

import pytest

from allocation_manifests import claim, device, device_class, one_of, request, resource_slice, run
from dray.allocator import Allocated
from dray.api import codec


def opaque(value: str, driver: str = "gpu.example.com") -> dict[str, Any]:
    return {"opaque": {"driver": driver, "parameters": {"value": value}}}


def config_of(*objects: dict[str, Any]) -> list[tuple[str, list[str], str]]:
    devices = resource_slice(*(device(f"d{n}") for n in range(4)))
    outcome = run(devices, *objects)
    assert isinstance(outcome, Allocated), outcome
    found = codec.to_builtins(outcome.allocations["ns/c"])["devices"].get("config", ())
    return [(c["source"], list(c.get("requests", ())), c["opaque"]["parameters"]["value"]) for c in found]


@pytest.mark.req("4381-66", "4381-68", "4381-94", "4381-99", "4381-100")
def test_class_first_then_claim_whatever_the_driver() -> None:
    gpu = device_class("gpu", config=[opaque("class"), opaque("foreign", "other.example.com")])
    wanted = claim("c", request(), config=[opaque("claim")])
    assert config_of(gpu, wanted) == [
        ("FromClass", [], "class"),
        ("FromClass", [], "foreign"),
        ("FromClaim", [], "claim"),
    ]


@pytest.mark.req("4381-56", "4381-68")
def test_requests_are_named_unless_all_are_covered() -> None:
    classes = (device_class("gpu", config=[opaque("gpu")]), device_class("other", config=[opaque("other")]))
    wanted = claim(
        "c",
        request("r0"),
        request("r1", deviceClassName="other"),
        request("r2"),
        config=[
            {"requests": ["r1"], **opaque("one")},
            {"requests": ["r0", "r1", "r2"], **opaque("all")},
            {"requests": ["gone"], **opaque("none")},
        ],
    )
    assert config_of(*classes, wanted) == [
        ("FromClass", ["r0", "r2"], "gpu"),
        ("FromClass", ["r1"], "other"),
        ("FromClaim", ["r1"], "one"),
        ("FromClaim", [], "all"),
    ]


@pytest.mark.req("SVS-41")
def test_only_the_chosen_alternative_counts() -> None:
    classes = (device_class("gpu", config=[opaque("gpu")]), device_class("other", config=[opaque("other")]))
    alternatives = one_of("r", {"count": 9}, {"deviceClassName": "other"})
    config = [
        {"requests": ["r/s0"], **opaque("s0")},
        {"requests": ["r/s1"], **opaque("s1")},
        {"requests": ["r"], **opaque("r")},
    ]
    wanted = claim("c", request("q"), alternatives, config=config)
    assert config_of(*classes, wanted) == [
        ("FromClass", ["q"], "gpu"),
        ("FromClass", ["r/s1"], "other"),
        ("FromClaim", ["r/s1"], "s1"),
        ("FromClaim", ["r"], "r"),
    ]
