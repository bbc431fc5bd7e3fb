"""What is posted below an object must be about that object."""

from __future__ import annotations

from dray.api.meta import Object
from dray.server import errors
from dray.server.engine import Call


def check_named(call: Call, posted: Object, *, must_say: bool = False) -> None:
    """That what was posted names the object of the path, if it names any, or `must_say`. Raises ApiError."""
    name = posted.metadata.name
    if call.route.name and (name or must_say) and name != call.route.name:
        raise errors.bad_request(f"name in URL does not match name in {type(posted).__name__} object")
