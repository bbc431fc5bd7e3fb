"""Where a server is and how to get in: from a kubeconfig, or from what a cluster gives to its pods."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import yaml

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
MAX_FILE_BYTES = 4 * 1024 * 1024

_REFUSED = {
    "exec": "credentials from a program (exec) are not supported; give a token or a client certificate",
    "auth-provider": "auth-provider is not supported; give a token or a client certificate",
    "username": "user name and password are not supported; give a token or a client certificate",
    "password": "user name and password are not supported; give a token or a client certificate",
}


class KubeconfigError(Exception):
    """There is no way to a server in what was given. The message names the file and what is wrong with it."""


class NothingGiven(KubeconfigError):
    """Nobody said which cluster, in none of the ways in which one can."""


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """A server and a credential. Certificates and keys are PEM; a token in a file is read again as it changes."""

    server: str
    authority: bytes | None = None
    """Whom to trust; None for the authorities that the system trusts."""
    verify: bool = True
    server_name: str = ""
    """The name that the server's certificate must have, if it is not that of the URL."""
    certificate: bytes | None = None
    key: bytes | None = None
    token: str = ""
    token_file: Path | None = None
    headers: tuple[tuple[str, str], ...] = ()
    """Whom to act as (impersonation)."""
    namespace: str = "default"


def find_connection(path: str | os.PathLike[str] | None = None, context: str = "") -> Connection:
    """The way that is given, else `$KUBECONFIG`, else `~/.kube/config`, else a pod's own. Raises KubeconfigError.

    A `~/.kube/config` without a current context says nothing.
    """
    if path is not None:
        return load_kubeconfig([Path(path)], context)
    named = [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    if named:
        return load_kubeconfig(named, context)
    home = Path("~/.kube/config").expanduser()
    if context or (home.exists() and _Document(home).current):
        return load_kubeconfig([home], context)
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return in_cluster()
    raise NothingGiven(f"no cluster to talk to: give --kubeconfig, set KUBECONFIG, or write {home}")


def in_cluster(directory: Path = SERVICE_ACCOUNT, environment: Mapping[str, str] = os.environ) -> Connection:
    """The way that a pod has through its ServiceAccount. Raises KubeconfigError outside of a cluster."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise KubeconfigError("KUBERNETES_SERVICE_HOST is not set: this is not a pod in a cluster")
    token = directory / "token"
    _read(token)  # a pod without a token cannot get in: say so now
    authority, namespace = directory / "ca.crt", directory / "namespace"
    return Connection(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        authority=_read(authority) if authority.exists() else None,
        token_file=token,
        namespace=_read(namespace).decode(errors="replace").strip() if namespace.exists() else "default",
    )


def load_kubeconfig(paths: list[Path], context: str = "") -> Connection:
    """The connection of a context (by default the current one) in kubeconfig files; of a name the first file's counts.

    Files that are missing are passed over as long as there is one. Raises KubeconfigError.
    """
    documents = [_Document(path) for path in paths if path.exists() or len(paths) == 1]
    if not documents:
        raise KubeconfigError(f"none of {', '.join(map(str, paths))} exists")
    wanted = context or next(filter(None, (document.current for document in documents)), "")
    if not wanted:
        raise KubeconfigError(f"{documents[0].path}: there is no current-context; name one with --context")
    _, chosen = _named(documents, "contexts", "context", wanted)
    cluster_at, cluster = _named(documents, "clusters", "cluster", _text(chosen, "cluster", wanted))
    user_name = _text(chosen, "user", wanted) if chosen.get("user") else ""
    user_at, user = _named(documents, "users", "user", user_name) if user_name else (documents[0], {})
    location = _cluster(cluster_at, cluster)
    return msgspec.structs.replace(
        location, **_credential(user_at, user), namespace=str(chosen.get("namespace") or "default")
    )


class _Document:
    """One kubeconfig file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            content = yaml.load(_read(path), Loader=yaml.CSafeLoader)
        except yaml.YAMLError as error:
            raise KubeconfigError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
        if not isinstance(content, dict):
            raise KubeconfigError(f"{path} is not a kubeconfig")
        self.content: dict[str, Any] = content

    @property
    def current(self) -> str:
        return str(self.content.get("current-context") or "")

    def bytes_of(self, entry: Mapping[str, Any], name: str) -> bytes | None:
        """What stands in `<name>-data` or in the file that `<name>` names, relative to this one."""
        data, file = entry.get(f"{name}-data"), entry.get(name)
        if data:
            try:
                return base64.b64decode(str(data), validate=True)
            except (binascii.Error, ValueError):
                raise KubeconfigError(f"{self.path}: {name}-data is not base64") from None
        return _read(self.resolve(file)) if file else None

    def resolve(self, file: Any) -> Path:
        return self.path.parent / str(file)


def _named(documents: list[_Document], section: str, part: str, name: str) -> tuple[_Document, dict[str, Any]]:
    found: list[str] = []
    for document in documents:
        entries = document.content.get(section) or ()
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and entry.get("name") == name:
                content = entry.get(part) or {}
                if not isinstance(content, dict):
                    raise KubeconfigError(f"{document.path}: {part} {name!r} is not an object")
                return document, content
            if isinstance(entry, dict):
                found.append(str(entry.get("name")))
    there = f"; there is {', '.join(found)}" if found else ""
    raise KubeconfigError(f"{documents[0].path}: there is no {part} {name!r}{there}")


def _text(context: Mapping[str, Any], name: str, where: str) -> str:
    value = context.get(name)
    if not isinstance(value, str) or not value:
        raise KubeconfigError(f"context {where!r} names no {name}")
    return value


def _cluster(document: _Document, cluster: Mapping[str, Any]) -> Connection:
    server = str(cluster.get("server") or "")
    if urlsplit(server).scheme not in ("http", "https") or not urlsplit(server).hostname:
        raise KubeconfigError(f"{document.path}: server {server!r} is not an http or https URL")
    if cluster.get("proxy-url"):
        raise KubeconfigError(f"{document.path}: proxy-url is not supported; use a server that can be reached directly")
    return Connection(
        server=server.rstrip("/"),
        authority=document.bytes_of(cluster, "certificate-authority"),
        verify=cluster.get("insecure-skip-tls-verify") is not True,
        server_name=str(cluster.get("tls-server-name") or ""),
    )


def _credential(document: _Document, user: Mapping[str, Any]) -> dict[str, Any]:
    for name, why in _REFUSED.items():
        if user.get(name):
            raise KubeconfigError(f"{document.path}: {why}")
    certificate = document.bytes_of(user, "client-certificate")
    key = document.bytes_of(user, "client-key")
    if (certificate is None) != (key is None):
        raise KubeconfigError(f"{document.path}: client-certificate and client-key belong together")
    token_file = user.get("tokenFile")
    return {
        "certificate": certificate,
        "key": key,
        "token": str(user.get("token") or ""),
        "token_file": document.resolve(token_file) if token_file else None,
        "headers": _impersonation(user),
    }


def _impersonation(user: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    headers = [("Impersonate-User", str(user["as"]))] if user.get("as") else []
    headers += [("Impersonate-Uid", str(user["as-uid"]))] if user.get("as-uid") else []
    headers += [("Impersonate-Group", str(group)) for group in user.get("as-groups") or ()]
    extra: Mapping[str, Any] = user.get("as-user-extra") or {}
    return (*headers, *((f"Impersonate-Extra-{name}", str(value)) for name, them in extra.items() for value in them))


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise KubeconfigError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    if len(data) > MAX_FILE_BYTES:
        raise KubeconfigError(f"{path} is larger than {MAX_FILE_BYTES} bytes")
    return data
