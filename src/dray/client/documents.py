"""What a server sends, as typed objects in hub shape, and back, without losing what this version of dray cannot read.

A newer server may send fields that dray's types do not have. They are left out of the typed object, and `graft` puts
them back when a changed object is written.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from dray.api import codec
from dray.api.meta import Object, ObjectMeta
from dray.api.registry import Kind
from dray.api.status import ApiError
from dray.validation import from_hub, to_hub

_IDENTITIES = ("uid", "name", "key", "type", "device", "ip")
"""Fields that tell which entry of a list is which, the best first."""


class Form(msgspec.Struct, frozen=True):
    """A kind in one of the versions that a server has it in."""

    kind: Kind
    version: str

    @property
    def api_version(self) -> str:
        """The `apiVersion` on the wire."""
        return self.kind.api_version_of(self.version)

    @property
    def has_hub_shape(self) -> bool:
        """Whether the version differs from the hub in `apiVersion` alone."""
        return self.kind.type_of(self.version) is self.kind.hub

    def read(self, data: bytes) -> tuple[Object, bool]:
        """An object in hub shape, and whether there was more in the document. Raises ApiError if it is unreadable."""
        try:
            reading = codec.read_json(data, self.kind.type_of(self.version), find_duplicates=False)
        except codec.DecodeError as error:
            raise _unreadable(self.kind, str(error)) from None
        if reading.obj is None:
            raise _unreadable(self.kind, "; ".join(map(str, reading.errors)))
        obj = reading.obj
        if obj.kind != self.kind.kind or obj.api_version != self.api_version:  # entries of a list do not say
            obj = replace(obj, kind=self.kind.kind, api_version=self.api_version)
        return to_hub(obj, self.kind.storage.api_version), bool(reading.unknown)

    def write(self, obj: Object) -> bytes:
        """The document of an object in hub shape."""
        return codec.encode(from_hub(obj, self.api_version))

    def plain(self, obj: Object) -> dict[str, Any]:
        """The same as plain values."""
        found: dict[str, Any] = codec.to_builtins(from_hub(obj, self.api_version))
        return found

    def bookmark(self, revision: str) -> Object:
        """An object that only says how far a watch has come."""
        meta = ObjectMeta(resource_version=revision)
        return self.kind.hub(kind=self.kind.kind, api_version=self.kind.storage.api_version, metadata=meta)


class ListMeta(msgspec.Struct, rename={"resource_version": "resourceVersion", "continue_": "continue"}):
    """What of a list's metadata a client needs; the rest is passed over."""

    resource_version: str = ""
    continue_: str = ""


class Page(msgspec.Struct):
    """A list with its entries not yet read."""

    metadata: ListMeta
    items: list[msgspec.Raw] | None = None


_page_decoder = msgspec.json.Decoder(Page)


def read_page(form: Form, data: bytes) -> Page:
    """A page of a list. Raises ApiError if it is none."""
    try:
        return _page_decoder.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise _unreadable(form.kind, f"not a list: {error}") from None


def _unreadable(kind: Kind, why: str) -> ApiError:
    return ApiError(500, "InternalError", f"the server sent a {kind.kind} that cannot be read: {why}")


def graft(stored: Any, before: Any, after: Any) -> Any:
    """`after`, completed by whatever of `stored` is not in `before`, which is how dray reads `stored`.

    All three are plain values of one place in a document. What dray knows is as in `after`; what it does not know
    stays, unless the part around it is gone.
    """
    if before == after:
        return stored
    if isinstance(stored, dict) and isinstance(before, dict) and isinstance(after, dict):
        kept = {name: value for name, value in stored.items() if name not in before and name not in after}
        changed = {
            name: graft(stored[name], before[name], value) if name in stored and name in before else value
            for name, value in after.items()
        }
        return kept | changed
    if isinstance(stored, list) and isinstance(before, list) and isinstance(after, list):
        if len(stored) != len(before):
            return after
        return _graft_list(stored, before, after)
    return after


def _graft_list(stored: list[Any], before: list[Any], after: list[Any]) -> list[Any]:
    """Entries stay themselves by what identifies them, else by place if none came or went."""
    free = dict.fromkeys(range(len(before)))
    result = []
    for place, value in enumerate(after):
        origin = _origin(free, before, value, place if len(before) == len(after) else None)
        if origin is None:
            result.append(value)
        else:
            del free[origin]
            result.append(graft(stored[origin], before[origin], value))
    return result


def _origin(free: dict[int, None], before: list[Any], value: Any, place: int | None) -> int | None:
    if place in free and before[place] == value:
        return place
    if isinstance(value, dict):
        for name in _IDENTITIES:
            if name in value:
                same = (it for it in free if isinstance(before[it], dict) and before[it].get(name) == value[name])
                return next(same, None)
    equal = next((it for it in free if before[it] == value), None)
    return equal if equal is not None else place if place in free else None
