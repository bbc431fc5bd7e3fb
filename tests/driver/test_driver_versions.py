"""A driver against servers that serve only one version of the API, over HTTP."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from dray import driver
from dray.client.http import HttpClient
from dray.client.kubeconfig import find_connection
from driver_world import Fans
from patience import eventually_async
from server_process import server_on_thread

VERSIONS = ("v1", "v1beta2", "v1beta1")
HOT = driver.Taint(key="fans.example.com/hot", effect="NoSchedule")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.req("4381-214")
async def test_a_driver_uses_the_version_that_the_server_has(version: str) -> None:
    root = Path(tempfile.mkdtemp(prefix="dray-"))
    off = frozenset(f"resource.k8s.io/{other}" for other in VERSIONS if other != version)
    path = f"/apis/resource.k8s.io/{version}"

    fans = Fans()
    fans.devices = [driver.Device("fan-0", attributes={"rpm": 3000}, taints=[HOT])]
    settings = driver.Settings(
        node="n", plugin_dir=root / "plugin", registry_dir=root / "registry", cdi_dir=root / "cdi"
    )
    try:
        with server_on_thread(root / "state", disabled_versions=off) as (server, instance):
            server.request("POST", "/api/v1/nodes", {"metadata": {"name": "n"}})

            def published() -> list[Any]:
                items = server.request("GET", f"{path}/resourceslices").json["items"]
                return [item["spec"] for item in items] if len(items) == 2 else []

            connection = find_connection(instance.kubeconfig)
            async with HttpClient(connection) as client, driver.Runner(fans, settings, client):
                specs = await eventually_async(lambda: asyncio.to_thread(published))
        assert [entry["device"] for spec in specs for entry in spec.get("taints", ())] == ["fan-0"]
    finally:
        shutil.rmtree(root)
