"""From a state directory into etcd and back, by backup files."""

from __future__ import annotations

from pathlib import Path
from subprocess import CompletedProcess

from dray.store.etcd import EtcdAddress
from dray_process import run_dray
from etcd_world import Etcd, new_prefix
from server_process import server_on_thread

MAPS = "/api/v1/namespaces/default/configmaps"
REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"
MIB = 1 << 20


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


def test_what_is_large_moves_too_and_what_etcd_does_not_take_is_told(etcd: Etcd, tmp_path: Path) -> None:
    """etcd takes 1.5 MiB at once, its gRPC 2: objects that are larger together go one after the other."""
    prefix = new_prefix()
    store = ("--store", f"etcd={etcd.urls[0]}", "--etcd-prefix", prefix)
    with server_on_thread(tmp_path / "old") as (client, _):
        for number in range(4):
            assert client.request("POST", MAPS, large(f"m{number}", 0.9)).code == 201
        assert run_backup(tmp_path / "small", tmp_path / "old").returncode == 0
        assert client.request("POST", REVISIONS, large("r", 1.8)).code == 201
        assert run_backup(tmp_path / "large", tmp_path / "old").returncode == 0
    refused = run_dray("restore", tmp_path / "large", *store)
    assert refused.returncode == 2
    assert "controllerrevisions.apps default/r has 1887" in refused.stderr
    assert refused.stderr.count("\n") == 1
    done = run_dray("restore", tmp_path / "small", *store)  # nothing was left of the first try
    assert done.returncode == 0, done.stderr
    with server_on_thread(tmp_path / "new", etcd=EtcdAddress(urls=etcd.urls, prefix=prefix)) as (client, _):
        assert len(client.request("GET", f"{MAPS}/m3").json["data"]["x"]) == int(0.9 * MIB)
        for size in (1.8, 2.8):
            answer = client.request("POST", REVISIONS, large("r", size))
            assert (answer.code, answer.json["reason"]) == (413, "RequestEntityTooLarge")
            assert "--max-request-bytes" in answer.json["message"]
        assert client.request("POST", REVISIONS, large("r", 1.2)).code == 201


def large(name: str, size: float) -> dict[str, object]:
    return {
        "metadata": {"name": name},
        "data": {"x": "x" * int(size * MIB)},
        **({"revision": 1} if name == "r" else {}),
    }


def run_backup(file: Path, directory: Path) -> CompletedProcess[str]:
    return run_dray("backup", file, "--dir", directory)
