"""What is wrong with the rules of a schema: texts, expressions that do not compile, or that may cost too much."""

from __future__ import annotations

from typing import Any, Final

from dray.api import codec
from dray.api.field import FieldError, forbidden, invalid, not_supported, required
from dray.api.generated.apiextensions import JSONSchemaProps, ValidationRule
from dray.cel.checker import check
from dray.cel.environment import Environment
from dray.cel.errors import CompileError
from dray.cel.estimate import estimate_cost
from dray.cel.parser import parse
from dray.custom.cel_values import Shape, shape_of
from dray.custom.paths import schema_at
from dray.custom.rules import CompiledRule
from dray.custom.schema_sizes import most_places, sizes_in
from dray.validation.context import Errors

MOST_ESTIMATED: Final = 10_000_000
MOST_ESTIMATED_TOGETHER: Final = 100_000_000
LONGEST_EXPRESSION: Final = 16 * 1024
REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_SIMPLER = (
    "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared"
)


def check_rules(errors: Errors, schema: JSONSchemaProps, path: str, known: frozenset[str]) -> None:
    """Everything that is wrong with the rules of a good schema; `known` expressions were accepted before."""
    walk = _Walk(errors, known)
    walk.visit(schema, path, 1, "", is_root=True)
    if walk.total > MOST_ESTIMATED_TOGETHER:
        for place in walk.expensive:
            said = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            errors.append(forbidden(place, said))
        about = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        errors.append(forbidden(path, _too_expensive(about, walk.total, MOST_ESTIMATED_TOGETHER)))


class _Walk:
    """`places` is how often a part can be in one object, None without a bound; `apart` where parts lose their past."""

    def __init__(self, errors: Errors, known: frozenset[str]) -> None:
        self._errors = errors
        self._known = known
        self._text_problems = 0
        """Where there are any in a part or below it, its expressions are not compiled."""
        self.total = 0
        self.expensive: list[str] = []

    def visit(
        self, schema: JSONSchemaProps, path: str, places: int | None, apart: str, *, is_root: bool = False
    ) -> None:
        before = self._text_problems
        self._visit_parts(schema, path, places, apart)
        if schema.x_kubernetes_validations:
            texts = [
                problem
                for index, rule in enumerate(schema.x_kubernetes_validations)
                for problem in _text_problems(rule, schema, f"{path}.x-kubernetes-validations[{index}]")
            ]
            self._errors += texts
            self._text_problems += len(texts)
        if schema.x_kubernetes_validations and self._text_problems == before:
            self._check(schema, path, places, apart, is_root=is_root)

    def _visit_parts(self, schema: JSONSchemaProps, path: str, places: int | None, apart: str) -> None:
        inner = apart or (path if schema.x_kubernetes_map_type == "atomic" else "")
        for name, part in schema.properties.items():
            self.visit(part, f"{path}.properties[{name}]", places, inner)
        others, items = schema.additional_properties, schema.items
        if isinstance(others, JSONSchemaProps):
            most = schema.max_properties
            self.visit(others, f"{path}.additionalProperties", _times(places, most), apart)
        if isinstance(items, JSONSchemaProps):
            past = apart or ("" if schema.x_kubernetes_list_type == "map" else path)
            self.visit(items, f"{path}.items", _times(places, schema.max_items), past)

    def _check(self, schema: JSONSchemaProps, path: str, places: int | None, apart: str, *, is_root: bool) -> None:
        shape = shape_of(schema, "self", is_root=is_root)
        for index, rule in enumerate(schema.x_kubernetes_validations):
            if shape is not None:
                place = f"{path}.x-kubernetes-validations[{index}]"
                self._check_expression(schema, rule, shape, place, places, apart, is_root=is_root)

    def _check_expression(
        self,
        schema: JSONSchemaProps,
        rule: ValidationRule,
        shape: Shape,
        place: str,
        places: int | None,
        apart: str,
        *,
        is_root: bool,
    ) -> None:
        errors, shown = self._errors, codec.to_builtins(rule)
        try:
            compiled = CompiledRule(rule, shape)
        except CompileError as error:
            errors.append(_broken(rule, shape, place, shown, error))
            return
        if compiled.uses_old and apart:
            said = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {apart}"
            errors.append(invalid(f"{place}.rule", rule.rule, said))
        elif not compiled.uses_old and rule.optional_old_self is not None:
            said = "may not be set if oldSelf is not used in rule"
            errors.append(invalid(f"{place}.optionalOldSelf", rule.optional_old_self, said))
        often = places if places is not None else most_places(schema)
        for field, text, about, factor in (
            ("rule", rule.rule, "estimated rule cost", often),
            ("messageExpression", rule.message_expression, "estimated messageExpression cost", 1),
        ):
            if not text:
                continue
            cost = _estimated(text, compiled.environment, schema, is_root=is_root) * factor
            self.total += cost
            if cost > MOST_ESTIMATED_TOGETHER // 10 and len(self.expensive) < 4:
                self.expensive.append(f"{place}.{field}")
            if cost > MOST_ESTIMATED and text not in self._known:
                errors.append(forbidden(f"{place}.{field}", _too_expensive(about, cost, MOST_ESTIMATED)))


