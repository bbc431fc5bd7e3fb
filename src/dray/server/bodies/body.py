"""Request bodies: from bytes to a typed object in hub shape, with the complaints that Kubernetes would make."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from dray.api import codec, manifest, registry
from dray.api.kinds import PODS, SLICES
from dray.api.meta import Object
from dray.api.registry import DRAY_GROUP, RESOURCE_GROUP, Kind
from dray.api.shared_parts import share
from dray.api.status import ApiError
from dray.api.wire import MEDIA_TYPE as PROTOBUF
from dray.api.wire import WireError
from dray.custom import documents as custom_documents
from dray.custom.kinds import CustomKind
from dray.process.http.messages import YAML
from dray.server import errors
from dray.server.beside import LARGE
from dray.server.bodies import number_ranges, parts, pod_bodies
from dray.server.bodies.options import WriteOptions
from dray.server.patch.formats import APPLY_PATCH, FORMATS, Patch
from dray.server.protobuf import read as protobuf
from dray.server.protobuf.tables import UnknownMessage
from dray.server.routes import Route
from dray.validation import to_hub

JSON_TYPES = ("application/json", "")
LARGE_YAML = 4 * 1024
"""Bytes from which on a body that may be YAML is read beside the loop: each takes as long as a hundred of JSON."""
LARGE_PROTOBUF = 4 * 1024
"""The same for protobuf, where two bytes may be an object."""
MANY_PARTS = 500
"""Objects and values of a body, counted by the signs between them, from which on it is large at any length: to put
defaults into one and to say what is wrong with it takes up to twenty microseconds."""
LARGE_WITH_SELECTORS = 1024
"""The same for objects with selectors, rules or policies in CEL: to compile a kilobyte takes twenty milliseconds."""
_LARGE_FORMS = {YAML: LARGE_YAML, APPLY_PATCH: LARGE_YAML, PROTOBUF: LARGE_PROTOBUF}
_SHORT = min(_LARGE_FORMS.values())
_MAY_SEARCH = (b"matches", b"find", b"pattern", b"\\")
"""What a body has that may have a regular expression in it, plain or escaped: those may take long at any length."""
_WITH_EXPRESSIONS = (RESOURCE_GROUP, DRAY_GROUP, "apiextensions.k8s.io", "admissionregistration.k8s.io")
_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}
READ_TYPES = ("application/json", "application/yaml", PROTOBUF)


def media_type(header: str) -> str:
    """`application/json; charset=utf-8` → `application/json`."""
    return header.partition(";")[0].strip().lower()


def is_large(body: bytes, content_type: str, kind: Kind) -> bool:
    """Whether reading a body, and looking at what is in it, is nothing for the event loop."""
    size = len(body)
    if size > LARGE or (size > MANY_PARTS and body.count(b",") + body.count(b"{") > MANY_PARTS):
        return True
    if size > _SHORT and size > _LARGE_FORMS.get(media_type(content_type), LARGE):
        return True
    if kind.is_custom:
        assert isinstance(kind, CustomKind)
        version = kind.version
        return not version.is_compiled or version.is_large or size + version.growth.added_to(size) > LARGE
    if kind.group not in _WITH_EXPRESSIONS or kind is SLICES:
        return False
    return size > LARGE_WITH_SELECTORS or any(word in body for word in _MAY_SEARCH)


def parse(body: bytes, content_type: str) -> Any:
    """A body as plain values. Raises ApiError for other media types, what is not JSON or YAML, and too many parts."""
    value = _parse(body, media_type(content_type))
    parts.check_read(value, len(body))
    return value


def _parse(body: bytes, given: str) -> Any:
    if given in JSON_TYPES:
        try:
            return codec.parse_json(body)
        except codec.DecodeError as error:
            raise errors.bad_request(f"the body is not JSON: {error}") from None
    if given == YAML:
        return parse_yaml(body)
    if given == PROTOBUF:
        return parse_protobuf(body)
    raise errors.unsupported_media_type(given, READ_TYPES)


def parse_yaml(body: bytes) -> Any:
    """A body with one YAML document. Raises ApiError."""
    try:
        documents = manifest.parse(body)
    except manifest.ManifestError as error:
        raise errors.bad_request(f"the body is not YAML: line {error.line}: {error.message}") from None
    if len(documents) != 1:
        raise errors.bad_request(f"the body must be one YAML document, not {len(documents)}")
    return documents[0].value


def parse_protobuf(body: bytes) -> Any:
    """A body from a typed client. Raises ApiError for kinds that are not read in protobuf (415)."""
    try:
        return protobuf.decode(body)
    except WireError as error:
        raise errors.bad_request(f"the body is not protobuf: {error}") from None
    except UnknownMessage as error:
        message = (
            f"{error} is not read in protobuf; send it as application/json (--kube-api-content-type for components)"
        )
        raise ApiError(415, "UnsupportedMediaType", message) from None


def read_patch(body: bytes, content_type: str) -> Patch:
    """A patch, as its media type says. Raises ApiError for other media types and for what cannot be read."""
    given = media_type(content_type)
    if given not in FORMATS:
        raise errors.unsupported_media_type(given, FORMATS)
    value = _parse(body, YAML if given == APPLY_PATCH else "application/json")
    parts.check_read(value, len(body))
    return Patch(given, value, number_ranges.may_be_in(body))


def decode(body: bytes, content_type: str, route: Route, options: WriteOptions, warnings: list[str]) -> Object:
    """The object in a body, in hub shape. Unknown and duplicate fields fail or warn, as `fieldValidation` says."""
    if media_type(content_type) in JSON_TYPES:
        return _decode_json(body, route, options, warnings)
    value = parse(body, content_type)
    obj = from_value(value, route, options, warnings)
    number_ranges.check(value, route)
    return obj


def _decode_json(body: bytes, route: Route, options: WriteOptions, warnings: list[str]) -> Object:
    strict = options.field_validation != "Ignore"
    parts.check_json(body, route.kind)
    try:
        reading = _read_json(body, route, find_duplicates=strict)
    except codec.DecodeError as error:
        kind = route.kind.kind
        raise errors.bad_request(f"the object provided is unrecognized (must be of type {kind}): {error}") from None
    if reading.obj is None:
        value = codec.parse_json(body)
        check_type(value, route)
        if value is None:
            reading = _read_json(b"{}", route, find_duplicates=False)
    if not route.kind.is_custom:  # whose definition says which numbers it takes
        number_ranges.check_json(body, route)
    return _judge(reading, route, options, warnings)


def _read_json(body: bytes, route: Route, *, find_duplicates: bool) -> codec.Reading[Any]:
    if isinstance(route.kind, CustomKind):
        return custom_documents.read_json(route.kind, body, find_duplicates=find_duplicates)
    if route.kind is PODS:
        return pod_bodies.read(body, find_duplicates=find_duplicates)
    reading = codec.read_json(body, route.kind.type_of(route.version), find_duplicates=find_duplicates)
    if route.kind is SLICES and reading.obj is not None:  # devices of one model differ in little
        share(reading.obj)
    return reading


def from_value(
    value: Any,
    route: Route,
    options: WriteOptions,
    warnings: list[str],
    *,
    keep_nulls: bool = False,
    size: int | None = None,
) -> Object:
    """Plain values as an object in hub shape; `size` is how many bytes they take at most, if that is known.

    Raises ApiError.
    """
    check_type(value, route)
    if size is None or parts.may_be_too_many(size, route.kind):
        parts.check(value, route.kind)
    if isinstance(route.kind, CustomKind):
        return _judge(
            custom_documents.read_value(route.kind, value or {}, keep_nulls=keep_nulls), route, options, warnings
        )
    return _judge(codec.read(value, route.kind.type_of(route.version)), route, options, warnings)


def _judge(reading: codec.Reading[Any], route: Route, options: WriteOptions, warnings: list[str]) -> Object:
    kind = route.kind.kind
    if reading.obj is None:
        problems = "; ".join(errors.told(reading.errors, str))
        message = f'{kind} in version "{route.version}" cannot be handled as a {kind}: {problems}'
        raise errors.bad_request(message)
    obj = reading.obj
    _check_names(obj.api_version, obj.kind, route)
    complain(reading, kind, route.version, options, warnings)
    home = route.kind if route.kind.converts else route.kind.storage  # who is converted is so when it is stored
    hub = to_hub(obj, home.api_version)
    return hub if hub.kind else replace(hub, kind=kind)  # the path tells what the body left out


def complain(reading: codec.Reading[Any], kind: str, version: str, options: WriteOptions, warnings: list[str]) -> None:
    """Warns of unknown and duplicate fields, or refuses them (ApiError), as `fieldValidation` says."""
    if not reading.unknown and not reading.duplicates:
        return
    complaints = errors.told(reading.unknown, lambda path: f'unknown field "{_escaped(path)}"')
    complaints += errors.told(reading.duplicates, lambda path: f'duplicate field "{_escaped(path)}"')
    if complaints and options.field_validation == "Strict":
        said = ", ".join(complaints)
        message = f'{kind} in version "{version}" cannot be handled as a {kind}: strict decoding error: {said}'
        raise errors.bad_request(message)
    if options.field_validation == "Warn":
        warnings.extend(complaints)


def _escaped(path: str) -> str:
    """Names may be anything: what cannot be seen is written as Go writes it between quotes."""
    if path.isprintable() and '"' not in path and "\\" not in path:
        return path
    return "".join(_escaped_letter(letter) for letter in path)


def _escaped_letter(letter: str) -> str:
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if letter.isprintable():
        return letter
    code = ord(letter)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def check_type(value: Any, route: Route) -> None:
    """That a body is of the kind and version that the path names. Raises ApiError."""
    kind = route.kind.kind
    if value is None:
        return  # null is an empty object of the kind that the path names
    if not isinstance(value, dict):
        raise errors.bad_request(f"the object provided is unrecognized (must be of type {kind}): it is not an object")
    api_version, given = value.get("apiVersion", ""), value.get("kind", "")
    if not isinstance(api_version, str | None) or not isinstance(given, str | None):
        raise errors.bad_request(
            f"the object provided is unrecognized (must be of type {kind}): kind and apiVersion must be strings"
        )
    _check_names(api_version or "", given or "", route)


def check_part(value: Any, kind: str, group: str) -> None:
    """That a body that is sent to a part of an object is of the kind that goes there. Raises ApiError."""
    if not isinstance(value, dict):
        raise errors.bad_request(f"the object provided is unrecognized (must be of type {kind}): it is not an object")
    api_version, given = value.get("apiVersion") or "", value.get("kind") or ""
    if not isinstance(api_version, str) or not isinstance(given, str):
        raise errors.bad_request(
            f"the object provided is unrecognized (must be of type {kind}): kind and apiVersion must be strings"
        )
    is_other_group = bool(api_version) and registry.split_api_version(api_version)[0] != group
    if given not in ("", kind) or is_other_group:
        said = f"{given or kind} of {api_version or 'no version'} cannot be handled as a {kind}"
        raise errors.bad_request(said + (f" of {group}" if group else ""))


def _check_names(api_version: str, given: str, route: Route) -> None:
    kind = route.kind.kind
    if given and given != kind:
        version = registry.split_api_version(api_version)[1] or route.version
        raise errors.bad_request(f'{given} in version "{version}" cannot be handled as a {kind}')
    if api_version and api_version != route.api_version:
        _raise_other_version(api_version, given, route)


def _raise_other_version(api_version: str, given: str, route: Route) -> None:
    kind = route.kind
    try:
        registry.by_kind(api_version, kind.kind)
    except registry.UnknownKind:
        version = registry.split_api_version(api_version)[1]
        message = f'{given or kind.kind} in version "{version}" cannot be handled as a {kind.kind}: '
        raise errors.bad_request(message + f"there is no {kind.kind} in {api_version}") from None
    raise errors.bad_request(
        f"the API version in the data ({api_version}) does not match the expected API version ({route.api_version})"
    )
