"""Kubernetes' own components and etcd as processes on loopback, from a directory of binaries that somebody built."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from live_server import running_server
from patience import PATIENCE, eventually
from ports import free_port

LEASE_SECONDS = 120
"""Whoever leads here is alone: it goes on leading on a machine that is too busy to renew a lease in time."""
TOKENS = {
    "admin": ("kubernetes-admin", "system:masters"),
    "scheduler": ("system:kube-scheduler", ""),
    "manager": ("system:kube-controller-manager", ""),
    "reader": ("reader", ""),
    "viewer": ("viewer", ""),
}


def peers_directory() -> Path | None:
    """Where the binaries are (`make peers PEERS=dir`); None if nobody said, or kube-apiserver or etcd is not there."""
    given = os.environ.get("PEERS", "")
    return next(_usable([given]), None)


def older_peers() -> list[Path]:
    """Further releases to try the commands on, a directory each (`PEERS_OLDER=dir:dir`)."""
    return list(_usable(os.environ.get("PEERS_OLDER", "").split(os.pathsep)))


def _usable(given: Iterable[str]) -> Iterator[Path]:
    for one in filter(None, given):
        found = Path(one)
        if (found / "kube-apiserver").exists() and etcd_binary(found):
            yield found


def etcd_binary(peers: Path) -> str:
    """etcd, among the binaries, beside the interpreter or on the path; empty if there is none."""
    own = [place / "etcd" for place in (peers, Path(sys.executable).parent) if (place / "etcd").exists()]
    return str(own[0]) if own else shutil.which("etcd") or ""


class Running:
    """Processes that end with the test, and where their output is."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, *command: object) -> subprocess.Popen[bytes]:
        """Starts a program; its output is in a file of its name."""
        with (self.directory / f"{name}.log").open("ab") as log:
            process = subprocess.Popen([str(part) for part in command], stdout=log, stderr=log)
        self._processes.append(process)
        return process

    @property
    def pids(self) -> list[int]:
        """Those that run."""
        return [process.pid for process in self._processes]

    def stop(self) -> None:
        """Ends all of them, the last first: an API server without its etcd takes a minute to end."""
        for process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()


