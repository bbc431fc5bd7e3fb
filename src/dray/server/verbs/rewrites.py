"""Changes that the server itself makes to a stored object, past the rules for updates by clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from dray.api.meta import Object
from dray.api.registry import Kind
from dray.server import errors
from dray.server.engine import Engine
from dray.server.objects import finish
from dray.server.verbs.writes import UPDATE_ATTEMPTS
from dray.store import Basis, Conflict, Finish, Key, NotFound, Record

T = TypeVar("T", bound=Object)


async def rewrite(
    engine: Engine,
    kind: Kind,
    namespace: str,
    name: str,
    change: Callable[[T], T],
    *,
    dry_run: bool = False,
    judged: Callable[[T, Finish], tuple[Finish, Basis]] | None = None,
) -> Record:
    """Stores what `change` makes of an object, again if somebody else was faster. Raises ApiError.

    `judged` says by what else that is judged when it is stored.
    """
    key = Key(kind.resource, namespace, name)
    for _ in range(UPDATE_ATTEMPTS):
        record = engine.store.get(key)
        if record is None:
            break
        new = change(record.obj)
        if dry_run:
            return record
        try:
            complete, basis = (finish(new), Basis()) if judged is None else judged(new, finish(new))
            return await engine.store.update(key, record.revision, complete, basis)
        except Conflict:
            continue
        except NotFound:
            break
    else:
        raise errors.conflict(kind, name, "too many others are writing the object")
    raise errors.not_found(kind, name)
