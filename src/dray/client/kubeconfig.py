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

from dray.files import home

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
MAX_FILE_BYTES = 4 * 1024 * 1024
PROXIES = ("http", "https", "socks5", "socks5h")
EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
MODES = ("Never", "IfAvailable", "Always")
EXEC_EXTENSION = "client.authentication.k8s.io/exec"
"""Under this name a kubeconfig keeps what else a program is told of a cluster."""

_REFUSED = {
    "auth-provider": "auth-provider is not supported, by Kubernetes neither; use exec, a token or a client certificate",
    "username": "user name and password are not supported; give a token or a client certificate",
    "password": "user name and password are not supported; give a token or a client certificate",
}


class KubeconfigError(Exception):
    """There is no way to a server in what was given. The message names the file and what is wrong with it."""


class NothingGiven(KubeconfigError):
    """Nobody said which cluster, in none of the ways in which one can."""


class ExecProgram(msgspec.Struct, frozen=True, kw_only=True):
    """A program that prints a credential, as the `exec` of a kubeconfig names it."""

    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    api_version: str
    interactive_mode: str
    """Never, IfAvailable or Always: whether it may ask the user something."""
    install_hint: str = ""
    cluster: dict[str, Any] | None = None
    """What the program is told about the cluster; None unless it is to be told (provideClusterInfo)."""


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
    program: ExecProgram | None = None
    """Where token or certificate come from, if neither is given."""
    proxy: str = ""
    """An http, https or socks5 URL; empty for the direct way."""
    headers: tuple[tuple[str, str], ...] = ()
    """Whom to act as (impersonation)."""
    namespace: str = "default"

    def of_another(self, token: str = "") -> Connection:
        """The same server for whoever has a token: with no certificate, program or impersonation of this user's."""
        return msgspec.structs.replace(
            self, token=token, token_file=None, certificate=None, key=None, program=None, headers=()
        )


def find_connection(path: str | os.PathLike[str] | None = None, context: str = "") -> Connection:
    """The way that is given, else `$KUBECONFIG`, else `~/.kube/config`, else a pod's own. Raises KubeconfigError.

    A `~/.kube/config` without a current context says nothing.
    """
    if path is not None:
        return load_kubeconfig([Path(path)], context)
    named = _from_environment()
    if named:
        return load_kubeconfig(named, context)
    usual = home.expand("~/.kube/config")
    if context or (usual.exists() and _Document(usual).current):
        return load_kubeconfig([usual], context)
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return in_cluster()
    raise NothingGiven(f"no cluster to talk to: give --kubeconfig, set KUBECONFIG, or write {usual}")


def context_names(path: Path | None = None) -> list[str]:
    """The contexts of the kubeconfig that is given, else of `$KUBECONFIG`, else of `~/.kube/config`, each once.

    Raises KubeconfigError.
    """
    paths = [path] if path is not None else _from_environment() or [home.expand("~/.kube/config")]
    entries = [entry for one in paths if one.exists() for entry in _Document(one).content.get("contexts") or ()]
    return list(dict.fromkeys(str(entry["name"]) for entry in entries if isinstance(entry, dict) and "name" in entry))


def _from_environment() -> list[Path]:
    return [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]


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
    credential = _credential(user_at, user)
    if user.get("exec") and not credential["token"] and credential["token_file"] is None:
        credential["program"] = read_program(user_at, user["exec"], cluster)
    return msgspec.structs.replace(location, **credential, namespace=str(chosen.get("namespace") or "default"))


class _Document:
    """One kubeconfig file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            content = yaml.load(_read(path), Loader=yaml.CSafeLoader)
        except yaml.YAMLError as error:
            raise KubeconfigError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
        if content is None:  # an empty file says nothing, as with kubectl
            content = {}
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
    proxy = str(cluster.get("proxy-url") or "")
    if proxy and (urlsplit(proxy).scheme not in PROXIES or not urlsplit(proxy).hostname):
        raise KubeconfigError(f"{document.path}: proxy-url {proxy!r} is not a URL of {', '.join(PROXIES)}")
    return Connection(
        server=server.rstrip("/"),
        authority=document.bytes_of(cluster, "certificate-authority"),
        verify=cluster.get("insecure-skip-tls-verify") is not True,
        server_name=str(cluster.get("tls-server-name") or ""),
        proxy=proxy,
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


def read_program(document: _Document, entry: Any, cluster: Mapping[str, Any]) -> ExecProgram:
    """The `exec` of a user. Raises KubeconfigError."""
    at = f"{document.path}: exec"
    if not isinstance(entry, dict) or not entry.get("command"):
        raise KubeconfigError(f"{at} names no command")
    version = str(entry.get("apiVersion") or "")
    if version not in EXEC_VERSIONS:
        raise KubeconfigError(f"{at}.apiVersion {version!r} is none of {', '.join(EXEC_VERSIONS)}")
    mode = entry.get("interactiveMode") or ("" if version == EXEC_VERSIONS[0] else "IfAvailable")
    if mode not in MODES:
        raise KubeconfigError(f"{at}.interactiveMode {mode!r} is none of {', '.join(MODES)}")
    command = str(entry["command"])
    if os.sep in command:  # a path is seen from the file that names it; a bare name is looked for in PATH
        command = str(document.resolve(home.expand(command)))
    return ExecProgram(
        command=command,
        args=tuple(map(str, entry.get("args") or ())),
        env=tuple((str(one["name"]), str(one.get("value") or "")) for one in entry.get("env") or ()),
        api_version=version,
        interactive_mode=mode,
        install_hint=" ".join(str(entry.get("installHint") or "").split()),
        cluster=_told_of(document, cluster) if entry.get("provideClusterInfo") is True else None,
    )


def _told_of(document: _Document, cluster: Mapping[str, Any]) -> dict[str, Any]:
    """What a program is told about the cluster; credentials are not in it."""
    told = {
        name: cluster[name] for name in ("server", "tls-server-name", "insecure-skip-tls-verify") if name in cluster
    }
    if cluster.get("proxy-url"):
        told["proxy-url"] = cluster["proxy-url"]
    authority = document.bytes_of(cluster, "certificate-authority")
    if authority is not None:
        told["certificate-authority-data"] = base64.b64encode(authority).decode("ascii")
    for extension in cluster.get("extensions") or ():
        if isinstance(extension, dict) and extension.get("name") == EXEC_EXTENSION:
            told["config"] = extension.get("extension")
    return told


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
