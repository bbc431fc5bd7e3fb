"""What the query of a request says about how to do it, checked as Kubernetes checks it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl

import msgspec

from dray.api import labels
from dray.api.field import FieldError, forbidden, invalid, not_supported, required, too_long
from dray.api.meta import StatusCause, StatusDetails
from dray.server import errors
from dray.server.errors import ApiError

FIELD_VALIDATION = ("", "Ignore", "Strict", "Warn")
PROPAGATION = ("Background", "Foreground", "Orphan")
VERSION_MATCHES = ("Exact", "NotOlderThan")
MANAGER_LENGTH = 128
_NUMBER = re.compile(r"-?[0-9]{1,18}")
_DURATION_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION_PART = re.compile(r"([0-9]{1,64}(?:\.[0-9]{0,64})?|\.[0-9]{1,64})(ns|us|µs|ms|s|m|h)")
_LONGEST_DURATION = 64


class WriteOptions(msgspec.Struct, frozen=True):
    """How to do a create, update or patch."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = "Warn"
    force: bool | None = None
    """Whether an apply takes fields from others; None if nothing is said about it."""


class ListOptions(msgspec.Struct, frozen=True):
    """What to list or watch, and from when."""

    label_selector: labels.LabelSelector
    field_selector: labels.FieldSelector
    limit: int = 0
    continue_: str = ""
    revision: int | None = None
    match: str = ""
    timeout_seconds: int | None = None
    bookmarks: bool = False
    send_initial_events: bool | None = None

    @property
    def selects_all(self) -> bool:
        """Whether there is no selector."""
        return not self.label_selector.requirements and not self.field_selector.requirements


_DEFAULTS = WriteOptions()


def invalid_options(kind: str, problems: list[FieldError]) -> ApiError:
    """Options that cannot be meant, as Kubernetes reports them: as an invalid object of their own kind."""
    causes = tuple(StatusCause(reason=p.reason, message=p.message, field=p.field) for p in problems)
    details = StatusDetails(group="meta.k8s.io", kind=kind, causes=causes)
    summary = ", ".join(str(problem) for problem in problems)
    return ApiError(422, "Invalid", f'{kind}.meta.k8s.io "" is invalid: {summary}', details)


def is_true(text: str | None) -> bool:
    """A flag in a query: given without a value, or with a true one."""
    return text is not None and text.lower() not in ("false", "0")


def dry_run_problem(values: tuple[str, ...]) -> FieldError | None:
    """Whether `dryRun` is something else than All."""
    if all(value == "All" for value in values):
        return None
    return not_supported("dryRun", list(values), ("All",))


def dry_runs(query: Mapping[str, str], uri: str) -> tuple[str, ...]:
    """All values of `dryRun`, each of which must make sense; of others that are given twice, the first counts.

    `uri` is where the query comes from, with all that is given twice.
    """
    if uri.count("dryRun") < 2:
        return (query["dryRun"],) if "dryRun" in query else ()
    given = parse_qsl(uri.partition("?")[2], keep_blank_values=True)
    return tuple(value for name, value in given if name == "dryRun")


def write_options(query: Mapping[str, str], uri: str, kind: str, *, applies: bool) -> WriteOptions:
    """The options of a write; `kind` names them in errors: CreateOptions, UpdateOptions or PatchOptions.

    Raises ApiError.
    """
    if not query and not applies:
        return _DEFAULTS
    dry_run = dry_runs(query, uri)
    validation = query.get("fieldValidation", "")
    manager = query.get("fieldManager", "")
    problems = _patch_problems(query, manager, applies=applies) if kind == "PatchOptions" else []
    if len(manager.encode()) > MANAGER_LENGTH:
        problems.append(too_long("fieldManager", MANAGER_LENGTH))
    if not manager.isprintable():
        problems.append(invalid("fieldManager", manager, "must be printable"))
    if (problem := dry_run_problem(dry_run)) is not None:
        problems.append(problem)
    if validation not in FIELD_VALIDATION:
        problems.append(not_supported("fieldValidation", validation, FIELD_VALIDATION))
    if problems:
        raise invalid_options(kind, problems)
    force = is_true(query["force"]) if "force" in query else None
    return WriteOptions(bool(dry_run), manager, validation or "Warn", force)


def _patch_problems(query: Mapping[str, str], manager: str, *, applies: bool) -> list[FieldError]:
    """An apply is somebody's; no other patch takes fields from others."""
    if applies:
        return [] if manager else [required("fieldManager", "is required for apply patch")]
    return [forbidden("force", "may not be specified for non-apply patch")] if "force" in query else []