class ApiServer:
    """An API server, dray's or Kubernetes', with a kubeconfig for each of the usual users."""

    def __init__(self, running: Running, peers: Path, kubeconfigs: dict[str, Path]) -> None:
        self.running = running
        self.peers = peers
        self.kubeconfigs = kubeconfigs

    @property
    def admin(self) -> Path:
        """The kubeconfig of somebody who may do everything."""
        return self.kubeconfigs["admin"]

    @property
    def url(self) -> str:
        """Where it listens, for the admin."""
        found: str = yaml.safe_load(self.admin.read_text())["clusters"][0]["cluster"]["server"]
        return found

    def start_component(self, name: str, *more: object) -> subprocess.Popen[bytes]:
        """Starts kube-scheduler or kube-controller-manager as its own user."""
        config = self.kubeconfigs["scheduler" if name == "kube-scheduler" else "manager"]
        delegated = (f"--authentication-kubeconfig={config}", f"--authorization-kubeconfig={config}")
        port = f"--secure-port={free_port()}"
        certificates = f"--cert-dir={self.running.directory / name}"
        lease = (
            f"--leader-elect-lease-duration={LEASE_SECONDS}s",
            f"--leader-elect-renew-deadline={LEASE_SECONDS * 2 // 3}s",
        )
        kubeconfig, address = f"--kubeconfig={config}", "--bind-address=127.0.0.1"
        return self.running.start(
            name, self.peers / name, kubeconfig, *delegated, port, certificates, address, *lease, *more
        )

    def start_dray(self, *words: object) -> subprocess.Popen[bytes]:
        """Starts a component of dray as the admin."""
        name = f"dray-{words[0]}"
        options = ("--kubeconfig", self.admin, "--lease-seconds", LEASE_SECONDS)
        return self.running.start(name, sys.executable, "-m", "dray", *words, *options)

    def ask(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """What the server answers to the admin; None for what is not there. AssertionError for other failures."""
        config = yaml.safe_load(self.admin.read_text())
        parts = urlsplit(self.url)
        connection = http.client.HTTPSConnection(str(parts.hostname), parts.port, timeout=PATIENCE, context=_trusting())
        headers = {"Authorization": f"Bearer {config['users'][0]['user']['token']}", "Content-Type": content_type}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        if answer.status == 404:
            return None
        assert answer.status < 300, f"{method} {path}: {answer.status} {data.decode()[:500]}"
        return json.loads(data)


@contextlib.contextmanager
def dray_server(peers: Path, directory: Path) -> Iterator[ApiServer]:
    """A fresh `dray server` with the same users, ready."""
    running = Running(directory)
    tokens = _write_tokens(directory)
    try:
        with running_server(directory / "state", "--token-file", str(tokens), program="server") as server:
            configs = {who: _kubeconfig(directory / f"{who}.kubeconfig", server.url, who) for who in TOKENS}
            try:
                yield ApiServer(running, peers, configs)
            finally:
                running.stop()
    finally:
        running.stop()


@contextlib.contextmanager
def dray_servers_on_etcd(peers: Path, directory: Path) -> Iterator[ApiServer]:
    """Two fresh `dray server` on one etcd. kube-controller-manager talks to another one than everybody else."""
    running = Running(directory)
    tokens = _write_tokens(directory)
    options = ("--token-file", str(tokens), "--store", f"etcd={_start_etcd(running, peers)}")
    try:
        with (
            running_server(directory / "one", *options, program="server") as one,
            running_server(directory / "other", *options, program="server") as other,
        ):
            urls = {who: other.url if who == "manager" else one.url for who in TOKENS}
            configs = {who: _kubeconfig(directory / f"{who}.kubeconfig", url, who) for who, url in urls.items()}
            try:
                yield ApiServer(running, peers, configs)
            finally:
                running.stop()
    finally:
        running.stop()


def _start_etcd(running: Running, peers: Path, *, durable: bool = False) -> str:
    """A fresh etcd; its address. Only a `durable` one waits for the disk."""
    client, peer = free_port(), free_port()
    running.start(
        "etcd",
        etcd_binary(peers),
        f"--data-dir={running.directory / 'etcd'}",
        f"--listen-client-urls=http://127.0.0.1:{client}",
        f"--advertise-client-urls=http://127.0.0.1:{client}",
        f"--listen-peer-urls=http://127.0.0.1:{peer}",
        "--log-level=error",
        *(() if durable else ("--unsafe-no-fsync",)),
    )
    return f"http://127.0.0.1:{client}"


@contextlib.contextmanager
def kube_apiserver(peers: Path, directory: Path, *flags: str, durable: bool = False) -> Iterator[ApiServer]:
    """A fresh kube-apiserver on a fresh etcd, with RBAC, ready."""
    running = Running(directory)
    port = free_port()
    try:
        etcd = _start_etcd(running, peers, durable=durable)
        key = _write_key(directory / "accounts.key")
        tokens = _write_tokens(directory)
        running.start(
            "kube-apiserver",
            peers / "kube-apiserver",
            f"--etcd-servers={etcd}",
            f"--secure-port={port}",
            "--bind-address=127.0.0.1",
            f"--cert-dir={directory / 'certificates'}",
            f"--token-auth-file={tokens}",
            "--authorization-mode=Node,RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",
            "--disable-admission-plugins=ServiceAccount",
            *flags,
        )
        eventually(lambda: _is_ready(port))
        url = f"https://127.0.0.1:{port}"
        configs = {who: _kubeconfig(directory / f"{who}.kubeconfig", url, who) for who in TOKENS}
        yield ApiServer(running, peers, configs)
    finally:
        running.stop()


def _write_tokens(directory: Path) -> Path:
    path = directory / "tokens.csv"
    path.write_text("".join(f'{token},{user},{token},"{group}"\n' for token, (user, group) in TOKENS.items()))
    path.chmod(0o600)
    return path


def _write_key(path: Path) -> Path:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = serialization.PrivateFormat.TraditionalOpenSSL
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    return path


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=PATIENCE, context=_trusting())
    try:
        connection.request("GET", "/readyz", headers={"Authorization": "Bearer admin"})
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _trusting() -> ssl.SSLContext:
    """The server is ours, on loopback, with a certificate that it has just made for itself."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _kubeconfig(path: Path, url: str, token: str) -> Path:
    cluster = {"server": url, "insecure-skip-tls-verify": True}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "clusters": [{"name": "main", "cluster": cluster}],
        "users": [{"name": "main", "user": {"token": token}}],
        "contexts": [{"name": "main", "context": {"cluster": "main", "user": "main"}}],
    }
    path.write_text(yaml.safe_dump(config))
    return path
