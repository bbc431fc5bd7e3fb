"""Kubeconfigs and what a pod has: what is read from them, and what is refused and why."""

import base64
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from dray.client.kubeconfig import KubeconfigError, find_connection, in_cluster, load_kubeconfig
from dray.client.transport import Transport

EXEC_V1 = "client.authentication.k8s.io/v1"


def write(path: Path, user: Any = None, cluster: Any = None, **more: Any) -> Path:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "clusters": [{"name": "c", "cluster": cluster or {"server": "https://127.0.0.1:6443/"}}],
        "users": [{"name": "u", "user": user if user is not None else {"token": "secret"}}],
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
        **more,
    }
    path.write_text(yaml.safe_dump(document))
    return path


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_tokens_contexts_and_namespaces(tmp_path: Path) -> None:
    connection = load_kubeconfig([write(tmp_path / "config")])
    assert (connection.server, connection.token, connection.namespace) == ("https://127.0.0.1:6443", "secret", "team")
    assert connection.verify
    other = [
        {"name": "main", "context": {"cluster": "c", "user": "u"}},
        {"name": "nobody", "context": {"cluster": "c"}},
    ]
    path = write(tmp_path / "config", contexts=other)
    assert load_kubeconfig([path], "nobody").token == ""
    assert load_kubeconfig([path]).namespace == "default"


def test_certificates_from_data_and_from_files_beside_the_config(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(b"authority")
    (tmp_path / "me.pem").write_bytes(b"certificate")
    user = {"client-certificate": "me.pem", "client-key-data": encoded(b"key")}
    cluster = {"server": "https://h", "certificate-authority": "ca.pem", "tls-server-name": "other"}
    connection = load_kubeconfig([write(tmp_path / "config", user, cluster)])
    assert (connection.authority, connection.certificate, connection.key) == (b"authority", b"certificate", b"key")
    assert connection.server_name == "other"
    with pytest.raises(KubeconfigError, match="certificates cannot be used"):
        Transport(connection)


def test_whom_to_act_as(tmp_path: Path) -> None:
    user = {"token": "t", "as": "jane", "as-groups": ["a", "b"], "as-user-extra": {"reason": ["x"]}}
    assert load_kubeconfig([write(tmp_path / "config", user)]).headers == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-reason", "x"),
    )


def test_a_program_for_credentials_and_a_proxy(tmp_path: Path) -> None:
    entry = {
        "apiVersion": EXEC_V1,
        "command": "./bin/login",
        "args": ["--cluster", "a"],
        "env": [{"name": "PROFILE", "value": "p"}],
        "interactiveMode": "Never",
        "provideClusterInfo": True,
        "installHint": "Install\nit.",
    }
    cluster = {
        "server": "https://h",
        "proxy-url": "socks5://p:1",
        "certificate-authority-data": encoded(b"pem"),
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}],
    }
    found = load_kubeconfig([write(tmp_path / "config", {"exec": entry}, cluster)])
    assert found.proxy == "socks5://p:1"
    assert found.program is not None
    assert found.program.command == str(tmp_path / "bin/login")
    assert (found.program.args, found.program.env) == (("--cluster", "a"), (("PROFILE", "p"),))
    assert (found.program.interactive_mode, found.program.install_hint) == ("Never", "Install it.")
    assert found.program.cluster == {
        "server": "https://h",
        "proxy-url": "socks5://p:1",
        "certificate-authority-data": encoded(b"pem"),
        "config": {"audience": "x"},
    }
    older = {"exec": {"apiVersion": f"{EXEC_V1}beta1", "command": "login"}}
    program = load_kubeconfig([write(tmp_path / "config", older)]).program
    assert program is not None
    assert (program.command, program.interactive_mode, program.cluster) == ("login", "IfAvailable", None)
    assert load_kubeconfig([write(tmp_path / "config", older | {"token": "t"})]).program is None


def test_several_files_are_one_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = write(tmp_path / "first", {"token": "first"}, contexts=[])
    second = write(tmp_path / "second", {"token": "second"})
    empty = tmp_path / "empty"
    empty.write_text("# nothing yet\n")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'missing'}:{empty}:{os.devnull}:{first}:{second}")
    assert find_connection().token == "first"
    assert find_connection(second).token == "second"


@pytest.mark.parametrize(
    ("user", "cluster", "more", "message"),
    [
        ({"exec": {"args": ["x"]}}, None, {}, "exec names no command"),
        ({"exec": {"command": "aws"}}, None, {}, r"exec\.apiVersion '' is none of client\.authentication"),
        ({"exec": {"command": "a", "apiVersion": EXEC_V1}}, None, {}, r"exec\.interactiveMode '' is none of Never"),
        ({"exec": {"command": "a", "apiVersion": f"{EXEC_V1}alpha1"}}, None, {}, "v1alpha1' is none of"),
        (
            {"auth-provider": {"name": "gcp"}},
            None,
            {},
            "auth-provider is not supported, by Kubernetes neither; use exec",
        ),
        ({"username": "a", "password": "b"}, None, {}, "user name and password"),
        ({"client-certificate-data": encoded(b"x")}, None, {}, "belong together"),
        ({"client-key": "missing.pem"}, None, {}, r"cannot read .*missing\.pem: no such file"),
        ({"client-key-data": "no base64!"}, None, {}, "client-key-data is not base64"),
        (None, {"server": "https://h", "proxy-url": "ftp://p"}, {}, "proxy-url 'ftp://p' is not a URL of http, https"),
        (None, {"server": "ftp://h"}, {}, "'ftp://h' is not an http"),
        (None, {"server": ""}, {}, "is not an http"),
        (None, None, {"current-context": ""}, "no current-context"),
        (None, None, {"current-context": "gone"}, "no context 'gone'; there is main"),
        (None, None, {"clusters": []}, "no cluster 'c'"),
        (None, None, {"users": None}, "no user 'u'"),
        (None, None, {"contexts": [{"name": "main", "context": {}}]}, "names no cluster"),
        (None, None, {"contexts": [{"name": "main", "context": []}]}, "names no cluster"),
        (None, None, {"contexts": [{"name": "main", "context": [1]}]}, "is not an object"),
    ],
)
def test_what_cannot_be_used_is_said(tmp_path: Path, user: Any, cluster: Any, more: Any, message: str) -> None:
    with pytest.raises(KubeconfigError, match=message):
        load_kubeconfig([write(tmp_path / "config", user, cluster, **more)])


@pytest.mark.parametrize(("content", "message"), [("a: [", "is not YAML"), ("- 1", "is not a kubeconfig")])
def test_files_that_are_no_config(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(KubeconfigError, match=message):
        load_kubeconfig([path])
    with pytest.raises(KubeconfigError, match="cannot read"):
        load_kubeconfig([tmp_path / "missing"])


def test_in_a_cluster(tmp_path: Path) -> None:
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(KubeconfigError, match=r"cannot read .*token"):
        in_cluster(tmp_path, environment)
    (tmp_path / "token").write_text("t")
    (tmp_path / "ca.crt").write_bytes(b"authority")
    (tmp_path / "namespace").write_text("mine\n")
    connection = in_cluster(tmp_path, environment)
    assert (connection.server, connection.namespace) == ("https://[fd00::1]:443", "mine")
    assert (connection.authority, connection.token_file) == (b"authority", tmp_path / "token")
    with pytest.raises(KubeconfigError, match="not a pod"):
        in_cluster(tmp_path, {})


def test_nowhere_to_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(KubeconfigError, match="no cluster to talk to"):
        find_connection()