def time_limit(query: Mapping[str, str]) -> float | None:
    """The seconds that a client waits at most (`timeout`, as Go writes durations); None if it does not say.

    Raises ApiError.
    """
    text = query.get("timeout", "")
    if not text or text in ("0", "+0", "-0"):
        return None
    parts = _DURATION_PART.findall(text) if len(text) <= _LONGEST_DURATION else ()
    if not parts or "".join(number + unit for number, unit in parts) != text.lstrip("+-"):
        shown = text[:_LONGEST_DURATION]
        raise errors.bad_request(f"invalid timeout specified in the request URL: {shown!r} is no duration such as 30s")
    seconds = sum(float(number) * _DURATION_UNITS[unit] for number, unit in parts)
    return seconds if seconds and not text.startswith("-") else None


def list_options(query: Mapping[str, str]) -> ListOptions:
    """The options of a list, watch or deletecollection. Raises ApiError."""
    initial = query.get("sendInitialEvents")
    problems = _version_match_problems(query)
    if problems:
        raise invalid_options("ListOptions", problems)
    if query.get("continue") and query.get("resourceVersion", "0") not in ("", "0") and not is_true(query.get("watch")):
        raise errors.bad_request("specifying resource version is not allowed when using continue")
    return ListOptions(
        label_selector=_label_selector(query.get("labelSelector", "")),
        field_selector=_field_selector(query.get("fieldSelector", "")),
        limit=max(0, _number(query, "limit") or 0),
        continue_=query.get("continue", ""),
        revision=revision(query.get("resourceVersion", "")),
        match=query.get("resourceVersionMatch", ""),
        timeout_seconds=_number(query, "timeoutSeconds"),
        bookmarks=is_true(query.get("allowWatchBookmarks")),
        send_initial_events=None if initial is None else is_true(initial),
    )


def revision(text: str) -> int | None:
    """A resourceVersion as a number; None if none is given. Raises ApiError."""
    if not text:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > 19:
        problem = invalid("resourceVersion", text, "must be a number, as lists and objects give it")
        raise errors.bad_request(f"invalid resource version: {problem}")
    return int(text)


def _version_match_problems(query: Mapping[str, str]) -> list[FieldError]:
    """Which objects may be asked for with which revision: lists and watches have rules of their own."""
    match, given = query.get("resourceVersionMatch", ""), query.get("resourceVersion", "")
    if is_true(query.get("watch")):
        return _watch_match_problems(query, match)
    problems = []
    if "sendInitialEvents" in query:
        problems.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if not match:
        return problems
    if query.get("continue"):
        problems.append(forbidden("resourceVersionMatch", "not with continue"))
    if not given:
        problems.append(forbidden("resourceVersionMatch", "needs a resourceVersion"))
    if match not in VERSION_MATCHES:
        problems.append(not_supported("resourceVersionMatch", match, (*VERSION_MATCHES, "")))
    elif match == "Exact" and given == "0":
        problems.append(forbidden("resourceVersionMatch", "Exact needs a resourceVersion above 0"))
    return problems


def _watch_match_problems(query: Mapping[str, str], match: str) -> list[FieldError]:
    problems = []
    if "sendInitialEvents" in query:
        if match != "NotOlderThan":
            why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            problems.append(forbidden("resourceVersionMatch", why))
    elif match:
        problems.append(forbidden("resourceVersionMatch", "not for a watch without sendInitialEvents"))
    if match not in ("", "NotOlderThan"):
        problems.append(not_supported("resourceVersionMatch", match, ("NotOlderThan",)))
    is_from_start = "sendInitialEvents" not in query and query.get("resourceVersion", "") in ("", "0")
    if (match or is_from_start) and query.get("continue"):
        problems.append(forbidden("resourceVersionMatch", "not with continue"))
    return problems


def _number(query: Mapping[str, str], name: str) -> int | None:
    return number(query[name], name) if name in query else None


def number(text: str, name: str) -> int:
    """A number in a query. Raises ApiError."""
    if _NUMBER.fullmatch(text) is None:
        raise errors.bad_request(f"query parameter {name!r} must be a number, not {text!r}")
    return int(text)


def _label_selector(text: str) -> labels.LabelSelector:
    try:
        return labels.LabelSelector.parse(text)
    except labels.SelectorError as error:
        raise errors.bad_request(f"unable to parse the label selector {text!r}: {error}") from None


def _field_selector(text: str) -> labels.FieldSelector:
    try:
        return labels.FieldSelector.parse(text)
    except labels.SelectorError as error:
        raise errors.bad_request(f"unable to parse the field selector {text!r}: {error}") from None