def _times(places: int | None, most: int | None) -> int | None:
    return None if places is None or most is None else places * max(0, most)


def _text_problems(rule: ValidationRule, schema: JSONSchemaProps, place: str) -> list[FieldError]:
    found = []
    text, message = rule.rule.strip(), rule.message.strip()
    if not text:
        found.append(required(f"{place}.rule", "rule is not specified"))
    elif len(rule.rule) > LONGEST_EXPRESSION:
        found.append(invalid(f"{place}.rule", rule.rule[:80], f"may not be longer than {LONGEST_EXPRESSION} letters"))
    elif rule.message and not message:
        found.append(invalid(f"{place}.message", rule.message, "must be non-empty if specified"))
    elif _has_lines(message):
        found.append(invalid(f"{place}.message", rule.message, "must not contain line breaks"))
    elif _has_lines(text) and not message:
        found.append(required(f"{place}.message", "message must be specified if rule contains line breaks"))
    if rule.message_expression and not rule.message_expression.strip():
        said = "messageExpression must be non-empty if specified"
        found.append(required(f"{place}.messageExpression", said))
    if rule.reason is not None and rule.reason not in REASONS:
        found.append(not_supported(f"{place}.reason", rule.reason, REASONS))
    if rule.field_path and not rule.field_path.strip():
        found.append(invalid(f"{place}.fieldPath", rule.field_path, "must be non-empty if specified"))
    elif _has_lines(rule.field_path):
        found.append(invalid(f"{place}.fieldPath", rule.field_path, "must not contain line breaks"))
    if rule.field_path and schema_at(schema, rule.field_path) is None:
        found.append(invalid(f"{place}.fieldPath", rule.field_path, "must be a valid path"))
    return found


def _has_lines(text: str) -> bool:
    return "\n" in text or "\r" in text


def _broken(rule: ValidationRule, shape: Shape, place: str, shown: Any, error: CompileError) -> FieldError:
    """The expression that does not compile is the rule, or else its message."""
    said = str(error).replace("syntax error", "Syntax error")  # as cel-go writes it
    try:
        CompiledRule(ValidationRule(rule=rule.rule, optional_old_self=rule.optional_old_self), shape)
    except CompileError:
        return invalid(f"{place}.rule", shown, f"compilation failed: {said}")
    return invalid(f"{place}.messageExpression", shown, f"messageExpression compilation failed: {said}")


def _estimated(text: str, environment: Environment, schema: JSONSchemaProps, *, is_root: bool) -> int:
    parsed = parse(text)
    check(parsed.root, text, environment)
    return estimate_cost(parsed.root, sizes_in(schema, is_root=is_root))


def _too_expensive(about: str, cost: int, limit: int) -> str:
    factor = cost / limit
    times = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{about} exceeds budget by factor of {times} ({_SIMPLER})"
