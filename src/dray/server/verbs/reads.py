"""Lists: selected records as of one revision, in pages that fit together."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from dray.api.meta import ListMeta, Object, StatusCause, StatusDetails
from dray.server import errors
from dray.server.beside import MANY_TO_SELECT
from dray.server.bodies.options import ListOptions
from dray.server.engine import Call, Engine
from dray.server.verbs import selectable_fields
from dray.store import Expired, FutureRevision, Record

LATEST = -1
LONGEST_SECONDS = 300.0
"""For how long the pages of a list fit together; in Kubernetes it is five to ten minutes."""
_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to get the rest as it is now: what has changed "
    "since the first page may be missing or appear twice."
)


class Page(msgspec.Struct, frozen=True):
    """Some records, and what a list says of itself."""

    records: list[Record]
    meta: ListMeta


class _Token(msgspec.Struct, array_like=True):
    """Where the next page starts: after an object, at the revision of the first page, or as things are (LATEST)."""

    revision: int
    namespace: str
    name: str
    began: float = 0.0
    """When the first page was made, in seconds since 1970."""


def matcher(call: Call, options: ListOptions) -> Callable[[Object], bool] | None:
    """The test that selectors make; None if there are none. Raises ApiError for fields that cannot be selected by."""
    if options.selects_all:
        return None
    labels = options.label_selector
    by_fields = selectable_fields.matcher(call.route.kind, call.route.version, options.field_selector)
    if not options.field_selector.requirements:
        return lambda obj: labels.matches(obj.metadata.labels)
    if not labels.requirements:
        return by_fields
    return lambda obj: labels.matches(obj.metadata.labels) and by_fields(obj)


async def list_page(engine: Engine, call: Call, options: ListOptions) -> Page:
    """The records that a list request asks for. Raises ApiError."""
    test = matcher(call, options)
    after = None
    revision: int | None = None
    now = call.now.datetime().timestamp()
    token = _read_token(options.continue_) if options.continue_ else None
    if token is not None:
        after = (token.namespace, token.name)
        if token.revision != LATEST:
            revision = token.revision
            await see(engine, revision)
            if now - token.began > LONGEST_SECONDS:
                raise _too_old(token)
            now = token.began
    elif options.match == "Exact" or (options.limit and not options.match):
        revision = options.revision or None
    if revision is None or options.revision is not None:
        await see(engine, options.revision)
    try:
        return await _collect(engine, call, options, test, revision, after, began=now)
    except Expired:
        raise _too_old(token) from None
    except FutureRevision as error:
        raise too_new(revision or 0, engine.store.revision) from error


def _too_old(token: _Token | None) -> errors.ApiError:
    error = errors.expired(_TOO_OLD)
    if token is not None:
        rest = _write_token(_Token(LATEST, token.namespace, token.name))
        error.status = replace(error.status, metadata=ListMeta(continue_=rest))
    return error


async def see(engine: Engine, asked: int | None) -> None:
    """Waits until the state that a reader asks for is visible: the latest, or one not older than a revision.

    Nothing to wait for where nobody else writes, or for who takes any state (0). Raises StorageError or ApiError.
    """
    if engine.store.is_shared:
        engine.store.check_whole()
        if asked != 0 and (asked is None or asked > engine.store.revision):
            await engine.store.catch_up()
    check_revision(engine, asked)


def check_revision(engine: Engine, asked: int | None) -> None:
    """That a revision that a reader has seen is known here. Raises ApiError."""
    if asked is not None and asked > engine.store.revision:
        raise too_new(asked, engine.store.revision)


def too_new(asked: int, current: int) -> errors.ApiError:
    """The cause is what clients look for: they list again without a revision."""
    cause = StatusCause(reason="ResourceVersionTooLarge", message="Too large resource version")
    details = StatusDetails(retry_after_seconds=1, causes=(cause,))
    return errors.ApiError(504, "Timeout", f"Timeout: Too large resource version: {asked}, current: {current}", details)


async def _collect(
    engine: Engine,
    call: Call,
    options: ListOptions,
    test: Callable[[Object], bool] | None,
    revision: int | None,
    after: tuple[str, str] | None,
    *,
    began: float,
) -> Page:
    resource, namespace = call.route.kind.storage.resource, call.route.namespace or None
    limit = options.limit or None
    if options.revision == 0 and not options.continue_:
        limit = None  # whoever takes any state gets it whole: Kubernetes has it in a cache, and so have we
    if test is None:
        listing = engine.store.list(resource, namespace, revision=revision, after=after, limit=limit)
        found, remaining = listing.records, listing.remaining
    else:
        listing = engine.store.list(resource, namespace, revision=revision, after=after)
        if len(listing.records) > MANY_TO_SELECT:
            found = await engine.beside(call, _selected, listing.records, test)
        else:
            found = _selected(listing.records, test)
        remaining = len(found) - limit if limit and len(found) > limit else 0
        found = found[:limit]
    meta = ListMeta(resource_version=str(listing.revision))
    if limit and remaining > 0:
        last = found[-1].key
        # With a selector the rest is not counted: Kubernetes does not either.
        count = remaining if test is None else None
        token = _write_token(_Token(listing.revision, last.namespace, last.name, began))
        meta = ListMeta(resource_version=str(listing.revision), continue_=token, remaining_item_count=count)
    return Page(found, meta)


def _selected(records: list[Record], test: Callable[[Object], bool]) -> list[Record]:
    return [record for record in records if test(record.obj)]


def _write_token(token: _Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _read_token(text: str) -> _Token:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=_Token)
    except (msgspec.DecodeError, binascii.Error, ValueError, RecursionError):
        raise errors.bad_request("continue key is not valid: it does not come from an earlier list") from None
