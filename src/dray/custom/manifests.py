"""Custom objects in files, judged by the definitions that are there as well, as a server that has these would."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from dray.api import codec
from dray.api.field import FieldError
from dray.api.generated.apiextensions import CustomResourceDefinition
from dray.api.times import Time
from dray.cel.allowance import endless
from dray.custom import definition_rules
from dray.custom.documents import read_value
from dray.custom.kinds import CustomKind, kinds_of
from dray.validation import Context
from dray.validation.documents import placed
from dray.validation.review import UNKNOWN_FIELD, WARNING

Kinds: TypeAlias = Mapping[tuple[str, str], CustomKind]
"""Versions of custom resources, by apiVersion and kind."""
_RULES: Final = definition_rules.rules(dict)


class Judgement(msgspec.Struct, frozen=True):
    """What is wrong with an object, and what a server would accept but remark on."""

    errors: list[FieldError]
    remarks: list[FieldError]


def judge_definition(value: dict[str, Any], now: Time) -> list[FieldError]:
    """What is wrong with a definition, on create, in a server that has no other."""
    return _definition(value, now)[1]


def kinds_in(values: Iterable[dict[str, Any]], now: Time) -> Kinds:
    """The served kinds of those definitions that are valid, under the names that they ask for."""
    found: dict[tuple[str, str], CustomKind] = {}
    for value in values:
        definition, errors = _definition(value, now)
        if definition is not None and not errors:
            found |= {(kind.api_version, kind.kind): kind for kind in kinds_of(definition)}
    return found


def _definition(value: dict[str, Any], now: Time) -> tuple[CustomResourceDefinition | None, list[FieldError]]:
    reading = codec.read(value, CustomResourceDefinition)
    if reading.obj is None:
        return None, list(reading.errors)
    context = Context(now)
    definition = _RULES.prepare_create(_RULES.default(reading.obj, now), context)
    errors = _RULES.validate_create(definition, context)
    accepted = replace(definition.status, accepted_names=definition.spec.names)
    return replace(definition, status=accepted), errors


def judge(value: dict[str, Any], kind: CustomKind, now: Time) -> Judgement:
    """A document as its definition sees it, on create."""
    reading = read_value(kind, value)
    remarks = [FieldError(UNKNOWN_FIELD, path, f'unknown field "{path}"') for path in reading.unknown]
    if kind.version.warning:
        remarks.append(FieldError(WARNING, "", kind.version.warning))
    if reading.obj is None:
        return Judgement(list(reading.errors), remarks)
    context = Context(now, more=endless)
    obj = kind.rules.prepare_create(placed(reading.obj, kind), context)
    return Judgement(kind.rules.validate_create(obj, context), remarks)
