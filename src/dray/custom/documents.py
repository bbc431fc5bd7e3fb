"""Documents of custom resources: read, cut down to what the definition knows, and completed with defaults."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from dray.api import codec
from dray.api.custom import CustomObject
from dray.api.field import FieldError, Reason
from dray.api.meta import ObjectMeta
from dray.custom import embedded
from dray.custom.defaulting import DefaultsTooLarge, drop_nulls
from dray.custom.kinds import CustomKind
from dray.custom.plain_types import LARGEST
from dray.custom.pruning import shown

NAMELESS = frozenset(("kind", "apiVersion", "metadata"))
_TEXTS = frozenset(("name", "generateName", "namespace", "labels", "annotations"))
"""Metadata that is made of texts alone."""


def read_json(
    kind: CustomKind, body: bytes, *, find_duplicates: bool, keep_nulls: bool = False
) -> codec.Reading[CustomObject]:
    """A document as an object; unknown fields are dropped and named. Raises DecodeError.

    A null where there may be none is no value, unless nulls are kept: then it is a wrong one.
    """
    document = _parsed(body, find_duplicates=find_duplicates)
    twice = codec.duplicate_fields(body, document) if find_duplicates else ()
    if not isinstance(document, dict) or not _has_names(document):
        return codec.Reading(None)  # whoever called looks for what is wrong with it
    if b"null" in body and not keep_nulls:
        drop_nulls(document, kind.version.schema)
    return _read(kind, document, twice, is_small=len(body) <= LARGEST)


def _parsed(body: bytes, *, find_duplicates: bool) -> Any:
    try:
        return codec.parse_json(body)
    except codec.DecodeError:
        if find_duplicates:
            codec.duplicate_fields(body)  # which says more of what is wrong
        raise


def read_value(kind: CustomKind, value: dict[str, Any], *, keep_nulls: bool = False) -> codec.Reading[CustomObject]:
    """The same, from plain values that are left as they are."""
    return read_json(kind, msgspec.json.encode(value), find_duplicates=False, keep_nulls=keep_nulls)


def _has_names(document: dict[str, Any]) -> bool:
    return isinstance(document.get("kind"), str | None) and isinstance(document.get("apiVersion"), str | None)


def _read(
    kind: CustomKind, document: dict[str, Any], duplicates: tuple[str, ...], *, is_small: bool
) -> codec.Reading[CustomObject]:
    version = kind.version
    content = _content(document)
    is_whole = is_small and version.fits is not None and version.fits(content)
    unknown = [] if is_whole or version.prune is None else sorted(map(shown, version.prune(document) or ()))
    meta = _read_metadata(document.get("metadata") or {})
    if is_whole and meta.obj is not None and not meta.unknown and version.embedded is None:
        return codec.Reading(_object(document, meta.obj, content), duplicates=duplicates)
    errors = tuple(_in_metadata(error) for error in meta.errors)
    if version.embedded is not None:
        found, wrong = embedded.read(version.embedded, document)
        unknown, errors = sorted((*unknown, *found)), (*errors, *wrong[: codec.MOST_PROBLEMS])
    if meta.obj is None or errors:
        return codec.Reading(None, errors=errors)
    if not is_whole:
        content = _content(document)
        try:
            if version.default is not None:
                version.default(content)
        except DefaultsTooLarge as error:
            return codec.Reading(None, errors=(FieldError(Reason.INVALID, "<nil>", str(error)),))
    unknown += [f"metadata.{path}" for path in meta.unknown]
    obj = _object(document, meta.obj, content)
    return codec.Reading(obj, unknown=tuple(unknown[: codec.MOST_PROBLEMS]), duplicates=duplicates)


def _object(document: dict[str, Any], meta: ObjectMeta, content: dict[str, Any]) -> CustomObject:
    names = document.get("kind") or "", document.get("apiVersion") or ""
    return CustomObject(kind=names[0], api_version=names[1], metadata=meta, content=content)


def _read_metadata(given: Any) -> codec.Reading[ObjectMeta]:
    """The metadata: mostly texts, which are right as they come or are not."""
    if given.__class__ is dict and _TEXTS.issuperset(given):
        try:
            return codec.Reading(msgspec.convert(given, ObjectMeta))
        except msgspec.ValidationError:
            pass
    return codec.read(given, ObjectMeta)


def _content(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in NAMELESS}


def _in_metadata(error: FieldError) -> FieldError:
    return replace(error, field=f"metadata.{error.field}" if error.field else "metadata")
