"""Who set which field: keeps `managedFields` for every write over HTTP that is no apply.

A writer is known by its `fieldManager`, or else by its User-Agent. Components inside the process name neither, and are
not recorded: their four writes per pod would cost more than all the rest of the bookkeeping.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec
from msgspec.structs import replace

from dray.api import codec, schema
from dray.api.custom import CustomObject
from dray.api.generated.core import Pod, PodSpec, PodStatus
from dray.api.meta import ManagedFieldsEntry, Object, ObjectMeta
from dray.api.shared_parts import share
from dray.api.sharing import remembered
from dray.api.struct import decode_value
from dray.api.text_memory import remember_texts
from dray.custom.kinds import CustomKind
from dray.server.bodies import parts
from dray.server.bodies.options import MANAGER_LENGTH
from dray.server.custom import shapes
from dray.server.custom.first_fields import FirstFields
from dray.server.engine import Call
from dray.server.objects import with_metadata
from dray.server.patch import entries, managed
from dray.server.patch.entries import UPDATE
from dray.server.patch.fields import FieldSet
from dray.server.patch.inline import InlineDefinition
from dray.validation import from_hub

UNNAMED = "unknown"
"""The manager of a client that says nothing of itself."""

MOST_REMEMBERED = 1024
LONGEST_REMEMBERED = 4096
"""How many contents of new objects are remembered with their fields, and how long (in bytes) one may be."""
MOST_ENTRIES = 128
"""How many entries are remembered as objects hold them: whoever writes many objects writes many in one second."""

_NO_SPEC = PodSpec()
_NO_STATUS = PodStatus()

_Entries = tuple[ManagedFieldsEntry, ...]


@remember_texts(256)
def manager_of(agent: str) -> str:
    """The manager that a User-Agent stands for: `kubectl/v1.37 (linux)` is `kubectl`."""
    name = "".join(letter for letter in agent.partition("/")[0] if letter.isprintable())
    return name.encode()[:MANAGER_LENGTH].decode(errors="ignore") or UNNAMED


def definition_of(call: Call) -> schema.Definition | InlineDefinition:
    """The schema of what a call is about, in the version of the request."""
    kind = call.route.kind
    if isinstance(kind, CustomKind):
        return shapes.definition_of(kind)
    return schema.for_kind(kind.group, call.route.version, kind.kind)


def document_of(call: Call, obj: Object) -> dict[str, Any]:
    """A stored object as plain values, in the version of the request."""
    plain: dict[str, Any] = codec.to_builtins(from_hub(obj, call.route.api_version))
    return plain


def typed(found: list[dict[str, Any]]) -> _Entries | None:
    """Entries as objects hold them; those of many objects are alike, and there once. None: too many to be kept."""
    encoded = msgspec.json.encode(found)
    if len(encoded) > 2 * parts.MOST_OWNED and parts.are_too_many_owned(found):
        return None
    return _typed(encoded)


@remember_texts(MOST_ENTRIES, longest=LONGEST_REMEMBERED)
def _typed(encoded: bytes) -> _Entries:
    found = msgspec.json.decode(encoded, type=_Entries, dec_hook=decode_value)
    for entry in found:
        share(entry)
    return found


def settled(call: Call, live: Object, new: Object) -> Object:
    """The new object with the entries that an update starts from, before anybody judges those that it brings."""
    given, stored = new.metadata.managed_fields, live.metadata.managed_fields
    if given is stored or given == stored:
        return new
    if not given:
        return with_metadata(new, managed_fields=stored)
    known = managed.starting_point(codec.to_builtins(stored), codec.to_builtins(given), call.route.subresource)
    return with_metadata(new, managed_fields=typed(entries.write(known)) or ())


def track(call: Call, live: Object | None, new: Object) -> Object:
    """The new object with `managedFields` after a write other than apply; `live` is None for a create, and an update is
    `settled`.

    An object without entries, because a component made it, stays without until somebody applies it: then all of it
    belongs to `before-first-apply`, as in Kubernetes. So it is, too, with one that has more of them than are kept.
    """
    if (live is not None and not new.metadata.managed_fields) or not call.field_manager:
        return new
    if live is None and not new.metadata.managed_fields and (_is_stored_form(call) or call.route.kind.is_custom):
        return with_metadata(new, managed_fields=_first_entries(call, new))
    write = managed.Write(definition_of(call), call.field_manager, str(call.now), call.route.subresource)
    after = document_of(call, new)
    before = None
    if live is not None:
        before = document_of(call, with_metadata(live, managed_fields=new.metadata.managed_fields))
    tracked = managed.track_update(before, after, write)
    return with_metadata(new, managed_fields=typed(tracked) or ())  # as Kubernetes does: the write is worth more


def _is_stored_form(call: Call) -> bool:
    kind = call.route.kind
    return call.route.version == kind.versions[0] and kind.storage is kind


def _first_entries(call: Call, new: Object) -> _Entries:
    """The entry of who creates an object. Objects of one template have the same fields: they are found only once."""
    if isinstance(call.route.kind, CustomKind):
        fields = _first_fields_of(call.route.kind).of(cast(CustomObject, new))
    elif isinstance(new, Pod):
        meta = new.metadata
        if meta.owner_references or meta.finalizers or new.status != _NO_STATUS:
            rest = codec.encode(replace(new, metadata=_nameless(meta), spec=_NO_SPEC))
            fields = _fields_of_new_pod(new.spec, call.route.version, rest)
        else:
            kept = (bool(meta.generate_name), tuple(meta.labels), tuple(meta.annotations))
            fields = _fields_of_plain_pod(new.spec, call.route.version, kept)
    else:
        content = codec.encode(replace(new, metadata=_nameless(new.metadata)))
        fields = _fields_of_new(call.route.kind.group, call.route.version, call.route.kind.kind, content)
    if not fields or (call.is_large and parts.are_too_many_owned(fields)):
        return ()
    entry = ManagedFieldsEntry(
        manager=call.field_manager,
        operation=UPDATE,
        api_version=call.route.api_version,
        time=call.now,
        fields_type="FieldsV1",
        fields_v1=fields,
    )
    return (entry,)


def _first_fields_of(kind: CustomKind) -> FirstFields:
    """The same for custom objects: these rarely come in numbers with one content, but often with the same names."""
    made: FirstFields | None = kind.__dict__.get("first_fields")
    if made is None:
        definition = shapes.definition_of(kind)

        def find(new: CustomObject) -> FieldSet:
            document = {"metadata": codec.to_builtins(_nameless(new.metadata)), **new.content}
            return managed.first_fields(document, definition)

        made = kind.__dict__["first_fields"] = FirstFields(definition.shape, find)
    return made


@remembered
def _fields_of_new_pod(spec: PodSpec, version: str, rest: bytes) -> FieldSet:
    """The same for a pod, which shares its spec with others: only the rest need be written to be compared."""
    document = {**msgspec.json.decode(rest), "spec": codec.to_builtins(spec)}
    return managed.first_fields(document, schema.for_kind("", version, "Pod"))


@remembered
def _fields_of_plain_pod(spec: PodSpec, version: str, kept: tuple[bool, tuple[str, ...], tuple[str, ...]]) -> FieldSet:
    """The same for a pod of which nothing but the keys of labels and annotations is its own."""
    generates, labels, annotations = kept
    meta = ObjectMeta(
        generate_name="x" if generates else "",
        labels=dict.fromkeys(labels, ""),
        annotations=dict.fromkeys(annotations, ""),
    )
    return _fields_of_new_pod(spec, version, codec.encode(Pod(metadata=meta)))


def _nameless(meta: ObjectMeta) -> ObjectMeta:
    """The part of the metadata that makes a difference to which fields are set: keys, but no values."""
    return ObjectMeta(
        generate_name="x" if meta.generate_name else "",
        labels=dict.fromkeys(meta.labels, ""),
        annotations=dict.fromkeys(meta.annotations, ""),
        owner_references=meta.owner_references,
        finalizers=meta.finalizers,
    )


@remember_texts(MOST_REMEMBERED, longest=LONGEST_REMEMBERED)
def _fields_of_new(group: str, version: str, kind: str, content: bytes) -> FieldSet:
    """The fields that a create with this content sets; nothing for content that has no fields of its own."""
    return managed.first_fields(msgspec.json.decode(content), schema.for_kind(group, version, kind))
