"""Servers as users run them, on one etcd: what one is told another knows, one may be killed, and etcd may be away."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from dray.store.etcd import EtcdAddress
from etcd_world import Etcd, new_prefix, running_etcd
from live_server import LiveServer
from patience import eventually
from server_process import ServerProcess, server_on_thread

MAPS = "/api/v1/namespaces/default/configmaps"


def create(server: LiveServer, name: str) -> int:
    made = server.request("POST", MAPS, {"metadata": {"name": name}})
    assert made.code == 201, made.body
    return int(made.json["metadata"]["resourceVersion"])


def test_two_servers_are_one_cluster_and_either_may_be_killed(etcd: Etcd, tmp_path: Path) -> None:
    prefix = new_prefix()
    options = ("--store", f"etcd={etcd.urls[0]}", "--etcd-prefix", prefix, "--server-name", "api.example.com")
    address = EtcdAddress(urls=etcd.urls, prefix=prefix)
    with (
        ServerProcess(tmp_path / "one", *options) as one,
        server_on_thread(tmp_path / "other", etcd=address) as started,
    ):
        other = started[0]
        assert one.client.token == other.token
        first = create(one.client, "a")
        assert other.request("GET", f"{MAPS}/a").json["metadata"]["resourceVersion"] == str(first)
        # A token of a ServiceAccount is good at every server; the account was made at the other one.
        account = "/api/v1/namespaces/default/serviceaccounts"
        assert other.request("POST", account, {"metadata": {"name": "robot"}}).code == 201
        token = one.client.request("POST", f"{account}/robot/token", {"spec": {}}).json["status"]["token"]
        store = started[1].store
        at_once = store.apply  # type: ignore[attr-defined]
        later = lambda *told: asyncio.get_running_loop().call_later(0.1, at_once, *told)  # noqa: E731
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store, "apply", later)
            assert one.client.request("POST", account, {"metadata": {"name": "late"}}).code == 201
            late = one.client.request("POST", f"{account}/late/token", {"spec": {}}).json["status"]["token"]
            assert other.request("GET", "/version", Authorization=f"Bearer {late}").code == 200
        review = {"spec": {"token": token}}
        user = other.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review).json["status"]["user"]
        assert user["username"] == "system:serviceaccount:default:robot"
        one.kill()
        second = create(other, "b")
        watch = other.watch(f"{MAPS}?watch=1&resourceVersion={first}")
        assert next(watch)["object"]["metadata"]["name"] == "b"
        watch.close()
    with server_on_thread(tmp_path / "one", etcd=address) as (again, _):
        names = [each["metadata"]["name"] for each in again.request("GET", MAPS).json["items"]]
        assert names == ["a", "b"]
        assert create(again, "c") > second


def test_while_etcd_is_away_clients_are_told_to_try_again(tmp_path: Path) -> None:
    directory = tmp_path / "etcd"
    directory.mkdir()
    with running_etcd(directory) as cluster:
        [member] = cluster.members
        with server_on_thread(tmp_path / "state", etcd=EtcdAddress(urls=cluster.urls)) as (client, _):
            create(client, "before")
            watch = client.watch(f"{MAPS}?watch=1&resourceVersion=0")
            assert next(watch)["object"]["metadata"]["name"] == "before"
            member.end()
            eventually(lambda: client.request("GET", "/readyz").code != 200)
            assert b"etcd" in client.request("GET", "/readyz?verbose").body
            for refused in (
                client.request("GET", MAPS),
                client.request("POST", MAPS, {"metadata": {"name": "meanwhile"}}),
            ):
                assert (refused.code, refused.headers["Retry-After"]) == (503, "1")
            kept = client.request("GET", f"{MAPS}?resourceVersion=0").json["items"]
            assert [each["metadata"]["name"] for each in kept] == ["before"]
            member.start()
            eventually(lambda: client.request("POST", MAPS, {"metadata": {"name": "after"}}).code == 201)
            assert next(watch)["object"]["metadata"]["name"] == "after"
            watch.close()
            eventually(lambda: client.request("GET", "/readyz").code == 200)


def test_that_most_of_etcd_is_away_is_noticed_although_nobody_asks(tmp_path: Path) -> None:
    directory = tmp_path / "etcd"
    directory.mkdir()
    with running_etcd(directory, 3) as cluster:
        address = EtcdAddress(urls=cluster.urls[:1])  # the member that is left answers, and knows nothing for sure
        with server_on_thread(tmp_path / "state", etcd=address) as (client, _):
            eventually(lambda: client.request("GET", "/readyz").code == 200)
            for member in cluster.members[1:]:
                member.signal(signal.SIGSTOP)
            eventually(lambda: client.request("GET", "/readyz").code != 200)
            for member in cluster.members[1:]:
                member.signal(signal.SIGCONT)
            eventually(lambda: client.request("GET", "/readyz").code == 200)
