"""The kubeconfig that lets kubectl and other clients reach the server."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Iterable
from typing import Any

import msgspec
import yaml

from dray.server.security.certificates import Authority, KeyPair


class ClusterAddress(msgspec.Struct, frozen=True):
    """Where the server is, and by which authority (PEM) a client knows it; none for plain HTTP."""

    server: str
    authority: bytes | None
    name: str = "dray"


def kubeconfig(cluster: ClusterAddress, user: str, credential: str | KeyPair) -> bytes:
    """A kubeconfig with one context, for a user with a bearer token or a client certificate."""
    location: dict[str, Any] = {"server": cluster.server}
    if cluster.authority is not None:
        location["certificate-authority-data"] = _base64(cluster.authority)
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": cluster.name,
        "clusters": [{"name": cluster.name, "cluster": location}],
        "users": [{"name": user, "user": _credential(credential)}],
        "contexts": [{"name": cluster.name, "context": {"cluster": cluster.name, "user": user}}],
    }
    return yaml.safe_dump(document, sort_keys=False).encode()


def client_kubeconfig(authority: Authority, url: str, user: str, groups: Iterable[str], now: dt.datetime) -> bytes:
    """A kubeconfig for somebody who shows a client certificate. Raises CertificateError."""
    pair = authority.issue_client_certificate(user, groups, now)
    return kubeconfig(ClusterAddress(url, authority.pair.certificate), user, pair)


def _credential(credential: str | KeyPair) -> dict[str, str]:
    if isinstance(credential, str):
        return {"token": credential}
    return {
        "client-certificate-data": _base64(credential.certificate),
        "client-key-data": _base64(credential.key),
    }


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def server_url(bind: str, port: int, *, tls: bool = True) -> str:
    """The URL under which a client on this machine reaches a server bound to `bind`."""
    host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(bind.strip("[]"), bind.strip("[]"))
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    return f"{'https' if tls else 'http'}://{host}:{port}"
