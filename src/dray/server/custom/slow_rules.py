"""Rules of custom resources that take longer than others can wait for: they go on beside the event loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from dray.api.field import FieldError, Reason
from dray.cel import OutOfTime
from dray.validation import Context
from dray.validation.context import Errors

MOST_SECONDS: Final = 5.0
STEPS: Final = 2_000
"""How much is done before the time is looked at."""


def patient(context: Context) -> Context:
    """A context for whoever nobody waits for: with all the cost that Kubernetes allows, for some seconds from now."""
    deadline = time.monotonic() + MOST_SECONDS

    def more() -> int:
        if time.monotonic() >= deadline:
            raise OutOfTime
        return STEPS

    return replace(context, more=more)


def problems(validate: Callable[[Context], Errors], context: Context) -> Errors:
    """What is wrong with an object; that it took too long to say, if it did. Raises Postponed in a hasty context."""
    try:
        return validate(context)
    except OutOfTime:
        said = f"Invalid value: null: call cost exceeds limit: rules took more than {MOST_SECONDS:g} seconds"
        return [FieldError(Reason.INVALID, "<nil>", said)]
