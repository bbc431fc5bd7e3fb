"""From what was written to typed objects: decoded, in hub shape, with defaults."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from dray.api import codec, registry
from dray.api.generated.core import Pod, PodSpec
from dray.api.meta import Object, ObjectMeta
from dray.api.references import ObjectKey
from dray.api.registry import Kind
from dray.api.shared_parts import share
from dray.api.times import Time
from dray.api.well_known import LAST_APPLIED
from dray.snapshot.files import InputError, Item, Source, read
from dray.validation import default_object, to_hub

DEFAULT_NAMESPACE = "default"


NO_OBJECTS: Final = {
    "NodeGroup": "a NodeGroup is no object of a cluster; dray scale-up and dray lint read it",
    "ControllersConfiguration": "a ControllersConfiguration is no object of a cluster; dray controllers reads it",
    "Plan": "a Plan is no object of a cluster; dray apply reads it",
}
"""Documents of dray.dev/v1 that are read elsewhere, by kind."""


class Ignored(NamedTuple):
    """An object that was passed over, because dray does not know its kind, or it is none."""

    name: str
    why: str
    """With the file that it is in."""


class Loaded(NamedTuple):
    """Objects by their place, and what was passed over."""

    objects: dict[ObjectKey, Object]
    ignored: tuple[Ignored, ...]


def current_time() -> Time:
    """For defaults that depend on the time, such as when a taint was added."""
    return Time.of(datetime.now(UTC))


def load_objects(sources: Iterable[Source], now: Time) -> Loaded:
    """Everything in `sources`; of two objects at one place the later counts. Raises InputError."""
    return load_items(read(sources), now)


def load_items(items: Iterable[Item], now: Time) -> Loaded:
    """The objects that were read already. Raises InputError."""
    objects: dict[ObjectKey, Object] = {}
    ignored: list[Ignored] = []
    for item in items:
        try:
            kind = _kind_of(item)
        except registry.UnknownKind as error:
            ours = item.value["apiVersion"] == "dray.dev/v1"
            why = NO_OBJECTS.get(item.value["kind"], str(error)) if ours else str(error)
            ignored.append(Ignored(_name_of(item.value), f"{item.source}: {why}"))
            continue
        obj = _decode(item, kind, now)
        share(obj)
        objects[key_of(obj, kind)] = obj
    return Loaded(objects, tuple(ignored))


def typed(obj: Any, now: Time) -> tuple[ObjectKey, Object]:
    """A dict or typed object as a hub object with its place. Raises InputError."""
    value = codec.to_builtins(obj) if isinstance(obj, msgspec.Struct) else obj
    item = Item(value, "<object>")
    try:
        kind = _kind_of(item)
    except registry.UnknownKind as error:
        raise InputError("<object>", str(error)) from None
    made = _decode(item, kind, now)
    return key_of(made, kind), made


def inherit(obj: Object, old: Object | None) -> Object:
    """A manifest applied over an object that is there: identity and status stay, unless the manifest says them.

    So does all else that the server keeps of an object. Labels and annotations stay, too, but for those that the
    manifest that was last applied had.
    """
    if old is None:
        return obj
    meta, known = obj.metadata, old.metadata
    said = {name: value for name, value in msgspec.structs.asdict(meta).items() if value}
    said["labels"] = {**_unapplied(known, "labels"), **meta.labels}
    said["annotations"] = {**_unapplied(known, "annotations"), **meta.annotations}
    kept: dict[str, Any] = {"metadata": msgspec.structs.replace(known, **said)}
    status = getattr(obj, "status", None)
    if status is not None and status == type(status)():
        kept["status"] = old.status  # type: ignore[attr-defined]  # a kind with a status
    if isinstance(obj, Pod) and isinstance(old, Pod) and old.spec.node_name:
        kept["spec"] = _changed_spec(old.spec, obj.spec)
    return msgspec.structs.replace(obj, **kept)


def _changed_spec(old: PodSpec, said: PodSpec) -> PodSpec:
    """The spec of a pod that has a node, with what a server lets be changed of it: images and more tolerations."""
    images = {one.name: one.image for one in said.containers}
    containers = tuple(msgspec.structs.replace(one, image=images.get(one.name, one.image)) for one in old.containers)
    tolerations = tuple(dict.fromkeys((*old.tolerations, *said.tolerations)))
    seconds = said.active_deadline_seconds or old.active_deadline_seconds
    return msgspec.structs.replace(old, containers=containers, tolerations=tolerations, active_deadline_seconds=seconds)


def _unapplied(known: ObjectMeta, field: str) -> dict[str, str]:
    """The labels or annotations of an object that nobody applied."""
    present: dict[str, str] = getattr(known, field)
    try:
        applied = msgspec.json.decode(known.annotations.get(LAST_APPLIED, "{}"))["metadata"][field]
        return {key: value for key, value in present.items() if key not in applied}
    except (msgspec.DecodeError, UnicodeError, RecursionError, KeyError, TypeError):
        return dict(present)


def key_of(obj: Object, kind: Kind) -> ObjectKey:
    """Where an object is."""
    namespace = (obj.metadata.namespace or DEFAULT_NAMESPACE) if kind.namespaced else ""
    return ObjectKey(kind.storage.resource, namespace, obj.metadata.name)


def _kind_of(item: Item) -> Kind:
    value = item.value
    if not isinstance(value, dict):
        raise InputError(item.source, "not an object", item.line_of(""))
    for field in ("apiVersion", "kind"):
        if not isinstance(value.get(field), str):
            raise InputError(item.source, f"an object has no {field}", item.line_of(""))
    return registry.by_kind(value["apiVersion"], value["kind"])


def _name_of(value: dict[str, Any]) -> str:
    """Kind and name of an object of which nothing else is known."""
    metadata = value.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    place = [part for part in (known.get("namespace"), known.get("name")) if isinstance(part, str) and part]
    return f"{value['kind']} {'/'.join(place) or '(no name)'}"


def _decode(item: Item, kind: Kind, now: Time) -> Object:
    version = registry.split_api_version(item.value["apiVersion"])[1]
    reading = codec.read(item.value, kind.type_of(version))
    if reading.obj is None:
        first = reading.errors[0]
        raise InputError(item.source, f"{kind.kind}: {first}", item.line_of(first.field))
    obj = default_object(to_hub(reading.obj, kind.storage.api_version), now)
    if kind.namespaced and not obj.metadata.namespace:
        meta = msgspec.structs.replace(obj.metadata, namespace=DEFAULT_NAMESPACE)
        obj = msgspec.structs.replace(obj, metadata=meta)
    if not obj.metadata.name and obj.metadata.generate_name:
        line = item.line_of("metadata")
        place = f"({Path(item.source).name}:{line})" if line is not None else "*"
        meta = msgspec.structs.replace(obj.metadata, name=f"{obj.metadata.generate_name}{place}")  # nobody else's
        obj = msgspec.structs.replace(obj, metadata=meta)
    if not obj.metadata.name:
        raise InputError(item.source, f"{kind.kind}: metadata.name: a name is needed", item.line_of("metadata"))
    return obj
