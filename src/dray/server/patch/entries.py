"""The entries of `metadata.managedFields`: who wrote which fields, how and when."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from dray.server.patch import fields
from dray.server.patch.errors import PatchError
from dray.server.patch.fields import FieldSet

APPLY = "Apply"
UPDATE = "Update"
MAX_UPDATE_MANAGERS = 10
"""How many entries of updates an object keeps; the oldest ones are merged."""

_ANCIENT = "ancient-changes"


class Owner(NamedTuple):
    """What tells entries apart. A manager that applies has one entry for all versions, so `api_version` is empty."""

    manager: str
    operation: str
    api_version: str
    subresource: str

    def __str__(self) -> str:
        """As conflicts name it."""
        text = f'"{self.manager}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


class Entry(NamedTuple):
    """The fields of one owner. `api_version` is that of the last write."""

    fields: FieldSet
    api_version: str
    time: str | None


Entries = dict[Owner, Entry]


def owner_of(manager: str, operation: str, api_version: str, subresource: str) -> Owner:
    """The owner that a write belongs to."""
    return Owner(manager or "unknown", operation, api_version if operation == UPDATE else "", subresource)


def of_stored(managed: Iterable[dict[str, Any]]) -> Entries:
    """The entries of an object that is stored: `write` wrote them, so they are taken as they are."""
    return {
        Owner(
            entry["manager"],
            entry["operation"],
            entry["apiVersion"] if entry["operation"] == UPDATE else "",
            entry.get("subresource", ""),
        ): Entry(entry["fieldsV1"], entry["apiVersion"], entry.get("time"))
        for entry in managed
    }


def read(managed: Iterable[Any]) -> Entries:
    """The entries that a client sent, without those of no field. Raises PatchError (500) if they make no sense."""
    found = (_read_entry(position, entry) for position, entry in enumerate(managed))
    return {owner: entry for owner, entry in found if entry.fields}


def _read_entry(position: int, entry: Any) -> tuple[Owner, Entry]:
    if not isinstance(entry, dict):
        raise _unreadable(f"managed fields entry {position} is no object")
    operation, api_version = entry.get("operation"), entry.get("apiVersion")
    if operation not in (APPLY, UPDATE):
        raise _unreadable("operation must be `Apply` or `Update`")
    if not api_version or api_version.count("/") > 1:
        raise _unreadable(f"apiVersion must be a version or a group and a version, not {api_version!r}")
    if entry.get("fieldsType") != "FieldsV1":
        raise _unreadable(f'invalid fieldsType "{entry.get("fieldsType", "")}" in managed fields entry {position}')
    try:
        found = fields.read(entry.get("fieldsV1"))
    except fields.FieldSetError as error:
        raise _unreadable(f"error decoding set: {error}") from None
    except RecursionError:
        raise _unreadable("error decoding set: it is nested too deeply") from None
    owner = owner_of(entry.get("manager", ""), operation, api_version, entry.get("subresource", ""))
    return owner, Entry(found, api_version, entry.get("time"))


def write(entries: Entries) -> list[dict[str, Any]]:
    """The entries as objects carry them: appliers first, then by time."""
    in_order = sorted(entries.items(), key=lambda pair: (pair[0].operation, pair[1].time or "", pair[0]))
    return [_write_entry(owner, entry) for owner, entry in in_order]


def _write_entry(owner: Owner, entry: Entry) -> dict[str, Any]:
    written: dict[str, Any] = {
        "manager": owner.manager,
        "operation": owner.operation,
        "apiVersion": entry.api_version,
    }
    if entry.time is not None:
        written["time"] = entry.time
    written |= {"fieldsType": "FieldsV1", "fieldsV1": entry.fields}
    if owner.subresource:
        written["subresource"] = owner.subresource
    return written


def cap(entries: Entries) -> Entries:
    """The entries with the oldest updates of a version merged into one while there are too many."""
    updates = sorted(
        (owner for owner in entries if owner.operation == UPDATE), key=lambda owner: (entries[owner].time or "", owner)
    )
    excess = len(updates) - MAX_UPDATE_MANAGERS
    if excess <= 0:
        return entries
    capped = dict(entries)
    oldest: dict[str, Owner] = {}
    buckets: dict[Owner, list[Entry]] = {}
    for owner in updates:
        if excess <= 0:
            break
        bucket = Owner(_ANCIENT, UPDATE, owner.api_version, "")
        first = oldest.setdefault(owner.api_version, owner)
        if owner in (first, bucket):
            continue
        # The first one of a version becomes the bucket only when a second one joins it.
        merged = buckets.setdefault(bucket, [])
        if not merged:
            merged.append(capped.pop(bucket if bucket in capped else first))
        merged.append(capped.pop(owner))
        excess -= 1
    for bucket, merged in buckets.items():
        capped[bucket] = Entry(fields.union_of_all(one.fields for one in merged), bucket.api_version, merged[-1].time)
    return capped


def _unreadable(why: str) -> PatchError:
    return PatchError(500, f"failed to decode managed fields: {why}")
