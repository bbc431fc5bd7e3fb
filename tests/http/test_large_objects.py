"""Objects as large as their rules let them be are stored, read and changed; larger requests are refused clearly."""

from __future__ import annotations

import pytest

from dray.process.http import MAX_BODY_BYTES
from live_server import LiveServer

SLICES = "/apis/resource.k8s.io/v1/resourceslices"
TAINTS = 32
DATA_BYTES = 10 * 1024
DESCRIPTION_BYTES = 1024


@pytest.mark.req("implied-19", "5055-02", "5055-16")
def test_the_largest_slice_of_taints_is_stored(server: LiveServer) -> None:
    data = {"log": "x" * (DATA_BYTES - len('{"log":""}'))}
    taint = {"effect": "None", "data": data, "description": "d" * DESCRIPTION_BYTES}
    taints = [{"device": f"gpu-{n}", "taint": {"key": f"example.com/k{n}", **taint}} for n in range(TAINTS)]
    pool = {"name": "large", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": "large", "pool": pool, "taints": taints}
    body = {"metadata": {"name": "largest"}, "spec": spec}
    made = server.request("POST", SLICES, body)
    assert made.code == 201, made.body[:1000]
    try:
        stored = server.request("GET", f"{SLICES}/largest").json
        assert [one["taint"]["data"] for one in stored["spec"]["taints"]] == [data] * TAINTS
        stored["metadata"]["labels"] = {"seen": "yes"}
        changed = server.request("PUT", f"{SLICES}/largest", stored)
        assert changed.code == 200, changed.body[:1000]
        assert len(changed.body) > TAINTS * (DATA_BYTES + DESCRIPTION_BYTES)
    finally:
        assert server.request("DELETE", f"{SLICES}/largest").code == 200


@pytest.mark.req("implied-19")
def test_a_request_over_the_limit_is_told_what_the_limit_is(server: LiveServer) -> None:
    refused = server.request("POST", SLICES, b" " * (MAX_BODY_BYTES + 1))
    assert (refused.code, refused.json["reason"]) == (413, "RequestEntityTooLarge")
    assert str(MAX_BODY_BYTES) in refused.json["message"]
