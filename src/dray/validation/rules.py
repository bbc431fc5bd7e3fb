"""What validation knows of a kind: a record of functions, with the usual behaviour where a kind has no own.

The life of an object through them, as in Kubernetes:

    create          default → prepare_create → validate_create → warnings
    update          default → prepare_update → validate_update → warnings
    status update   default_of_status → prepare_status → validate_status

All are pure: they return the changed object or the errors, and leave what they were given alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from dray.api.times import Time
from dray.validation.context import Context, Errors
from dray.validation.metadata import (
    DNS_SUBDOMAIN,
    NameRule,
    keep_system_metadata,
    metadata_for_status,
    validate_metadata,
    validate_metadata_update,
    with_metadata,
)

CONTENT: Final = "content"


def _no_defaults(obj: Any, _now: Time) -> Any:
    return obj


def _unchanged(new: Any, _old: Any, _ctx: Context) -> Any:
    return new


def _no_errors(_errors: Errors, _new: Any, _old: Any, _ctx: Context) -> None:
    """Nothing but the metadata is checked."""


def _no_warnings(_obj: Any) -> list[str]:
    return []


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules for one kind. `has_generation`: whether changes of the spec are counted in `metadata.generation`.

    `status_guards_metadata`: whether an update of the status leaves labels and the like as they were; the oldest kinds
    of Kubernetes let them change.

    `change` and `check` get the new object and the old one, which is None for a create; `change_status` and
    `check_status` are for updates of the status.
    """

    namespaced: bool = True
    own_finalizers: bool = False
    """Whether the names of finalizers need no domain in front."""
    name: NameRule = DNS_SUBDOMAIN
    has_generation: bool = False
    generation_counts: tuple[str, ...] = (CONTENT,)
    """What is a new generation when it changes: everything but metadata and status, and parts of the metadata."""
    has_status: bool = False
    keeps_status_on_create: bool = False
    status_guards_metadata: bool = True
    default: Callable[[Any, Time], Any] = _no_defaults
    default_status: Callable[[Any], Any] | None = None
    """The defaults of the status alone, for an update of it; all of `default` if there is no such function."""
    change: Callable[[Any, Any, Context], Any] = _unchanged
    change_status: Callable[[Any, Any, Context], Any] = _unchanged
    check: Callable[[Errors, Any, Any, Context], None] = _no_errors
    check_status: Callable[[Errors, Any, Any, Context], None] = _no_errors
    warnings: Callable[[Any], list[str]] = _no_warnings

    def default_of_status(self, obj: Any, now: Time) -> Any:
        """The defaults for an update of the status, which leaves the rest as it was."""
        return self.default(obj, now) if self.default_status is None else self.default_status(obj)

    def prepare_create(self, obj: Any, ctx: Context) -> Any:
        """What the server itself decides about a new object: no status yet, the first generation."""
        if self.has_status and not self.keeps_status_on_create:
            obj = replace(obj, status=_empty_status(obj))
        if self.has_generation and obj.metadata.generation != 1:
            obj = with_metadata(obj, generation=1)
        return self.change(obj, None, ctx)

    def prepare_update(self, new: Any, old: Any, ctx: Context) -> Any:
        """System metadata and the status stay as they were; a changed spec is a new generation."""
        new = keep_system_metadata(new, old)
        if self.has_status:
            new = replace(new, status=old.status)
        new = self.change(new, old, ctx)
        if self.has_generation and self._counts(new, old):
            new = with_metadata(new, generation=old.metadata.generation + 1)
        return new

    def _counts(self, new: Any, old: Any) -> bool:
        return any(
            _content(new) != _content(old)
            if part is CONTENT
            else getattr(new.metadata, part) != getattr(old.metadata, part)
            for part in self.generation_counts
        )

    def prepare_status(self, new: Any, old: Any, ctx: Context) -> Any:
        """Only the status changes."""
        new = keep_system_metadata(new, old)
        if "spec" in new.__struct_fields__:
            new = replace(new, spec=old.spec)
        if self.status_guards_metadata:
            new = metadata_for_status(new, old)
        return self.change_status(new, old, ctx)

    def validate_create(self, obj: Any, ctx: Context) -> Errors:
        """Everything that is wrong with a new object."""
        errors: Errors = []
        own = self.own_finalizers
        validate_metadata(errors, obj.metadata, self.name, namespaced=self.namespaced, own_finalizers=own)
        self.check(errors, obj, None, ctx)
        return errors

    def validate_update(self, new: Any, old: Any, ctx: Context) -> Errors:
        """Everything that is wrong with a changed object."""
        errors = self._metadata_errors(new, old)
        self.check(errors, new, old, ctx)
        return errors

    def validate_status(self, new: Any, old: Any, ctx: Context) -> Errors:
        """Everything that is wrong with a changed status."""
        errors = self._metadata_errors(new, old)
        self.check_status(errors, new, old, ctx)
        return errors

    def _metadata_errors(self, new: Any, old: Any) -> Errors:
        errors: Errors = []
        if new.metadata is old.metadata:
            return errors  # what is stored was found right when it was stored
        validate_metadata(
            errors,
            new.metadata,
            self.name,
            namespaced=self.namespaced,
            own_finalizers=self.own_finalizers,
            known=old.metadata,
        )
        validate_metadata_update(errors, new.metadata, old.metadata)
        return errors


def _empty_status(obj: Any) -> Any:
    """The status of an object that has none yet."""
    kind = type(obj)
    status = _EMPTY_STATUS.get(kind)
    if status is None:
        status = _EMPTY_STATUS[kind] = kind().status
    return status


_EMPTY_STATUS: dict[type, Any] = {}
"""By type, made once: objects are never changed."""


def _content(obj: Any) -> Any:
    """What the generation counts: everything but metadata and status."""
    if "spec" in obj.__struct_fields__:
        return obj.spec
    return replace(obj, metadata=None)
