"""Evaluations that take longer than others can wait for: they go on beside the event loop.

A policy that has not made up its mind after some seconds of processor time has failed, which its failure policy decides
about. So have all that come after others have used up what there is for one request.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from dray import cel
from dray.server.engine import Call
from dray.server.processor_time import MOST_OF_REQUEST, MOST_SECONDS, allowance

__all__ = ["TookTooLong", "within_time"]

T = TypeVar("T")


class TookTooLong(Exception):
    """An evaluation was given up."""


def within_time(call: Call, evaluate: Callable[[cel.Budget], T]) -> T:
    """What an evaluation says, in a thread; what it takes is on the account of the request. Raises TookTooLong."""
    began, left = time.thread_time(), MOST_OF_REQUEST - call.policy_seconds
    try:
        return evaluate(cel.Budget(allowance(min(MOST_SECONDS, left))))
    except cel.OutOfTime:
        if left < MOST_SECONDS:
            why = f"all policies for one request may take {MOST_OF_REQUEST:g} seconds of processor time, and took that"
        else:
            why = f"its expressions took more than {MOST_SECONDS:g} seconds of processor time"
        raise TookTooLong(why) from None
    finally:
        call.policy_seconds += time.thread_time() - began
