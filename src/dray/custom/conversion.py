"""What is asked of a conversion webhook, and what its answer must be like (ConversionReview)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from dray.api import codec
from dray.api.custom import CustomObject
from dray.api.visible import visible
from dray.validation.context import Errors
from dray.validation.metadata import validate_annotations, validate_labels

VERSIONS = ("v1", "v1beta1")
LONGEST_QUOTE: Final = 1024
"""Letters of what a webhook says that are repeated to whoever asked."""
_GROUP = "apiextensions.k8s.io"


class ConversionFailed(Exception):
    """An answer that cannot be used; the message says why."""


def question(uid: str, api_version: str, objects: Sequence[CustomObject], accepted: Sequence[str]) -> bytes:
    """A review that asks for objects in another version, in the first form that the webhook accepts."""
    form = next((version for version in VERSIONS if version in accepted), VERSIONS[0])
    return codec.encode(
        {
            "apiVersion": f"{_GROUP}/{form}",
            "kind": "ConversionReview",
            "request": {
                "uid": uid,
                "desiredAPIVersion": api_version,
                "objects": [one.document() for one in objects],
            },
        }
    )


def answer(data: bytes, uid: str, api_version: str, objects: Sequence[CustomObject]) -> list[CustomObject]:
    """The objects of an answer, in the order of those that were sent. Raises ConversionFailed."""
    try:
        review = msgspec.json.decode(data)
        response = review["response"]
        result, converted = response.get("result") or {}, response.get("convertedObjects") or []
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError, TypeError, AttributeError):
        raise ConversionFailed("the answer is no ConversionReview with a response") from None
    if response.get("uid") != uid:
        raise ConversionFailed(f"the answer is about uid {str(response.get('uid'))[:LONGEST_QUOTE]!r}, not {uid!r}")
    if not isinstance(result, dict) or result.get("status") != "Success":
        why = result.get("message") if isinstance(result, dict) else None
        raise ConversionFailed(visible(str(why or "the answer does not say status: Success")[:LONGEST_QUOTE]))
    if not isinstance(converted, list) or len(converted) != len(objects):
        raise ConversionFailed(f"{len(objects)} objects were sent, and another number came back")
    return [_accepted(one, sent, api_version) for one, sent in zip(converted, objects, strict=True)]


def _accepted(document: Any, sent: CustomObject, api_version: str) -> CustomObject:
    """An object as it came back. Of its metadata, only labels and annotations may be other than they were."""
    meta = sent.metadata
    about = f"{meta.namespace}/{meta.name}".removeprefix("/")
    try:
        made = codec.custom_object(document) if isinstance(document, dict) else None
    except codec.DecodeError as error:
        raise ConversionFailed(f"{about}: {error}") from None
    if made is None or made.kind != sent.kind or made.api_version != api_version:
        raise ConversionFailed(f"{about}: it came back as something else than {sent.kind} in {api_version}")
    given = made.metadata
    if (given.name, given.namespace, given.uid) != (meta.name, meta.namespace, meta.uid):
        raise ConversionFailed(f"{about}: it came back with another name, namespace or uid")
    if given.labels != meta.labels or given.annotations != meta.annotations:
        errors: Errors = []
        validate_labels(errors, given.labels, "metadata.labels")
        validate_annotations(errors, given.annotations, "metadata.annotations")
        if errors:
            raise ConversionFailed(f"{about}: it came back with {str(errors[0])[:LONGEST_QUOTE]}")
    return replace(made, metadata=replace(meta, labels=given.labels, annotations=given.annotations))
