"""AdmissionReview: what a webhook is asked, and what its answer means."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from dray.admission.evaluation import Given, request_document
from dray.api import codec
from dray.api.meta import Object, Status

__all__ = ["KNOWN_VERSIONS", "BadAnswer", "WebhookAnswer", "question", "read_answer", "version_of"]

GROUP: Final = "admission.k8s.io"
KNOWN_VERSIONS: Final = ("v1", "v1beta1")
JSON_PATCH: Final = "JSONPatch"
MOST_ANNOTATIONS: Final = 100


class BadAnswer(Exception):
    """An answer that cannot be understood, or that answers another question."""


class WebhookAnswer(msgspec.Struct, frozen=True):
    """What a webhook says."""

    allowed: bool
    status: Status | None = None
    patch: Sequence[Any] = ()
    annotations: dict[str, str] = {}
    warnings: tuple[str, ...] = ()


class _Response(msgspec.Struct, rename="camel"):
    uid: str = ""
    allowed: bool = False
    status: dict[str, Any] | None = None
    patch: str | None = None
    patch_type: str | None = None
    audit_annotations: dict[str, str] | None = None
    warnings: list[str] | None = None


class _Review(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    response: _Response | None = None


_read = msgspec.json.Decoder(_Review).decode


def version_of(wanted: Sequence[str]) -> str | None:
    """The first version that a webhook takes and dray writes."""
    return next((version for version in wanted if version in KNOWN_VERSIONS), None)


def question(uid: str, version: str, given: Given) -> bytes:
    """An AdmissionReview that asks about a request."""
    request = {
        "uid": uid,
        **request_document(given),
        "object": _raw(given.new),
        "oldObject": _raw(given.old),
    }
    return msgspec.json.encode({"kind": "AdmissionReview", "apiVersion": f"{GROUP}/{version}", "request": request})


def _raw(obj: Object | None) -> msgspec.Raw | None:
    return None if obj is None else msgspec.Raw(codec.encode(obj))


def read_answer(data: bytes, uid: str, version: str, *, is_mutating: bool) -> WebhookAnswer:
    """What an answer means. Raises BadAnswer."""
    try:
        review = _read(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadAnswer(f"the answer is no AdmissionReview: {error}") from None
    response = review.response
    if response is None:
        raise BadAnswer("webhook response was absent")
    if version == "v1":
        _check(review, response, uid, is_mutating=is_mutating)
    patch = _patch(response.patch) if is_mutating and response.patch else ()
    if patch and response.patch_type not in (None, JSON_PATCH):
        raise BadAnswer(f'unsupported patch type "{response.patch_type}"')
    return WebhookAnswer(
        response.allowed,
        _status(response.status),
        patch,
        dict(list((response.audit_annotations or {}).items())[:MOST_ANNOTATIONS]),
        tuple(response.warnings or ()),
    )


def _check(review: _Review, response: _Response, uid: str, *, is_mutating: bool) -> None:
    """What `v1` demands of an answer."""
    if response.uid != uid:
        raise BadAnswer(f'expected response.uid="{uid}", got "{response.uid}"')
    if (review.api_version, review.kind) != (f"{GROUP}/v1", "AdmissionReview"):
        found = f"{review.api_version}, Kind={review.kind}"
        raise BadAnswer(f"expected webhook response of {GROUP}/v1, Kind=AdmissionReview, got {found}")
    if not is_mutating:
        if response.patch:
            raise BadAnswer("validating webhook may not return response.patch")
        if response.patch_type is not None:
            raise BadAnswer("validating webhook may not return response.patchType")
    elif response.patch and response.patch_type is None:
        raise BadAnswer("webhook returned response.patch but not response.patchType")
    elif not response.patch and response.patch_type is not None:
        raise BadAnswer("webhook returned response.patchType but not response.patch")


def _patch(text: str) -> Sequence[Any]:
    try:
        found = msgspec.json.decode(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise BadAnswer(f"received undecodable patch in webhook response: {error}") from None
    if not isinstance(found, list):
        raise BadAnswer("received undecodable patch in webhook response: it is no list of operations")
    return found


def _status(document: dict[str, Any] | None) -> Status | None:
    if document is None:
        return None
    reading = codec.read(document, Status)
    if reading.obj is None:
        raise BadAnswer(f"response.status: {'; '.join(map(str, reading.errors))}")
    return reading.obj
