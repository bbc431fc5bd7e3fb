from __future__ import annotations

import base64
import datetime as dt
from pathlib import Path

import pytest
import yaml

from dray.server.security.certificates import server_names
from dray.server.security.credentials import Credentials
from dray.server.security.kubeconfig import client_kubeconfig, server_url
from dray.server.security.state_directory import StateDirectory, StateDirectoryError

NOW = dt.datetime(2026, 6, 1, tzinfo=dt.UTC)
NAMES = server_names(["127.0.0.1", "box"])


def load(path: Path, now: dt.datetime = NOW, names: tuple[str, ...] = NAMES) -> Credentials:
    return Credentials(StateDirectory(path), names, now)


def test_first_start_makes_everything_and_the_second_changes_nothing(tmp_path: Path) -> None:
    first = load(tmp_path)
    first.write_admin_kubeconfig("https://127.0.0.1:6443")
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert {str(path.relative_to(tmp_path)) for path in files} == {
        "admin-token",
        "kubeconfig",
        "pki/ca.crt",
        "pki/ca.key",
        "pki/server.crt",
        "pki/server.key",
        "pki/service-account.key",
    }
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in files)
    second = load(tmp_path, NOW + dt.timedelta(days=1))
    second.write_admin_kubeconfig("https://127.0.0.1:6443")
    assert {path: path.read_bytes() for path in files} == files
    assert second.admin_token == first.admin_token


def test_two_directories_share_nothing(tmp_path: Path) -> None:
    first, second = load(tmp_path / "a"), load(tmp_path / "b")
    assert first.admin_token != second.admin_token
    assert first.signing_key != second.signing_key
    assert first.authority.pair != second.authority.pair


def test_server_certificate_is_renewed_and_the_authority_is_not(tmp_path: Path) -> None:
    first = load(tmp_path)
    certificate = (tmp_path / "pki/server.crt").read_bytes()
    assert not first.renew_server_certificate(NOW)
    assert first.renew_server_certificate(NOW + dt.timedelta(days=360))
    assert (tmp_path / "pki/server.crt").read_bytes() != certificate
    certificate = (tmp_path / "pki/server.crt").read_bytes()
    again = load(tmp_path, NOW + dt.timedelta(days=360), (*NAMES, "api.example.com"))
    assert (tmp_path / "pki/server.crt").read_bytes() != certificate
    assert again.authority.pair == first.authority.pair


def test_admin_kubeconfig(tmp_path: Path) -> None:
    credentials = load(tmp_path)
    credentials.write_admin_kubeconfig("https://127.0.0.1:6443")
    config = yaml.safe_load((tmp_path / "kubeconfig").read_text())
    cluster = config["clusters"][0]["cluster"]
    assert cluster["server"] == "https://127.0.0.1:6443"
    assert base64.b64decode(cluster["certificate-authority-data"]) == credentials.authority.pair.certificate
    assert config["users"][0]["user"] == {"token": (tmp_path / "admin-token").read_text()}
    assert config["current-context"] == config["contexts"][0]["name"]


def test_kubeconfig_for_plain_http_has_no_authority(tmp_path: Path) -> None:
    credentials = load(tmp_path)
    credentials.write_admin_kubeconfig("http://127.0.0.1:8080")
    config = yaml.safe_load((tmp_path / "kubeconfig").read_text())
    assert config["clusters"][0]["cluster"] == {"server": "http://127.0.0.1:8080"}


def test_kubeconfig_of_a_component_has_its_certificate(tmp_path: Path) -> None:
    text = client_kubeconfig(load(tmp_path).authority, "https://127.0.0.1:6443", "system:kube-scheduler", [], NOW)
    user = yaml.safe_load(text)["users"][0]
    assert user["name"] == "system:kube-scheduler"
    assert base64.b64decode(user["user"]["client-certificate-data"]).startswith(b"-----BEGIN CERTIFICATE")
    assert base64.b64decode(user["user"]["client-key-data"]).startswith(b"-----BEGIN PRIVATE KEY")


@pytest.mark.parametrize(
    ("bind", "url"),
    [
        ("127.0.0.1", "https://127.0.0.1:6443"),
        ("0.0.0.0", "https://127.0.0.1:6443"),
        ("", "https://127.0.0.1:6443"),
        ("::", "https://[::1]:6443"),
        ("fd00::1", "https://[fd00::1]:6443"),
        ("[fd00::1]", "https://[fd00::1]:6443"),
        ("api.example.com", "https://api.example.com:6443"),
    ],
)
def test_server_url(bind: str, url: str) -> None:
    assert server_url(bind, 6443) == url
    assert server_url(bind, 6443, tls=False) == url.replace("https", "http")


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("pki/ca.crt", b"garbage", r"certificate authority in .*pki is unusable: not a PEM certificate"),
        ("pki/ca.key", b"garbage", r"certificate authority in .*pki is unusable: not an unencrypted PEM"),
        ("pki/service-account.key", b"", r"service-account.key is unusable"),
        ("admin-token", b"", r"admin-token does not hold a token"),
        ("admin-token", b"two words are not a token", r"admin-token does not hold a token"),
    ],
)
def test_damaged_files_are_named(tmp_path: Path, file: str, content: bytes, message: str) -> None:
    load(tmp_path)
    (tmp_path / file).write_bytes(content)
    with pytest.raises(StateDirectoryError, match=message):
        load(tmp_path)


def test_damaged_server_certificate_is_simply_replaced(tmp_path: Path) -> None:
    load(tmp_path)
    (tmp_path / "pki/server.crt").write_bytes(b"garbage")
    assert load(tmp_path).tls_context()


def test_authority_without_its_key(tmp_path: Path) -> None:
    load(tmp_path)
    (tmp_path / "pki/ca.key").unlink()
    with pytest.raises(StateDirectoryError, match=r"its key .*ca.key is not"):
        load(tmp_path)


def test_first_start_that_was_killed_between_key_and_certificate(tmp_path: Path) -> None:
    load(tmp_path)
    (tmp_path / "pki/ca.crt").unlink()
    assert load(tmp_path).tls_context()


def test_expired_authority(tmp_path: Path) -> None:
    load(tmp_path)
    with pytest.raises(StateDirectoryError, match="has expired on 2036-"):
        load(tmp_path, NOW + dt.timedelta(days=3651))
