"""Server-side apply: an object becomes what a manager wants, as far as nobody else wants it otherwise.

live ──merge── applied        what is applied replaces what is there
        │
      prune                   what the manager applied last time, not now, and nobody else owns, goes
        │
     compare with live        what changed and somebody else owns is a conflict, or is taken over by force
        │
  new object and entries
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dray.server.patch import check, entries, fields, last_applied
from dray.server.patch.compare import compare
from dray.server.patch.entries import APPLY, UPDATE, Entries, Entry, Owner
from dray.server.patch.errors import Conflict, ConflictsError, PatchError, bounded_depth
from dray.server.patch.fields import FieldSet
from dray.server.patch.managed import Write, lose, managed_fields, record, stripped
from dray.server.patch.merge import merge, remove
from dray.server.patch.shape import ElementError, Shape, zero

_BEFORE = "before-first-apply"


def apply(
    live: Mapping[str, Any] | None, applied: Any, write: Write, *, force: bool = False
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The new object, without `managedFields`, and the `managedFields` it is to have; `live` is None for a create.

    Raises ConflictsError if others own fields that would change, and PatchError: 400 if what is applied is of another
    kind or has `managedFields`, 500 if it does not fit the schema.
    """
    current = _without_managed_fields(live or {})
    try:
        with bounded_depth():
            _check(applied, write)
            known = entries.of_stored(managed_fields(live) or ())
            if live is not None and not known:
                known = _before_first_apply(current, write)
            return _apply(current, _without_managed_fields(applied), known, write, force)
    except ElementError as error:
        raise PatchError(500, f"failed to create typed live object ({_name(current, write)}): {error}") from None


def _apply(
    live: dict[str, Any], applied: dict[str, Any], known: Entries, write: Write, force: bool
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    shape, owner = write.shape, write.owner(APPLY)
    last = known.get(owner)
    wanted = fields.without_subtrees(shape.applied_fields(applied) or {}, write.reset)
    managed = known | {owner: Entry(wanted, write.api_version, last.time if last else write.now)}
    new: dict[str, Any] = merge(shape, live, applied)
    if last is not None:
        new = _prune(shape, new, last.fields, managed)

    changes = compare(shape, live, new).without(write.reset)
    conflicts = _conflicts(managed, changes.written, owner)
    if conflicts and not force:
        conflicts = last_applied.not_allowed(conflicts, live, write)
    if conflicts and not force:
        raise ConflictsError(
            [Conflict(str(other), path) for other in sorted(conflicts) for path in fields.paths(conflicts[other])]
        )
    managed = lose(managed, changes.written, changes.removed, keeper=owner)
    new = last_applied.sync(new, applied, write)
    return new, entries.write(_finish(managed, owner, write, changed=new != live))


def _finish(managed: Entries, owner: Owner, write: Write, *, changed: bool) -> Entries:
    """The entry of the manager without what nobody owns, and with the time of the last apply that changed something."""
    mine = managed.pop(owner, None)
    own = stripped(mine.fields) if mine else {}
    if mine and own:
        managed[owner] = Entry(fields.shared(own), write.api_version, write.now if changed else mine.time)
    return managed


def _prune(shape: Shape, merged: dict[str, Any], last: FieldSet, managed: Entries) -> dict[str, Any]:
    """The object without what the manager no longer applies, unless somebody owns it."""
    owned = fields.union_of_all(entry.fields for entry in managed.values())
    unwanted = fields.difference(_with_holders(shape, last), _with_holders(shape, owned))
    pruned: dict[str, Any] = remove(shape, merged, unwanted) if unwanted else merged
    return pruned


def _with_holders(shape: Shape, found: FieldSet) -> FieldSet:
    """A set with the declared fields that hold a member of it: whoever owns `.spec.a` has an interest in `.spec`."""
    held: FieldSet = {}
    for step, node in found.items():
        if node and step != fields.SELF:
            node = _with_holders(shape.part(step), node)
            held[step] = fields.as_member(node) if shape.is_declared(step) else node
        else:
            held[step] = node
    return held


def _conflicts(managed: Entries, written: FieldSet, owner: Owner) -> dict[Owner, FieldSet]:
    found = {other: fields.intersection(entry.fields, written) for other, entry in managed.items() if other != owner}
    return {other: overlap for other, overlap in found.items() if overlap}


def _before_first_apply(live: dict[str, Any], write: Write) -> Entries:
    """Whatever was there before anything was tracked belongs to a manager of its own."""
    changes = compare(write.shape, zero(write.definition), live).without(write.reset)
    owner = entries.owner_of(_BEFORE, UPDATE, write.api_version, write.subresource)
    return record({}, changes, write, owner)


def _check(applied: Any, write: Write) -> None:
    gvk = write.gvk
    if not isinstance(applied, dict):
        raise PatchError(400, "error decoding patch: what is applied must be an object")
    if (applied.get("apiVersion"), applied.get("kind")) != (write.api_version, gvk.kind):
        raise PatchError(400, f"invalid object type: {_kind(applied.get('apiVersion'), applied.get('kind'))}")
    metadata = applied.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise PatchError(400, "metadata.managedFields must be nil")
    found = list(check.problems(write.shape, applied))
    if found:
        summary = found[0] if len(found) == 1 else "\n  ".join(["errors:", *found])
        raise PatchError(500, f"failed to create typed patch object ({_name(applied, write)}): {summary}")


def _name(document: Mapping[str, Any], write: Write) -> str:
    metadata = document.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}"
    return f"{name}; {_kind(write.api_version, write.gvk.kind)}"


def _kind(api_version: Any, kind: Any) -> str:
    """A kind as messages show it; the core group is empty, and so is what is missing."""
    group_version = api_version if isinstance(api_version, str) else ""
    qualified = group_version if "/" in group_version else f"/{group_version}"
    return f"{qualified}, Kind={kind if isinstance(kind, str) else ''}"


def _without_managed_fields(document: Mapping[str, Any]) -> dict[str, Any]:
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return dict(document)
    rest = {name: value for name, value in metadata.items() if name != "managedFields"}
    return {**document, "metadata": rest}
