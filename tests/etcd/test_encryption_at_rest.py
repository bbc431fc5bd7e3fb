"""What is encrypted is nowhere in the clear, on either engine, in no backup, and keys can be changed."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dray.server.etcd_instance import layout
from dray.store.encryption import AesGcm, Encryption, Identity, Rule, Undecipherable
from dray.store.etcd import EtcdAddress, Loader
from dray.store.etcd.moving import backup, restore
from dray_process import run_dray
from etcd_world import Etcd, new_prefix
from live_server import LiveServer
from server_process import server_on_thread

WORD = "correct-horse-battery-staple"
ENCODED = base64.b64encode(WORD.encode()).decode()
SECRETS = "/api/v1/namespaces/default/secrets"
ONE, TWO = AESGCM(b"1" * 32), AESGCM(b"2" * 16)


def encryption(*providers: AesGcm | Identity) -> Encryption:
    return Encryption([Rule(("secrets",), providers)])


PLAIN = Encryption()
FIRST = encryption(AesGcm({"one": ONE}), Identity())
BOTH = encryption(AesGcm({"two": TWO, "one": ONE}), Identity())
SECOND = encryption(AesGcm({"two": TWO}), Identity())


class Place:
    """Where a server keeps its data."""

    def __init__(self, directory: Path, address: EtcdAddress | None) -> None:
        self.directory = directory
        self.address = address

    def server(self, how: Encryption) -> object:
        return server_on_thread(self.directory, etcd=self.address, encryption=how)

    def stored(self) -> bytes:
        """Everything that is on disk, or in etcd, about the present."""
        if self.address is not None:
            loader = Loader(self.address)
            try:
                return b"".join(kv.value for kv in loader.load(layout(self.address.prefix), is_latest=True).values)
            finally:
                loader.close()
        return (self.directory / "data.mdb").read_bytes()


@pytest.fixture(params=["lmdb", "etcd"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "lmdb":
        yield Place(tmp_path / "state", None)
        return
    etcd: Etcd = request.getfixturevalue("etcd")
    yield Place(tmp_path / "state", EtcdAddress(urls=etcd.urls, prefix=new_prefix()))


def secret(client: LiveServer, name: str) -> dict[str, object]:
    found = client.request("GET", f"{SECRETS}/{name}")
    assert found.code == 200, found.body
    assert found.json["data"] == {"password": ENCODED}
    return found.json  # type: ignore[no-any-return]


def create(client: LiveServer, name: str) -> None:
    made = client.request("POST", SECRETS, {"metadata": {"name": name}, "stringData": {"password": WORD}})
    assert made.code == 201, made.body


def is_in(data: bytes) -> bool:
    return ENCODED.encode() in data or WORD.encode() in data


def test_keys_are_changed_and_nothing_is_lost(place: Place) -> None:
    with place.server(FIRST) as (client, _):  # type: ignore[attr-defined]
        create(client, "a")
        secret(client, "a")
        # What watches tell is not encrypted.
        watch = client.watch(f"{SECRETS}?watch=1&resourceVersion=0")
        assert next(watch)["object"]["data"] == {"password": ENCODED}
        watch.close()
        unchanged = secret(client, "a")
        again = client.request("PUT", f"{SECRETS}/a", unchanged)
        assert again.json["metadata"]["resourceVersion"] == unchanged["metadata"]["resourceVersion"]  # type: ignore[index]
    assert not is_in(place.stored())
    assert b"BEGIN PRIVATE KEY" not in place.stored()
    with pytest.raises(Undecipherable, match="'one'"), place.server(SECOND):  # type: ignore[attr-defined]
        pass
    with place.server(BOTH) as (client, _):  # type: ignore[attr-defined]
        before = secret(client, "a")
        # Written as it was, it is encrypted with the key that is first now: as with kube-apiserver.
        written = client.request("PUT", f"{SECRETS}/a", before)
        assert written.code == 200, written.body
        assert written.json["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]  # type: ignore[index]
        again = client.request("PUT", f"{SECRETS}/a", written.json)
        assert again.json["metadata"]["resourceVersion"] == written.json["metadata"]["resourceVersion"]
        create(client, "b")
        client.request("DELETE", f"{SECRETS}/b")
    assert not is_in(place.stored())
    if (
        place.address is not None
    ):  # a state directory has the history of the last minutes, for which the first is needed
        assert b":one:" not in place.stored()
        with place.server(SECOND) as (client, _):  # type: ignore[attr-defined]
            secret(client, "a")


def test_backups_are_as_encrypted_as_what_they_are_of_and_move_in_and_out(
    place: Place, etcd: Etcd, tmp_path: Path
) -> None:
    with place.server(FIRST) as (client, _):  # type: ignore[attr-defined]
        create(client, "a")
        plain = client.request("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "m"}})
        assert plain.code == 201
    file = tmp_path / "copy"
    if place.address is None:
        assert run_dray("backup", file, "--dir", place.directory).returncode == 0
    else:
        backup(place.address, layout(place.address.prefix), file)
    assert not is_in(file.read_bytes())
    here = tmp_path / "here"
    assert run_dray("restore", file, "--dir", here).returncode == 0
    there = EtcdAddress(urls=etcd.urls, prefix=new_prefix())
    restore(file, there, layout(there.prefix))
    for directory, address in ((here, None), (tmp_path / "there", there)):
        with server_on_thread(directory, etcd=address, encryption=FIRST) as (client, _):
            found = secret(client, "a")
            listing = client.request("GET", SECRETS).json
            assert int(found["metadata"]["resourceVersion"]) <= int(listing["metadata"]["resourceVersion"])  # type: ignore[index]
            assert int(found["metadata"]["resourceVersion"]) > 0  # type: ignore[index]
            assert client.request("PUT", f"{SECRETS}/a", found).code == 200


def test_a_server_without_the_key_of_another_says_so_and_shows_nothing_wrong(etcd: Etcd, tmp_path: Path) -> None:
    address = EtcdAddress(urls=etcd.urls, prefix=new_prefix())
    with (
        server_on_thread(tmp_path / "one", etcd=address) as (blind, _),
        server_on_thread(tmp_path / "other", etcd=address, encryption=FIRST) as (client, _),
    ):
        watch = blind.watch(
            f"{SECRETS}?watch=1&resourceVersion=0&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&allowWatchBookmarks=true"
        )
        assert next(watch)["type"] == "BOOKMARK"
        create(client, "a")
        # Who watches is not left with a gap: the watch ends, and a new one is refused.
        assert [event["type"] for event in watch] == ["ERROR"]
        assert [event["object"]["code"] for event in blind.watch(f"{SECRETS}?watch=1&resourceVersion=0")] == [503]
        # Not even who takes any state is told that there is no such object.
        for path in (f"{SECRETS}/a", f"{SECRETS}/a?resourceVersion=0", f"{SECRETS}?resourceVersion=0", SECRETS):
            assert blind.request("GET", path).code == 503, path
        # And nobody may take the name, or anything else, on what is seen here.
        made = blind.request("POST", SECRETS, {"metadata": {"name": "a"}})
        assert (made.code, secret(client, "a")["type"]) == (503, "Opaque")
        assert b"'one'" in blind.request("GET", "/readyz?verbose").body
