"""Discovery: which groups, versions and resources are served, in the old form and in the aggregated one."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import msgspec

from dray.api.registry import Kind
from dray.server.routes import Table, offered_subresources

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def wants_aggregated(accept: str) -> bool:
    """Whether a client prefers the aggregated form, version v2."""
    for part in accept.split(","):
        pieces = {piece.strip() for piece in part.split(";")}
        if "as=APIGroupDiscoveryList" in pieces:
            return "v=v2" in pieces
        if "application/json" in pieces:
            return False
    return False


class Discovery:
    """Everything about what is served. Made once: the table does not change while the server runs."""

    def __init__(self, table: Table, address: str) -> None:
        """`address` is where clients reach the server, as `host:port`."""
        self._table = table
        self._address = address

    def api(self) -> dict[str, Any]:
        """`/api`: the versions of the core group."""
        return {
            "kind": "APIVersions",
            "versions": self._table.versions[""],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": self._address}],
        }

    def apis(self) -> dict[str, Any]:
        """`/apis`: the other groups."""
        groups = [self._group(group) for group in self._table.versions if group]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def group(self, group: str) -> dict[str, Any] | None:
        """`/apis/GROUP`: one group; None if it is not served."""
        if group not in self._table.versions or not group:
            return None
        return {"kind": "APIGroup", "apiVersion": "v1", **self._group(group)}

    def _group(self, group: str) -> dict[str, Any]:
        versions = [{"groupVersion": f"{group}/{name}", "version": name} for name in self._table.versions[group]]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def resources(self, group: str, version: str) -> dict[str, Any] | None:
        """`/apis/GROUP/VERSION`: the resources of one version; None if it is not served."""
        if version not in self._table.versions.get(group, ()):
            return None
        entries: list[dict[str, Any]] = []
        for kind in self._table.kinds_in(group, version):
            entries.append(_resource(kind))
            entries.extend(_subresources(kind))
        group_version = f"{group}/{version}" if group else version
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": entries}

    def aggregated(self, *, core: bool) -> dict[str, Any]:
        """`/api` or `/apis` in one document with all resources."""
        groups = [group for group in self._table.versions if bool(group) != core]
        items = [self._aggregated_group(group) for group in groups]
        return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}

    def _aggregated_group(self, group: str) -> dict[str, Any]:
        versions = [
            {
                "version": version,
                "resources": [_aggregated(kind, version) for kind in self._table.kinds_in(group, version)],
                "freshness": "Current",
            }
            for version in self._table.versions[group]
        ]
        metadata = {"name": group} if group else {}
        return {"metadata": {**metadata, "creationTimestamp": None}, "versions": versions}


def etag(document: dict[str, Any]) -> str:
    """A tag that changes when the document does, for clients that cache discovery."""
    return '"' + hashlib.sha256(msgspec.json.encode(document)).hexdigest().upper() + '"'


def _resource(kind: Kind) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": sorted(kind.verbs),
    }
    _name_further(entry, kind)
    entry["storageVersionHash"] = _storage_hash(kind.storage)
    return entry


def _name_further(entry: dict[str, Any], kind: Kind) -> None:
    """What else kubectl finds a kind by."""
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)


def _storage_hash(kind: Kind) -> str:
    """What changes when objects are stored in another version; the same as with Kubernetes, which clients work out."""
    stored = f"{kind.group}/{kind.versions[0]}/{kind.kind}"
    return base64.b64encode(hashlib.sha256(stored.encode()).digest()[:8]).decode()


def _subresources(kind: Kind) -> list[dict[str, Any]]:
    entries = []
    for subresource in offered_subresources(kind):
        entry: dict[str, Any] = {
            "name": f"{kind.plural}/{subresource.name}",
            "singularName": "",
            "namespaced": kind.namespaced,
        }
        if (subresource.group, subresource.kind) != (kind.group, kind.kind) and subresource.version:
            entry |= {"group": subresource.group, "version": subresource.version}
        entries.append({**entry, "kind": subresource.kind, "verbs": sorted(subresource.verbs)})
    return entries


def _aggregated(kind: Kind, version: str) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": version, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": sorted(kind.verbs),
    }
    _name_further(entry, kind)
    subresources = [
        {
            "subresource": subresource.name,
            "responseKind": {
                "group": subresource.group,
                "version": version if subresource.group == kind.group else subresource.version,
                "kind": subresource.kind,
            },
            "verbs": sorted(subresource.verbs),
        }
        for subresource in offered_subresources(kind)
    ]
    if subresources:
        entry["subresources"] = subresources
    return entry
