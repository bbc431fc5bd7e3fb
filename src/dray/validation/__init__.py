"""Conversion, defaulting and validation of every kind, for creates and updates, of spec and status.

`validate`, `default` and `convert` take plain dicts; the stages (`default_object`, `prepare_for_create`, …) take typed
objects in hub shape, and so do the rules of a kind (`rules_for`), which is what the API server calls. Pure: imports
`dray.admission` and what is below it, does no I/O.
Errors have Kubernetes' shape (reason, field path, message), and an object's errors are all reported at once.
"""

from dray.validation.context import Context
from dray.validation.conversion import from_hub, to_hub
from dray.validation.documents import InvalidObjectError, convert, default, validate
from dray.validation.review import review
from dray.validation.stages import (
    default_object,
    prepare_for_create,
    prepare_for_status_update,
    prepare_for_update,
    validate_create,
    validate_status_update,
    validate_update,
    warnings,
)
from dray.validation.table import rules_for

__all__ = [
    "Context",
    "InvalidObjectError",
    "convert",
    "default",
    "default_object",
    "from_hub",
    "prepare_for_create",
    "prepare_for_status_update",
    "prepare_for_update",
    "review",
    "rules_for",
    "to_hub",
    "validate",
    "validate_create",
    "validate_status_update",
    "validate_update",
    "warnings",
]
