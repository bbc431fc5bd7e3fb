"""Work that may hang, on a thread of its own: those of an executor are few, and everybody's."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def on_own_thread(work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """What a plain function returns or raises. It is on a daemon thread, which keeps no program from ending."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def settle(result: Any, error: Exception | None) -> None:
        if outcome.cancelled():
            return
        if error is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(result)

    def run() -> None:
        result, failure = None, None
        try:
            result = work(*arguments, **named)
        except Exception as error:
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop may have ended while this hung
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, name=getattr(work, "__name__", "work"), daemon=True).start()
    return await outcome
