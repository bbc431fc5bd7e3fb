"""LimitRange: what containers get that ask for nothing, and how much containers, pods and volume claims may ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace

from dray.api.generated.core import Container, LimitRange, LimitRangeItem, PersistentVolumeClaim, PodSpec
from dray.api.quantity import Quantity
from dray.api.sharing import remembered
from dray.validation.limit_range import CONTAINER, POD, VOLUME_CLAIM
from dray.validation.metadata import ANNOTATIONS_BYTES
from dray.validation.pod_resources import limits_of, requests_of

ANNOTATION: Final = "kubernetes.io/limit-ranger"

Amounts = tuple[tuple[str, Quantity], ...]


class TooMuch(Exception):
    """A range would add more to a pod than can be said of it."""


class _Bounds(NamedTuple):
    """An item of a range, such that it can be a key."""

    type: str
    least: Amounts
    most: Amounts
    ratio: Amounts


class Range(NamedTuple):
    """What a LimitRange says, such that it can be a key."""

    requests: Amounts
    limits: Amounts
    bounds: tuple[_Bounds, ...]


@remembered
def range_of(found: LimitRange) -> Range:
    """What a LimitRange says."""
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    for item in found.spec.limits:
        if item.type == CONTAINER:
            requests |= item.default_request
            limits |= item.default
    return Range(tuple(requests.items()), tuple(limits.items()), tuple(map(_bounds, found.spec.limits)))


def _bounds(item: LimitRangeItem) -> _Bounds:
    parts = (item.min, item.max, item.max_limit_request_ratio)
    return _Bounds(item.type, *(tuple(sorted(part.items())) for part in parts))


@remembered
def defaulted(spec: PodSpec, limit_range: Range) -> tuple[PodSpec, str]:
    """The spec with what containers lack, and what was added in words, for the pod's annotation; empty if nothing.

    Raises TooMuch if that is more than annotations may say: a short pod and a short range can be very much together.
    """
    said: list[str] = []
    left = ANNOTATIONS_BYTES
    made: list[tuple[Container, ...]] = []
    for what, entries in (("container", spec.containers), ("init container", spec.init_containers)):
        completed = []
        for entry in entries:
            before = len(said)
            completed.append(_completed(entry, limit_range, what, said))
            left -= sum(map(len, said[before:]))
            if left < 0:
                raise TooMuch
        made.append(tuple(completed))
    if not said:
        return spec, ""
    text = f"LimitRanger plugin set: {'; '.join(said)}"
    return replace(spec, containers=made[0], init_containers=made[1]), text


def _completed(container: Container, limit_range: Range, what: str, said: list[str]) -> Container:
    given = container.resources
    requests = {name: value for name, value in limit_range.requests if name not in given.requests}
    limits = {name: value for name, value in limit_range.limits if name not in given.limits}
    if not requests and not limits:
        return container
    for word, added in (("request", requests), ("limit", limits)):
        if added:
            said.append(f"{', '.join(sorted(added))} {word} for {what} {container.name}")
    resources = replace(given, requests={**given.requests, **requests}, limits={**given.limits, **limits})
    return replace(container, resources=resources)


@remembered
def pod_problems(spec: PodSpec, limit_range: Range) -> tuple[str, ...]:
    """In how many ways a pod asks for too little or too much."""
    found: list[str] = []
    for bounds in limit_range.bounds:
        if bounds.type == CONTAINER:
            for container in (*spec.containers, *spec.init_containers):
                found += _outside(bounds, container.resources.requests, container.resources.limits)
        elif bounds.type == POD:
            found += _outside(bounds, requests_of(spec), limits_of(spec))
    return tuple(dict.fromkeys(found))


def volume_claim_problems(claim: PersistentVolumeClaim, limit_range: Range) -> tuple[str, ...]:
    """In how many ways a claim asks for too little or too much storage."""
    requests = claim.spec.resources.requests if claim.spec.resources is not None else {}
    found: list[str] = []
    for bounds in limit_range.bounds:
        if bounds.type == VOLUME_CLAIM:
            for name, least in bounds.least:
                found += _below(f"minimum {name} usage per {bounds.type} is {least}", least, requests.get(name), None)
            for name, most in bounds.most:
                found += _above_request(f"maximum {name} usage per {bounds.type} is {most}", most, requests.get(name))
    return tuple(dict.fromkeys(found))


def _outside(bounds: _Bounds, requests: Mapping[str, Quantity], limits: Mapping[str, Quantity]) -> Iterator[str]:
    for name, least in bounds.least:
        rule = f"minimum {name} usage per {bounds.type} is {least}"
        yield from _below(rule, least, requests.get(name), limits.get(name))
    for name, most in bounds.most:
        rule = f"maximum {name} usage per {bounds.type} is {most}"
        yield from _above(rule, most, requests.get(name), limits.get(name))
    for name, ratio in bounds.ratio:
        rule = f"{name} max limit to request ratio per {bounds.type} is {ratio}"
        yield from _apart(rule, ratio, requests.get(name), limits.get(name))


def _below(rule: str, least: Quantity, request: Quantity | None, limit: Quantity | None) -> Iterator[str]:
    if request is None:
        yield f"{rule}.  No request is specified"
    elif request < least:
        yield f"{rule}, but request is {request}"
    elif limit is not None and limit < least:
        yield f"{rule}, but limit is {limit}"


def _above(rule: str, most: Quantity, request: Quantity | None, limit: Quantity | None) -> Iterator[str]:
    if limit is None:
        yield f"{rule}.  No limit is specified"
    elif limit > most:
        yield f"{rule}, but limit is {limit}"
    elif request is not None and request > most:
        yield f"{rule}, but request is {request}"


def _above_request(rule: str, most: Quantity, request: Quantity | None) -> Iterator[str]:
    if request is None:
        yield f"{rule}.  No request is specified"
    elif request > most:
        yield f"{rule}, but request is {request}"


def _apart(rule: str, ratio: Quantity, request: Quantity | None, limit: Quantity | None) -> Iterator[str]:
    if request is None or not request.sign():
        yield f"{rule}, but no request is specified or request is 0"
    elif limit is None or not limit.sign():
        yield f"{rule}, but no limit is specified or limit is 0"
    else:
        provided = limit.milli_value() / request.milli_value()
        if provided * 1000 > ratio.milli_value():
            yield f"{rule}, but provided ratio is {provided:f}"
