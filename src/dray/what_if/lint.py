"""What is valid and yet probably not meant, in a cluster as it is described: rules, classes, claims, selectors.

    snapshot ─▶ Suspicion: the object, the field, and what is odd about it. Pure.

Only what the snapshot can show is told: without devices in it, nothing is said about what selects none of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from dray import cel
from dray.api.meta import Object
from dray.api.resource import (
    DeviceClass,
    DeviceRequest,
    DeviceSubRequest,
    DeviceTaintRule,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
)
from dray.api.resource.toleration import tolerates
from dray.prose.selector_problems import tell_problem
from dray.prose.wording import MAX_KNOWN, names, there_is
from dray.snapshot.snapshot import Snapshot
from dray.tracker import EffectiveDevice
from dray.what_if.missing import REFERRED, find_missing

MAX_DEVICES = 5_000
"""So many devices are tried with a selector; what fails on none of these hardly fails on others."""


class Suspicion(NamedTuple):
    """Something odd about an object; `field` is where."""

    kind: str
    namespace: str
    name: str
    field: str
    reason: str
    message: str


class _Request(NamedTuple):
    """A way in which a claim or template asks for devices."""

    owner: ResourceClaim | ResourceClaimTemplate
    path: str
    device_class: str
    selectors: tuple[str, ...]
    tolerations: tuple[DeviceToleration, ...]


def lint(snapshot: Snapshot, whole: Collection[type[Object]] = ()) -> list[Suspicion]:
    """Everything odd, in the order of kinds. Of kinds that are `whole` what is not here is not there either; of others
    if there are any, because files have them all or leave them out."""
    devices = list(snapshot.devices())
    requests = list(_requests(snapshot))
    return [
        *_rules(snapshot, devices),
        *_passed_over(snapshot),
        *_classes(snapshot, devices),
        *_unknown_classes(snapshot, requests, is_whole=DeviceClass in whole),
        *_missing(snapshot, whole),
        *_tolerations(snapshot, devices, requests),
        *_selectors(snapshot, devices, requests),
    ]


def _rules(snapshot: Snapshot, devices: list[EffectiveDevice]) -> Iterator[Suspicion]:
    for rule in snapshot.objects(DeviceTaintRule):
        if not devices:
            return
        hit = len(snapshot.selected_devices(rule.metadata.name))
        where = ("DeviceTaintRule", "", rule.metadata.name, "spec.deviceSelector")
        if rule.spec.device_selector is None or not hit:
            yield Suspicion(*where, "SelectsNothing", f"selects none of {len(devices)} devices")
        elif hit == len(devices) and hit > 1:
            yield Suspicion(*where, "SelectsEverything", f"selects all {hit} devices")


def _passed_over(snapshot: Snapshot) -> Iterator[Suspicion]:
    """Selectors of rules and patches that fail on devices, which these do not apply to then."""
    for one in snapshot.problems():
        yield Suspicion(one.kind, "", one.name, "spec", "MayFail", tell_problem(one))


def _classes(snapshot: Snapshot, devices: list[EffectiveDevice]) -> Iterator[Suspicion]:
    for one in snapshot.objects(DeviceClass):
        texts = [selector.cel.expression for selector in one.spec.selectors if selector.cel is not None]
        if devices and texts and not any(_holds(texts, device) for device in devices[:MAX_DEVICES]):
            message = f"none of {len(devices)} published devices is of this class"
            yield Suspicion("DeviceClass", "", one.metadata.name, "spec.selectors", "NobodyPublishes", message)
        for index, failure in _failures(texts, devices[:MAX_DEVICES], "published devices"):
            field = f"spec.selectors[{index}].cel.expression"
            yield Suspicion("DeviceClass", "", one.metadata.name, field, "MayFail", failure)


def _unknown_classes(snapshot: Snapshot, requests: Iterable[_Request], *, is_whole: bool) -> Iterator[Suspicion]:
    known = {one.metadata.name for one in snapshot.objects(DeviceClass)}
    for one in requests:
        if (known or is_whole) and one.device_class and one.device_class not in known:
            message = f"there is no class {one.device_class!r}; {there_is(known)}"
            yield _about(one, f"{one.path}.deviceClassName", "UnknownClass", message)


def _missing(snapshot: Snapshot, whole: Collection[type[Object]]) -> Iterator[Suspicion]:
    """What pods refer to and is not there: they wait for it."""
    known = {kind for kind in REFERRED if kind in whole or next(snapshot.objects(kind), None) is not None}
    for one in find_missing(snapshot, known):
        meta = one.owner.metadata
        yield Suspicion(one.owner.kind, meta.namespace, meta.name, one.field, one.reason, one.message)


def _tolerations(
    snapshot: Snapshot, devices: Iterable[EffectiveDevice], requests: Iterable[_Request]
) -> Iterator[Suspicion]:
    taints = [tracked.taint for device in devices for tracked in device.taints]
    taints += [rule.spec.taint for rule in snapshot.objects(DeviceTaintRule)]
    for one in requests:
        for index, toleration in enumerate(one.tolerations):
            if toleration.key and taints and not any(tolerates(toleration, taint) for taint in taints):
                keys = names(sorted({one.key for one in taints}), MAX_KNOWN)
                message = f"tolerates no taint that is there; keys: {keys}"
                yield _about(one, f"{one.path}.tolerations[{index}]", "MatchesNothing", message)


def _selectors(snapshot: Snapshot, devices: list[EffectiveDevice], requests: Iterable[_Request]) -> Iterator[Suspicion]:
    """Selectors that fail on a device of their class: there the whole allocation is aborted."""
    classes = {one.metadata.name: one for one in snapshot.objects(DeviceClass)}
    for one in requests:
        owner = classes.get(one.device_class)
        if owner is None:
            continue  # which devices it is about is not known
        of_class = [each.cel.expression for each in owner.spec.selectors if each.cel is not None]
        candidates = [device for device in devices[:MAX_DEVICES] if _holds(of_class, device)]
        for index, failure in _failures(one.selectors, candidates, "devices of its class"):
            yield _about(one, f"{one.path}.selectors[{index}].cel.expression", "MayFail", failure)


def _failures(texts: Sequence[str], candidates: Sequence[EffectiveDevice], what: str) -> Iterator[tuple[int, str]]:
    """Selectors that fail on some devices, in the order in which they are asked: each sees those of the one before."""
    number = len(candidates)
    for index, text in enumerate(texts):
        failed = [found for device in candidates if (found := _failure(text, device))]
        candidates = [device for device in candidates if _holds([text], device)]
        if failed:
            yield index, f"fails on {len(failed)} of {number} {what}: {failed[0]}"


def _requests(snapshot: Snapshot) -> Iterator[_Request]:
    for claim in snapshot.objects(ResourceClaim):
        if claim.status.allocation is None:
            yield from _of(claim, claim.spec.devices.requests, "spec")
    for template in snapshot.objects(ResourceClaimTemplate):
        yield from _of(template, template.spec.spec.devices.requests, "spec.spec")


def _of(owner: ResourceClaim | ResourceClaimTemplate, asked: Iterable[DeviceRequest], root: str) -> Iterator[_Request]:
    for index, request in enumerate(asked):
        path = f"{root}.devices.requests[{index}]"
        ways: list[tuple[str, ExactDeviceRequest | DeviceSubRequest]] = []
        if request.exactly is not None:
            ways.append((f"{path}.exactly", request.exactly))
        ways += [(f"{path}.firstAvailable[{number}]", each) for number, each in enumerate(request.first_available)]
        for place, way in ways:
            texts = tuple(selector.cel.expression for selector in way.selectors if selector.cel is not None)
            yield _Request(owner, place, way.device_class_name, texts, tuple(way.tolerations))


def _about(request: _Request, field: str, reason: str, message: str) -> Suspicion:
    meta = request.owner.metadata
    return Suspicion(request.owner.kind, meta.namespace, meta.name, field, reason, message)


def _holds(expressions: Iterable[str], device: EffectiveDevice) -> bool:
    """Whether all hold for a device; what cannot be evaluated does not."""
    try:
        return all(cel.compile(text).evaluate(device.device, driver=device.id.driver) for text in expressions)
    except (cel.CompileError, cel.EvaluationError):
        return False


def _failure(expression: str, device: EffectiveDevice) -> str:
    """Why a selector fails on a device; empty if it does not."""
    try:
        cel.compile(expression).evaluate(device.device, driver=device.id.driver)
    except cel.EvaluationError as error:
        return error.message
    except cel.CompileError:
        return ""  # `validate` tells that
    return ""
