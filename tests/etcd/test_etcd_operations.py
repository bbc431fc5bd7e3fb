"""etcd as it is run for real: over TLS with certificates of its own, and with a quota that is used up."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from commands import run_here
from dray.api.generated.core import ConfigMap
from dray.api.meta import ObjectMeta
from dray.server.objects import finish
from dray.server.security.certificates import Authority, KeyPair
from dray.store import Exists, Key, Uncertain, Unreachable
from dray.store.etcd import AddressError, CannotLoad, EtcdAddress, EtcdStore, Loader, loading
from dray_process import run_dray
from etcd_world import Etcd, etcd_store, new_prefix, running_etcd
from patience import PATIENCE, eventually
from ports import free_port
from server_process import server_on_thread

MAPS = "/api/v1/namespaces/default/configmaps"


def write(directory: Path, name: str, pair: KeyPair) -> tuple[Path, Path]:
    certificate, key = directory / f"{name}.crt", directory / f"{name}.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    return certificate, key


def test_over_tls_both_sides_show_who_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = dt.datetime.now(dt.UTC)
    authority, stranger = Authority.create(now, "etcd"), Authority.create(now, "another")
    trusted, _ = write(tmp_path, "ca", authority.pair)
    untrusted, _ = write(tmp_path, "other-ca", stranger.pair)
    server = write(tmp_path, "server", authority.issue_server_certificate(["127.0.0.1"], now))
    client = write(tmp_path, "client", authority.issue_client_certificate("dray", (), now))
    options = ["--cert-file", str(server[0]), "--key-file", str(server[1])]
    options += ["--client-cert-auth", "--trusted-ca-file", str(trusted)]
    directory = tmp_path / "etcd"
    directory.mkdir()
    with running_etcd(directory, options=options) as cluster:
        address = EtcdAddress(urls=cluster.urls, authority=trusted, certificate=client[0], key=client[1])
        with server_on_thread(tmp_path / "state", etcd=address) as (api, _):
            assert api.request("POST", MAPS, {"metadata": {"name": "a"}}).code == 201
            assert api.request("GET", f"{MAPS}/a").code == 200
        place = ["--store", f"etcd={cluster.urls[0]}"]
        secrets = ["--etcd-cacert", str(trusted), "--etcd-cert", str(client[0]), "--etcd-key", str(client[1])]
        assert run_dray("backup", tmp_path / "file", *place, *secrets).returncode == 0
        again = ["--etcd-prefix", "/again"]
        restored = run_dray("restore", tmp_path / "file", *place, *secrets, *again)
        assert f"Start with: dray server {' '.join([*place, *again, *secrets])}\n" in restored.stdout
        monkeypatch.setattr(loading, "START_SECONDS", 0.1)
        plain = tuple(url.replace("https:", "http:") for url in cluster.urls)
        stranger_client = write(tmp_path, "other", stranger.issue_client_certificate("dray", (), now))
        for wrong, told in (
            (replace(address, authority=untrusted), f"not signed by --etcd-cacert {untrusted}. Give the authority"),
            (replace(address, authority=None), "not signed by an authority of this system. Give the authority"),
            (replace(address, certificate=None, key=None), "it wants a certificate. Give one that etcd trusts"),
            (
                replace(address, certificate=stranger_client[0], key=stranger_client[1]),
                f"it does not accept --etcd-cert {stranger_client[0]}. Give one that etcd trusts",
            ),
            (EtcdAddress(urls=plain), "If it has TLS, give https:// in --store"),
        ):
            assert told in _why_not(wrong)


def _why_not(address: EtcdAddress) -> str:
    """Why an etcd cannot be reached."""
    loader = Loader(address)
    try:
        with pytest.raises(CannotLoad, match="cannot reach etcd") as refusal:
            loader.find(b"x")
    finally:
        loader.close()
    return str(refusal.value)


def test_why_etcd_is_not_reached_is_told_with_what_to_do(
    etcd: Etcd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "START_SECONDS", 0.1)
    trusted, _ = write(tmp_path, "ca", Authority.create(dt.datetime.now(dt.UTC), "etcd").pair)
    encrypted = tuple(url.replace("http:", "https:") for url in etcd.urls)
    for address, told in (
        (EtcdAddress(urls=encrypted, authority=trusted), "it does not speak TLS there. Give http:// in --store"),
        (EtcdAddress(urls=(f"http://127.0.0.1:{free_port()}",)), "nobody listens there. Start it"),
        (EtcdAddress(urls=("http://no-such-host.invalid:2379",)), "there is no host of that name"),
    ):
        assert told in _why_not(address)


def test_a_server_whose_etcd_has_lost_its_data_says_so_and_goes_on_when_it_is_started_again(tmp_path: Path) -> None:
    directory = tmp_path / "etcd"
    directory.mkdir()
    with running_etcd(directory) as cluster:
        [member] = cluster.members
        address = EtcdAddress(urls=cluster.urls)
        with server_on_thread(tmp_path / "state", etcd=address) as (api, _):
            assert api.request("POST", MAPS, {"metadata": {"name": "a"}}).code == 201
            member.kill()
            shutil.rmtree(directory / "m0")
            member.start()
            member.wait()
            eventually(lambda: b"Start this server again" in api.request("GET", "/readyz?verbose").body)
            assert api.request("GET", f"{MAPS}/a").code == 503
            assert api.request("POST", MAPS, {"metadata": {"name": "b"}}).code == 503
        with server_on_thread(tmp_path / "state", etcd=address) as (api, _):
            assert api.request("GET", f"{MAPS}/a").code == 404
            assert api.request("POST", MAPS, {"metadata": {"name": "b"}}).code == 201


def test_files_that_are_no_certificates_are_told_before_etcd_is_asked(tmp_path: Path) -> None:
    now = dt.datetime.now(dt.UTC)
    authority = Authority.create(now, "etcd")
    trusted, foreign_key = write(tmp_path, "ca", authority.pair)
    certificate, key = write(tmp_path, "client", authority.issue_client_certificate("dray", (), now))
    nonsense = tmp_path / "nonsense"
    nonsense.write_text("hello")
    urls = ("https://127.0.0.1:1",)
    EtcdAddress(urls=urls, authority=trusted, certificate=certificate, key=key).credentials()
    with pytest.raises(AddressError, match=f"--etcd-cacert {nonsense}: there is no certificate in it"):
        EtcdAddress(urls=urls, authority=nonsense).credentials()
    for wrong in (foreign_key, nonsense):
        with pytest.raises(AddressError, match=f"--etcd-cert .* and --etcd-key {wrong}: they are no certificate"):
            EtcdAddress(urls=urls, authority=trusted, certificate=certificate, key=wrong).credentials()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--store", "etcd=http://127.0.0.1:1", "--etcd-prefix", "/"), "--etcd-prefix: '/' names no key"),
        (("--store", "etcd=ftp://127.0.0.1:1"), "is no address of etcd"),
        (("--store", "etcd=http://127.0.0.1:1", "--etcd-cacert", "ca.crt"), "are for https"),
    ],
)
def test_an_etcd_that_cannot_be_meant_is_told_in_one_line(tmp_path: Path, options: tuple[str, ...], told: str) -> None:
    done = run_here("server", "--dir", tmp_path / "state", "--port", "0", *options)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


def test_when_the_quota_of_etcd_is_used_up_clients_are_told_and_it_goes_on_when_there_is_room(tmp_path: Path) -> None:
    directory = tmp_path / "etcd"
    directory.mkdir()
    with (
        running_etcd(directory, options=("--quota-backend-bytes", str(2 << 20))) as cluster,
        server_on_thread(tmp_path / "state", etcd=EtcdAddress(urls=cluster.urls)) as (api, _),
    ):
        body = {"data": {"x": "x" * 300_000}}
        for number in range(30):
            answer = api.request("POST", MAPS, {"metadata": {"name": f"m{number}"}, **body})
            if answer.code == 507:
                break
            assert answer.code == 201, answer.body
        assert answer.code == 507
        assert b"space" in answer.body
        assert api.request("GET", f"{MAPS}/m0").code == 200
        # This etcd (before 3.5.2) refuses transactions that only delete, too.
        assert api.request("DELETE", f"{MAPS}/m0").code in (200, 507)
        url = cluster.urls[0]
        control(url, "del", "--prefix", "/registry/configmaps/default/m")
        status = json.loads(control(url, "endpoint", "status", "-w", "json"))
        control(url, "compact", str(status[0]["Status"]["header"]["revision"]))
        control(url, "defrag")
        control(url, "alarm", "disarm")
        eventually(lambda: api.request("POST", MAPS, {"metadata": {"name": "again"}}).code == 201)
        names = [each["metadata"]["name"] for each in api.request("GET", MAPS).json["items"]]
        assert names == ["again"]


def control(url: str, *command: str) -> str:
    program = Path(sys.executable).with_name("etcdctl")
    return subprocess.run([program, "--endpoints", url, *command], capture_output=True, text=True, check=True).stdout


async def until_it_writes(store: EtcdStore, name: str) -> None:
    """Whoever takes a write leads, and the others that are there know it."""
    written = ConfigMap(kind="ConfigMap", api_version="v1", metadata=ObjectMeta(name=name, namespace="default"))
    async with asyncio.timeout(PATIENCE):
        while True:
            with contextlib.suppress(Unreachable, Uncertain, Exists):
                await store.create(Key("configmaps", "default", name), finish(written))
                return


async def test_that_another_member_leads_is_counted(tmp_path: Path) -> None:
    with running_etcd(tmp_path, 3) as cluster:
        async with etcd_store(cluster.urls, new_prefix()) as store:

            async def changes() -> int:
                store._size = (0, 0)
                async with asyncio.timeout(PATIENCE):
                    while store._size == (0, 0):  # a look that goes to a member that is away tells nothing
                        await store._look()
                shared = store.stats().shared
                assert shared is not None
                return shared.leader_changes

            assert await changes() == 0
            for number, member in enumerate(cluster.members):
                await asyncio.to_thread(member.kill)
                await until_it_writes(store, f"map-{number}")
                await changes()  # while it is away it does not lead; afterwards it may again
                await asyncio.to_thread(member.start)
                await asyncio.to_thread(member.wait)
            assert await changes() >= 1
