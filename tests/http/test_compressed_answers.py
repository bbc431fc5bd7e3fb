"""Large answers in gzip, for those who accept it."""

from __future__ import annotations

import gzip
import json

from dray.api.wire import MEDIA_TYPE
from dray.server.protobuf import read as protobuf
from live_server import LiveServer


def test_large_answers_are_compressed_for_those_who_accept_it(server: LiveServer, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    large = {"metadata": {"name": "large"}, "data": {"a": "x" * 200_000}}
    assert server.request("POST", path, large).code == 201
    plain = server.request("GET", f"{path}/large")
    assert "Content-Encoding" not in plain.headers
    small = server.request("GET", f"{path}/large", Accept=f"{MEDIA_TYPE}", Accept_Encoding="identity, gzip;q=0")
    assert "Content-Encoding" not in small.headers
    packed = server.request("GET", f"{path}/large", Accept_Encoding="deflate, gzip")
    assert (packed.headers["Content-Encoding"], packed.headers["Vary"]) == ("gzip", "Accept-Encoding")
    assert len(packed.body) < 10_000
    assert json.loads(gzip.decompress(packed.body)) == plain.json
    typed = server.request("GET", path, Accept=MEDIA_TYPE, Accept_Encoding="gzip")
    items = {item["metadata"]["name"]: item for item in protobuf.decode(gzip.decompress(typed.body))["items"]}
    assert items["large"]["data"] == large["data"]


def test_small_answers_and_watches_are_not(server: LiveServer, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    small = server.request("POST", path, {"metadata": {"name": "small"}}, Accept_Encoding="gzip")
    assert (small.code, small.headers["Content-Encoding"]) == (201, None)
    large = {"metadata": {"name": "large"}, "data": {"a": "x" * 200_000}}
    assert server.request("POST", path, large).code == 201
    first, *_ = server.watch(f"{path}?watch=1&timeoutSeconds=1", Accept_Encoding="gzip")
    assert first["type"] == "ADDED"
