"""What every server makes sure of when it starts, also if others start at the same moment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from dray.server.errors import ApiError
from dray.store import Conflict, Store

ATTEMPTS = 20


async def ensure(store: Store, make: Callable[[], Awaitable[None]]) -> None:
    """Makes what is missing; again, with what others have made, if they were faster. Raises ApiError, StoreError."""
    for _ in range(ATTEMPTS if store.is_shared else 0):
        try:
            await make()
            return
        except ApiError as error:
            if error.code != 409:
                raise
        except Conflict:
            pass
        await store.catch_up()
    await make()
