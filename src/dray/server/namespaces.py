"""What is made in a namespace is made while that is there and stays.

A namespace goes when nothing is left in it. With several servers, one that has not heard of that yet could still make
something there, which nobody would ever remove: so the namespace is looked at again when the write is numbered, and the
write is made only if nobody has written the namespace since.
"""

from __future__ import annotations

from typing import Any

from dray.api.kinds import NAMESPACES
from dray.api.meta import StatusCause
from dray.server import errors
from dray.server.engine import Call, Engine
from dray.store import ITSELF, Basis, Finish, Key


def check_stays(engine: Engine, call: Call, created: str) -> None:
    """Raises ApiError if the namespace that a call creates something in is not there, or on its way out."""
    name = call.route.namespace
    namespace = engine.namespace(name)
    if namespace is None:
        raise errors.not_found(NAMESPACES, name)
    if namespace.metadata.deletion_timestamp is not None or namespace.status.phase == "Terminating":
        why = f"unable to create new content in namespace {name} because it is being terminated"
        message = f"namespace {name} is being terminated"
        # The cause that controllers look for, to leave such a namespace alone.
        cause = StatusCause(reason="NamespaceTerminating", message=message, field="metadata.namespace")
        raise errors.forbidden(call.route.kind, created, why, cause)


def is_judged(engine: Engine, call: Call) -> bool:
    """Whether the namespace of something new may go without this server knowing."""
    return engine.store.is_shared and bool(call.route.namespace)


def staying(engine: Engine, call: Call, created: str, finish: Finish) -> Finish:
    """How the store completes something new, if its namespace stays. It raises ApiError if that does not."""
    if not is_judged(engine, call):
        return finish

    def complete(revision: int) -> tuple[Any, bytes]:
        check_stays(engine, call, created)
        return finish(revision)

    return complete


def basis(engine: Engine, *calls: Call, also: Basis = ITSELF) -> Basis:
    """What new objects are judged by: their namespaces, and what they are judged by anyway."""
    if not engine.store.is_shared:
        return also
    judged = dict.fromkeys(Key(NAMESPACES.resource, "", call.route.namespace) for call in calls if call.route.namespace)
    return also._replace(keys=(*also.keys, *judged)) if judged else also
