"""A plan: a command that was looked at before, and what it did then, so that it is done only if it still does that.

    command ─▶ dry run ─▶ answer ─▶ effect: what matters of it ─▶ Plan, a file for people to review
                                     └── the same again later ─▶ differences(then, now): none, or why not

Pure. Times, which of several nodes a pod would go to, and what the guard counts are no part of an effect: they change
while people read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

API_VERSION: Final = "dray.dev/v1"
KIND: Final = "Plan"
_PASSING: Final = frozenset(
    {
        "now",
        "due",
        "expected",
        "finished",
        "mayWait",
        "since",
        "timeAdded",
        "fitsOn",
        "alsoOn",
        "leftAlone",
        "notes",
        "whyNot",
        "dryRun",
        "guard",
    }
)
_NAMES: Final = ("pod", "claim", "device", "object", "group", "rule", "name")
MISSING: Final = "nothing"


class PlanError(ValueError):
    """A file that is no plan. The message says what is wrong with it."""


class _Header(msgspec.Struct):
    kind: str


class Plan(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What was planned, when, on which cluster, and what it would do."""

    api_version: str = API_VERSION
    kind: str = KIND
    made: str
    """When, RFC 3339."""
    cluster: str = ""
    """The uid of the namespace kube-system; empty if it was planned on a dump."""
    command: tuple[str, ...]
    """The words after `dray`."""
    manifests: tuple[dict[str, Any], ...] = ()
    """What is to be applied, if that is what the command does; of `scale-up` the node groups."""
    effect: dict[str, Any]
    summary: str
    """For people: what the preview said."""
    digest: str = ""
    """Of all the rest, as it was written: what was reviewed is what is done."""

    def sealed(self) -> Plan:
        """The same with its digest."""
        written = msgspec.json.encode(replace(self, digest=""), order="deterministic")
        return replace(self, digest=hashlib.sha256(written).hexdigest()[:20])


def read_plan(data: bytes) -> Plan:
    """A plan from a file. Raises PlanError."""
    try:
        plan = msgspec.json.decode(data, type=Plan)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise PlanError(f"is no plan ({error}). Make one with: dray plan COMMAND… -o FILE") from None
    if (plan.api_version, plan.kind) != (API_VERSION, KIND):
        raise PlanError(f"is {plan.api_version} {plan.kind}, not {API_VERSION} {KIND}")
    if plan != plan.sealed():
        raise PlanError("was changed after it was planned, so that nobody saw what it does now. Plan it again")
    return plan


def is_plan(data: bytes) -> bool:
    """Whether a file is a plan, if perhaps of another version or changed since."""
    try:
        return msgspec.json.decode(data, type=_Header).kind == KIND
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False


def effect_of(answer: Any) -> Any:
    """What matters of the answer of a command that was tried."""
    if isinstance(answer, Mapping):
        if answer.keys() >= {"allowed", "needed"}:  # a budget that allows more than is needed, or not so much more
            answer = {**answer, "allowed": max(min(answer["allowed"], answer["needed"]), 0)}
        return {name: effect_of(value) for name, value in answer.items() if name not in _PASSING}
    if isinstance(answer, list | tuple):
        return sorted((effect_of(one) for one in answer), key=_label)
    return answer


def differences(then: Any, now: Any, where: str = "") -> Iterator[str]:
    """In what an effect is another one now, in words; nothing if it is the same."""
    then, now = _as_empty(then, now), _as_empty(now, then)
    if isinstance(then, Mapping) and isinstance(now, Mapping):
        for name in dict.fromkeys((*then, *now)):
            yield from differences(then.get(name), now.get(name), f"{where}.{name}" if where else name)
    elif isinstance(then, list) and isinstance(now, list):
        before, after = {_label(one): one for one in then}, {_label(one): one for one in now}
        yield from (f"{where}: {label} is new" for label in after if label not in before)
        yield from (f"{where}: {label} is not among them any more" for label in before if label not in after)
        for label in before:
            if label in after:
                yield from differences(before[label], after[label], f"{where}[{label}]")
    elif then != now:
        yield f"{where}: {_tell(now)} instead of {_tell(then)}"


def _as_empty(value: Any, other: Any) -> Any:
    """Answers leave out what is empty: nothing beside a list is an empty one."""
    return [] if value is None and isinstance(other, list) else value


def _label(value: Any) -> str:
    if isinstance(value, Mapping):
        name = next((str(value[key]) for key in _NAMES if value.get(key)), "")
        return name or msgspec.json.encode(value, order="deterministic").decode()
    return str(value)


def _tell(value: Any) -> str:
    return MISSING if value is None else msgspec.json.encode(value).decode() if not isinstance(value, str) else value
