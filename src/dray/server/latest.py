"""Refusals count only by the latest state: where other servers write, too, what is refused here may be fine by now."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

from dray.server import errors
from dray.server.engine import Engine
from dray.server.errors import ApiError
from dray.store import Closed, StorageError, Store

P = ParamSpec("P")
R = TypeVar("R")


class _Caller(Protocol):
    """Who makes calls of an engine."""

    _engine: Engine


S = TypeVar("S", bound=_Caller)


BY_STATE: Final = frozenset((401, 403, 404, 409, 410, 422))
"""Refusals for which it matters what is stored."""


async def was_early(store: Store, seen: int, code: int) -> bool:
    """Whether an answer is a refusal by a state, that of revision `seen`, that is not the latest.

    Raises StorageError or Closed if that cannot be known now: then nobody is told that something is not there.
    """
    return store.is_shared and code in BY_STATE and await store.catch_up() > seen


def by_latest(
    method: Callable[Concatenate[S, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """A method that is called again if it raised an ApiError by a state that was not the latest."""

    async def insist(self: S, /, *args: P.args, **given: P.kwargs) -> R:
        store = self._engine.store
        seen = store.revision
        try:
            return await method(self, *args, **given)
        except ApiError as refusal:
            try:
                if not await was_early(store, seen, refusal.code):
                    raise
            except Closed:
                raise errors.shutting_down() from None
            except StorageError as error:
                raise errors.storage(error) from error
        return await method(self, *args, **given)

    @wraps(method)
    def call(self: S, /, *args: P.args, **given: P.kwargs) -> Coroutine[Any, Any, R]:
        return (insist if self._engine.store.is_shared else method)(self, *args, **given)

    return call
