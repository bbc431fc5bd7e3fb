"""Tables of objects in the form that kubectl asks for (`as=Table`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from dray.api import codec
from dray.api.meta import ListMeta
from dray.api.registry import CLUSTER_GROUP, DRAY_GROUP, RESOURCE_GROUP, Kind
from dray.api.times import Time
from dray.custom.kinds import CustomKind
from dray.server import objects
from dray.server.answers.tables import (
    access,
    clusters,
    core,
    devices,
    networking,
    policies,
    services,
    storage,
    workloads,
)
from dray.server.answers.tables.columns import AGE, NAME, Column
from dray.server.answers.tables.custom import columns_of
from dray.store import Record

_BY_GROUP: dict[str, dict[str, tuple[Column, ...]]] = {
    RESOURCE_GROUP: devices.COLUMNS,
    CLUSTER_GROUP: clusters.COLUMNS,
    DRAY_GROUP: devices.COLUMNS,
    "": core.COLUMNS | services.COLUMNS | networking.COLUMNS | storage.COLUMNS | workloads.CORE_COLUMNS,
    "coordination.k8s.io": core.COLUMNS,
    "events.k8s.io": core.COLUMNS,
    "apps": workloads.COLUMNS,
    "batch": workloads.COLUMNS,
    "policy": workloads.COLUMNS,
    "networking.k8s.io": services.COLUMNS | networking.COLUMNS,
    "discovery.k8s.io": networking.COLUMNS,
    "rbac.authorization.k8s.io": access.COLUMNS,
    "certificates.k8s.io": access.COLUMNS,
    "storage.k8s.io": storage.COLUMNS,
    "admissionregistration.k8s.io": policies.COLUMNS,
    "flowcontrol.apiserver.k8s.io": policies.COLUMNS,
    "node.k8s.io": policies.COLUMNS,
    "autoscaling": workloads.COLUMNS,
    "scheduling.k8s.io": workloads.COLUMNS,
}

_encode = msgspec.json.encode


class Tables:
    """Tables of one kind in one version; `include` is None, Metadata or Object, as the client wants rows to carry.

    `form` is the version of the table itself.
    """

    def __init__(self, kind: Kind, version: str, now: Time, form: str, include: str) -> None:
        self._kind = kind
        self._version = version
        self._columns = (
            columns_of(kind)
            if isinstance(kind, CustomKind)
            else _BY_GROUP.get(kind.group, {}).get(kind.kind, (NAME, AGE))
        )
        self._now = now
        self._form = form if form in ("v1", "v1beta1") else "v1"
        self._include = include

    def render(self, records: Iterable[Record], meta: ListMeta, *, columns: bool) -> bytes:
        """A table as bytes; a watch leaves the columns out after its first event.

        Row by row: whoever writes all of them at once keeps the interpreter from others.
        """
        head = _encode(
            {
                "kind": "Table",
                "apiVersion": f"meta.k8s.io/{self._form}",
                "metadata": codec.to_builtins(meta),
                "columnDefinitions": [column.definition() for column in self._columns] if columns else None,
            }
        )
        rows = b",".join([_encode(self._row(record)) for record in records])
        return b"".join((head[:-1], b',"rows":[', rows, b"]}"))

    def _row(self, record: Record) -> dict[str, Any]:
        row: dict[str, Any] = {"cells": [column.read(record.obj, self._now) for column in self._columns]}
        if self._include == "Object":
            row["object"] = msgspec.Raw(objects.render(self._kind, self._version, record))
        elif self._include != "None":
            row["object"] = msgspec.Raw(codec.encode(objects.metadata_only(record)))
        return row
