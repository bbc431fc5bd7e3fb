"""From a state directory into etcd and back, by backup files."""

from __future__ import annotations

from pathlib import Path

from dray.store.etcd import EtcdAddress
from etcd_world import Etcd, new_prefix
from server_process import run_dray, server_on_thread

MAPS = "/api/v1/namespaces/default/configmaps"


def test_from_a_directory_into_etcd_and_back(etcd: Etcd, tmp_path: Path) -> None:
    prefix = new_prefix()
    store = ("--store", f"etcd={etcd.urls[0]}", "--etcd-prefix", prefix)
    with server_on_thread(tmp_path / "old") as (client, _):
        made = client.request("POST", MAPS, {"metadata": {"name": "a"}, "data": {"x": "1"}}).json
        client.request("POST", MAPS, {"metadata": {"name": "gone"}})
        client.request("DELETE", f"{MAPS}/gone")
    for command in (("backup", tmp_path / "first", "--dir", tmp_path / "old"), ("restore", tmp_path / "first", *store)):
        done = run_dray(*command)
        assert done.returncode == 0, done.stderr
    with server_on_thread(tmp_path / "old", etcd=EtcdAddress(urls=etcd.urls, prefix=prefix)) as (client, _):
        found = client.request("GET", f"{MAPS}/a").json
        assert found["metadata"]["uid"] == made["metadata"]["uid"]
        assert client.request("GET", f"{MAPS}/gone").code == 404
        changed = client.request("PUT", f"{MAPS}/a", {**found, "data": {"x": "2"}})
        assert changed.code == 200
        assert run_dray("backup", tmp_path / "second", *store).returncode == 0
    refused = run_dray("restore", tmp_path / "second", *store)
    assert (refused.returncode, "already" in refused.stderr) == (2, True)
    assert run_dray("restore", tmp_path / "second", "--dir", tmp_path / "new").returncode == 0
    with server_on_thread(tmp_path / "new") as (client, _):
        back = client.request("GET", f"{MAPS}/a").json
        assert (back["data"], back["metadata"]["uid"]) == ({"x": "2"}, made["metadata"]["uid"])
        revision = int(client.request("GET", MAPS).json["metadata"]["resourceVersion"])
        assert revision > int(changed.json["metadata"]["resourceVersion"])
