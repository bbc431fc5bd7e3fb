"""Failures as the API tells them: an HTTP code and a Status with Kubernetes' reasons, details and causes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from dray.api.field import FieldError
from dray.api.meta import StatusCause, StatusDetails
from dray.api.registry import Kind
from dray.api.status import ApiError as ApiError
from dray.process.health import no_such_page
from dray.store import OutOfSpace, ShareExceeded, StorageError, TooLarge, Uncertain, Unreachable

T = TypeVar("T")

MOST_TOLD = 1000
"""How many problems of one request are told: nobody reads more, and each is longer than what is wrong."""


def told(problems: Sequence[T], text: Callable[[T], str]) -> list[str]:
    """The first of many problems in words, and how many more there are."""
    texts = [text(problem) for problem in problems[:MOST_TOLD]]
    return texts if len(problems) <= MOST_TOLD else [*texts, f"and {len(problems) - MOST_TOLD} more"]


def _about(kind: Kind, name: str) -> StatusDetails:
    return StatusDetails(name=name, group=kind.group, kind=kind.plural)


def not_found(kind: Kind, name: str) -> ApiError:
    """There is no such object."""
    return ApiError(404, "NotFound", f'{kind.resource} "{name}" not found', _about(kind, name))


def already_exists(kind: Kind, name: str) -> ApiError:
    """An object of that name exists."""
    return ApiError(409, "AlreadyExists", f'{kind.resource} "{name}" already exists', _about(kind, name))


def conflict(kind: Kind, name: str, why: str = "") -> ApiError:
    """The object is not as the writer thought it was."""
    why = why or "the object has been modified; please apply your changes to the latest version and try again"
    message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}'
    return ApiError(409, "Conflict", message, _about(kind, name))


def invalid(kind: Kind, name: str, errors: Sequence[FieldError]) -> ApiError:
    """The object breaks rules; every broken one is a cause, of the first thousand."""
    texts = told(errors, lambda error: f"{error.field}: {error.message}" if error.field else error.message)
    summary = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    qualified = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    causes = tuple(
        StatusCause(reason=error.reason, message=error.message, field=error.field) for error in errors[:MOST_TOLD]
    )
    details = StatusDetails(name=name, group=kind.group, kind=kind.kind, causes=causes)
    return ApiError(422, "Invalid", f'{qualified} "{name}" is invalid: {summary}', details)


def bad_request(message: str) -> ApiError:
    """The request itself makes no sense."""
    return ApiError(400, "BadRequest", message)


def unauthorized() -> ApiError:
    """Nobody knows who is asking."""
    return ApiError(401, "Unauthorized", "Unauthorized")


def forbidden(kind: Kind | None, name: str, why: str, *causes: StatusCause) -> ApiError:
    """Whoever asks may not do this."""
    if kind is None:
        return ApiError(403, "Forbidden", f"forbidden: {why}", StatusDetails())
    subject = f'{kind.resource} "{name}"' if name else kind.resource
    details = StatusDetails(name=name, group=kind.group, kind=kind.plural, causes=causes)
    return ApiError(403, "Forbidden", f"{subject} is forbidden: {why}", details)


def page_not_found() -> ApiError:
    """No handler for the path."""
    return no_such_page()


class NotServed(ApiError):
    """A path outside everything that is served, which Kubernetes answers in plain text."""

    def __init__(self) -> None:
        super().__init__(404, "NotFound", "404 page not found\n", StatusDetails())


def method_not_allowed() -> ApiError:
    """The resource has no such verb."""
    return ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def terminating(kind: Kind, verb: str) -> ApiError:
    """The resource is about to be gone, with all its objects."""
    message = f"{verb} not allowed while custom resource definition is terminating"
    return ApiError(405, "MethodNotAllowed", message, StatusDetails(group=kind.group, kind=kind.plural))


def not_acceptable(offered: Sequence[str]) -> ApiError:
    """The client accepts no form that this resource can be given in."""
    message = f"only the following media types are accepted: {', '.join(offered)}"
    return ApiError(406, "NotAcceptable", message)


def unsupported_media_type(given: str, offered: Sequence[str]) -> ApiError:
    """The body has a form that the server does not read."""
    types = ", ".join(offered)
    message = f"the body of the request was in an unknown format - accepted media types include: {types}"
    if not given:
        message = f"the request gave no content type - accepted media types include: {types}"
    return ApiError(415, "UnsupportedMediaType", message)


def too_large(limit: int) -> ApiError:
    """The body is larger than the server takes."""
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def object_too_large(limit: int) -> ApiError:
    """An object has become larger than the server stores."""
    message = f"Request entity too large: with its managedFields the object has more than {limit} bytes"
    return ApiError(413, "RequestEntityTooLarge", message)


def expired(message: str) -> ApiError:
    """The revision asked for is no longer known: list again."""
    return ApiError(410, "Expired", message)


def too_many_requests(message: str, retry_after: int, cause: StatusCause | None = None) -> ApiError:
    """Try again later."""
    details = StatusDetails(retry_after_seconds=retry_after, causes=(cause,) if cause else ())
    return ApiError(429, "TooManyRequests", message, details)


def internal(message: str) -> ApiError:
    """Something is wrong on the server's side."""
    causes = (StatusCause(message=message),)
    return ApiError(500, "InternalError", f"Internal error occurred: {message}", StatusDetails(causes=causes))


def storage(error: StorageError) -> ApiError:
    """The store refused a write. 507 if there is no room for it, 403 if there is for others: deletes are taken still;
    413 if there never is."""
    if isinstance(error, TooLarge):
        return ApiError(413, "RequestEntityTooLarge", str(error))
    if isinstance(error, ShareExceeded):
        return ApiError(403, "Forbidden", str(error))
    if isinstance(error, OutOfSpace):
        return ApiError(507, "InsufficientStorage", str(error))
    if isinstance(error, Unreachable):
        return ApiError(503, "ServiceUnavailable", str(error), StatusDetails(retry_after_seconds=1))
    if isinstance(error, Uncertain):
        return ApiError(504, "Timeout", f"it is not known whether the change was made: {error}")
    return internal(str(error))


def no_containers(kind: Kind, name: str, what: str) -> ApiError:
    """The question is one for a kubelet, and no server of this kind has one to pass it on to."""
    message = f'{kind.plural} "{name}": {what} is not available: this API server reaches no containers, only objects'
    return ApiError(501, "", message, _about(kind, name))


def out_of_time() -> ApiError:
    """The client did not want to wait any longer; what it wanted may still happen."""
    message = "Timeout: request did not complete within the allotted timeout"
    return ApiError(504, "Timeout", message, StatusDetails())


def shutting_down() -> ApiError:
    """The server cannot serve this any more."""
    return ApiError(503, "ServiceUnavailable", "the server is shutting down")
