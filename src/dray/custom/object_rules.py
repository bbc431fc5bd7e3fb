"""How an object of a custom resource is created and updated, in one version of its definition.

The same stages as for any other kind (`dray.validation.rules`). Unknown fields are dropped and defaults are set when a
document is read, so that the stages see the content as it is going to be stored.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from dray.api.custom import CustomObject
from dray.api.field import FieldError, Reason
from dray.custom import ratcheting
from dray.custom.definition import Version, metadata_document
from dray.custom.problems import Problem, below
from dray.custom.ratcheting import NOTHING
from dray.custom.rules import Judge, OutOfBudget, Run
from dray.custom.scale_checks import scale_errors
from dray.validation import Context
from dray.validation.context import Errors
from dray.validation.metadata import keep_system_metadata, metadata_for_status, with_metadata
from dray.validation.rules import Rules

MOST_PROBLEMS = 100
"""How many problems of one object are told."""


class CustomRules(Rules, frozen=True, kw_only=True):
    """The rules of one version."""

    version: Version

    def default_of_status(self, obj: Any, now: Any) -> Any:
        """Defaults were set when the object was read."""
        return obj

    def prepare_create(self, obj: CustomObject, ctx: Context) -> CustomObject:
        """No status yet, the first generation."""
        if self.version.has_status and "status" in obj.content:
            obj = replace(obj, content=_without_status(obj.content))
        return obj if obj.metadata.generation == 1 else with_metadata(obj, generation=1)

    def prepare_update(self, new: CustomObject, old: CustomObject, ctx: Context) -> CustomObject:
        """System metadata and the status stay as they were; other content is a new generation."""
        new = keep_system_metadata(new, old)
        if self.version.has_status:
            new = replace(new, content=_with_status_of(new.content, old.content))
        if new.content != old.content:
            new = with_metadata(new, generation=old.metadata.generation + 1)
        return new

    def prepare_status(self, new: CustomObject, old: CustomObject, ctx: Context) -> CustomObject:
        """Only the status changes."""
        new = metadata_for_status(keep_system_metadata(new, old), old)
        return replace(new, content=_with_status_of(old.content, new.content))

    def validate_create(self, obj: CustomObject, ctx: Context) -> Errors:
        """Everything that is wrong with a new object. Raises Postponed where rules take longer than others can wait."""
        errors = super().validate_create(obj, ctx)
        return errors + self._content_errors(obj, None, ctx)

    def validate_update(self, new: CustomObject, old: CustomObject, ctx: Context) -> Errors:
        """Everything that is wrong with a changed object, and was not before. Raises Postponed, too."""
        return self._metadata_errors(new, old) + self._content_errors(new, old, ctx)

    def validate_status(self, new: CustomObject, old: CustomObject, ctx: Context) -> Errors:
        """The same: a status may be wrong together with the rest."""
        return self.validate_update(new, old, ctx)

    def _content_errors(self, new: CustomObject, old: CustomObject | None, ctx: Context) -> Errors:
        problems = self._problems(new, old, ctx)
        errors = [problem.error() for problem in problems[:MOST_PROBLEMS]] if problems else []
        scale = self.version.scale
        return errors if scale is None else [*errors, *scale_errors(scale, new.content)]

    def _problems(self, new: CustomObject, old: CustomObject | None, ctx: Context) -> list[Problem]:
        version = self.version
        if old is not None and new.content is old.content:
            return []
        found: list[Problem] = []
        for check in version.quick_checks if ctx.more is None else version.checks:  # who has time need not hurry
            problems = check(new.content)
            if problems is not None:
                found += _distinct(problems)
        if found and old is not None:
            found = ratcheting.new_problems(version.schema, found, new.content, old.content)
        found += self._wrong_lists(new, old)
        if version.metadata_check is not None and old is None:
            found += below("metadata", version.metadata_check(metadata_document(new.metadata)) or [])
        if version.rules is None:
            return found
        if found and _is_blocked(found):  # by what the update brings: old sins keep no rule from being asked
            return [*found, _UNCHECKED]
        broken = self._broken_rules(version.rules, new, old, ctx)
        if broken and old is not None:
            broken = ratcheting.new_problems(version.schema, broken, new.content, old.content)
        return found + broken

    def _wrong_lists(self, new: CustomObject, old: CustomObject | None) -> list[Problem]:
        """What lists have twice that may not. Who had such a list before may have another, as in Kubernetes."""
        check = self.version.list_check
        problems = check(new.content) if check is not None else None
        if check is None or problems is None or (old is not None and check(old.content) is not None):
            return []
        return _distinct(problems)

    def _broken_rules(self, rules: Judge, new: CustomObject, old: CustomObject | None, ctx: Context) -> list[Problem]:
        seen = _whole if self.version.rules_read_names else _content
        before = NOTHING if old is None else seen(old)
        try:
            return rules(seen(new), before, Run(ctx.more)) or []
        except OutOfBudget as error:
            return [error.problem]


def _content(obj: CustomObject) -> dict[str, Any]:
    return obj.content


def _whole(obj: CustomObject) -> dict[str, Any]:
    names = {"apiVersion": obj.api_version, "kind": obj.kind, "metadata": metadata_document(obj.metadata)}
    return {**names, **obj.content}


_BLOCKING = frozenset((Reason.NOT_SUPPORTED, Reason.REQUIRED, Reason.TOO_LONG, Reason.TOO_MANY, Reason.TYPE_INVALID))
_UNCHECKED = Problem(
    (),
    lambda _path: FieldError(
        Reason.INVALID,
        "<nil>",
        "Invalid value: null: some validation rules were not checked because the object was invalid; "
        "correct the existing errors to complete validation",
    ),
)


def _is_blocked(problems: list[Problem]) -> bool:
    """Whether an object is so wrong that rules could not make sense of it."""
    return any(problem.error().reason in _BLOCKING for problem in problems[:MOST_PROBLEMS])


def _distinct(problems: list[Problem]) -> list[Problem]:
    """Problems without those that several alternatives have in common, which are told once."""
    return list({problem.error(): problem for problem in reversed(problems[:MOST_PROBLEMS])}.values())[::-1]


def _without_status(content: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if name != "status"}


def _with_status_of(content: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Some content with the status of other content, or with none if that has none."""
    if "status" in other:
        return content if content.get("status") is other["status"] else {**content, "status": other["status"]}
    return _without_status(content) if "status" in content else content
