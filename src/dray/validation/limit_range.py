"""LimitRange: bounds and defaults of one type of things each, which must agree with each other."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from dray.api.field import duplicate, forbidden, invalid, required
from dray.api.generated.core import LimitRange, LimitRangeItem
from dray.api.quantity import Quantity
from dray.api.times import Time
from dray.validation import check, names
from dray.validation.context import Context, Errors
from dray.validation.resource_amounts import container_resource, is_overcommitted, standard_name
from dray.validation.rules import Rules

CONTAINER: Final = "Container"
POD: Final = "Pod"
VOLUME_CLAIM: Final = "PersistentVolumeClaim"
_TYPES: Final = (CONTAINER, POD, VOLUME_CLAIM)
_ONE: Final = Quantity.of_int(1)


def _default(obj: LimitRange, _now: Time) -> LimitRange:
    return replace(obj, spec=replace(obj.spec, limits=tuple(map(_default_item, obj.spec.limits))))


def _default_item(item: LimitRangeItem) -> LimitRangeItem:
    """Containers get as much as they may, and are promised as much as they get."""
    if item.type != CONTAINER:
        return item
    default = {**item.max, **item.default}
    return replace(item, default=default, default_request={**item.min, **default, **item.default_request})


def _check(errors: Errors, new: LimitRange, _old: LimitRange | None, _ctx: Context) -> None:
    seen: set[str] = set()
    for index, item in enumerate(new.spec.limits):
        path = f"spec.limits[{index}]"
        _check_type(errors, item.type, f"{path}.type")
        if item.type in seen:
            errors.append(duplicate(f"{path}.type", item.type))
        seen.add(item.type)
        _check_names(errors, item, path)
        if item.type == VOLUME_CLAIM and "storage" not in item.min and "storage" not in item.max:
            why = "either minimum or maximum storage value is required, but neither was provided"
            errors.append(required(f"{path}.limits", why))
        defaults = LimitRangeItem() if item.type == POD else item
        for name in sorted({*item.min, *item.max, *defaults.default, *defaults.default_request, *_ratios(item)}):
            _check_order(errors, item, defaults, name, path)
            _check_ratio(errors, item, name, path)


def _ratios(item: LimitRangeItem) -> dict[str, Quantity]:
    return item.max_limit_request_ratio


def _check_type(errors: Errors, type_: str, path: str) -> None:
    if problems := names.label_key(type_):
        errors.extend(invalid(path, type_, problem) for problem in problems)
    elif "/" not in type_ and type_ not in _TYPES:
        errors.append(invalid(path, type_, "must be a standard limit type or fully qualified"))


def _check_names(errors: Errors, item: LimitRangeItem, path: str) -> None:
    name_check = container_resource if item.type in (CONTAINER, POD) else standard_name
    fields = {"max": item.max, "min": item.min, "maxLimitRequestRatio": _ratios(item)}
    for field, amounts in (("default", item.default), ("defaultRequest", item.default_request)):
        if item.type != POD:
            fields[field] = amounts
        elif amounts:
            errors.append(forbidden(f"{path}.{field}", "may not be specified when `type` is 'Pod'"))
    for field, amounts in fields.items():
        for name in amounts:
            check.name(errors, f"{path}.{field}[{name}]", name, name_check)


def _check_order(errors: Errors, item: LimitRangeItem, defaults: LimitRangeItem, name: str, path: str) -> None:
    """min ≤ defaultRequest ≤ default ≤ max, of those that are there."""
    least, most = item.min.get(name), item.max.get(name)
    request, limit = defaults.default_request.get(name), defaults.default.get(name)
    for field, shown, low, low_text, high, high_text in (
        ("min", least, least, "min", most, "max"),
        ("defaultRequest", request, least, "min", request, "default request"),
        ("defaultRequest", request, request, "default request", most, "max"),
        ("defaultRequest", request, request, "default request", limit, "default limit"),
        ("default", least, least, "min", limit, "default"),
        ("default", most, limit, "default", most, "max"),
    ):
        if low is not None and high is not None and low > high:
            why = f"{low_text} value {low} is greater than {high_text} value {high}"
            errors.append(invalid(f"{path}.{field}[{name}]", shown, why))
    if limit is not None and request is not None and limit != request and not is_overcommitted(name):
        why = f"default value {limit} must equal to defaultRequest value {request} in {name}"
        errors.append(invalid(f"{path}.defaultRequest[{name}]", request, why))


def _check_ratio(errors: Errors, item: LimitRangeItem, name: str, path: str) -> None:
    ratio, least, most = _ratios(item).get(name), item.min.get(name), item.max.get(name)
    if ratio is None:
        return
    where = f"{path}.maxLimitRequestRatio[{name}]"
    if ratio < _ONE:
        errors.append(invalid(where, ratio, f"ratio {ratio} is less than 1"))
    if least is not None and most is not None and least.sign() > 0:
        widest = most.milli_value() / least.milli_value()
        if ratio.milli_value() / 1000 > widest:
            errors.append(invalid(where, ratio, f"ratio {ratio} is greater than max/min = {widest:f}"))


RULES: Final = {"LimitRange": Rules(default=_default, check=_check)}
