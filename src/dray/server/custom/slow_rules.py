"""Rules of custom resources that take longer than others can wait for: they go on beside the event loop."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from dray.api.field import FieldError, Reason
from dray.api.meta import Object
from dray.cel import OutOfTime
from dray.server.processor_time import MOST_SECONDS, allowance
from dray.validation import Context
from dray.validation.context import Errors


def patient(context: Context) -> Context:
    """A context for whoever nobody waits for: with all the cost that Kubernetes allows, for some seconds."""
    return replace(context, more=allowance())


def problems(validate: Callable[..., Errors], *of: Object | Context) -> Errors:
    """What is wrong with an object; that it took too long to say, if it did. Raises Postponed in a hasty context."""
    try:
        return validate(*of)
    except OutOfTime:
        took = f"rules took more than {MOST_SECONDS:g} seconds of processor time"
        said = f"Invalid value: null: call cost exceeds limit: {took}"
        return [FieldError(Reason.INVALID, "<nil>", said)]
