"""DeviceTaintRules from what an admin asks for. The same request always gives rules of the same names.

So asking again with another effect changes the rule that is there: look with None, then evict with NoExecute
(5055-128). And a rule can be found again by what was asked for, without remembering its name (5055-125).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from dray.api import codec
from dray.api.meta import ObjectMeta
from dray.api.resource import DeviceTaint, DeviceTaintRule, DeviceTaintRuleSpec, DeviceTaintSelector
from dray.api.resource.rule_annotations import EVICTIONS_PER_SECOND, EXPIRES_AT
from dray.api.times import Time
from dray.snapshot.device_selection import DeviceSelection
from dray.snapshot.snapshot import Snapshot

API_VERSION: Final = "resource.k8s.io/v1"
MADE_FOR: Final = "dray.dev/taint"
"""A label: the rules that were made for one request have it in common."""
SELECTION: Final = "dray.dev/selection"
"""An annotation: what was asked for, as JSON."""
_MAX_SLUG: Final = 40


class TaintRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which devices get which taint, how fast pods leave, and until when it lasts."""

    selection: DeviceSelection
    key: str
    value: str = ""
    effect: str
    rate: int | None = None
    until: Time | None = None

    @property
    def name(self) -> str:
        """What the rules for this selection and key are called: the same whatever the effect is."""
        slug = re.sub(r"[^a-z0-9]+", "-", self.key.rpartition("/")[2].lower()).strip("-")[:_MAX_SLUG].strip("-")
        return f"{slug or 'taint'}-{_digest(_json(self.selection), self.key)}"


def build_rules(request: TaintRequest, selectors: Sequence[DeviceTaintSelector]) -> tuple[DeviceTaintRule, ...]:
    """A rule for each selector. A single one has the name of the request."""
    annotations = {SELECTION: _json(request.selection)}
    if request.until is not None:
        annotations[EXPIRES_AT] = str(request.until)
    taint = DeviceTaint(key=request.key, value=request.value, effect=request.effect, evictions_per_second=request.rate)
    return tuple(
        DeviceTaintRule(
            kind="DeviceTaintRule",
            api_version=API_VERSION,
            metadata=ObjectMeta(
                name=request.name
                if len(selectors) == 1
                else f"{request.name}-{_digest(codec.encode(selector).decode())}",
                labels={MADE_FOR: request.name},
                annotations=annotations,
            ),
            spec=DeviceTaintRuleSpec(device_selector=selector, taint=taint),
        )
        for selector in selectors
    )


def carry_rate(rule: DeviceTaintRule) -> DeviceTaintRule:
    """The rule with its rate in an annotation, for servers that drop the field (SVS-07)."""
    taint = rule.spec.taint
    if taint.evictions_per_second is None:
        return rule
    annotations = {**rule.metadata.annotations, EVICTIONS_PER_SECOND: str(taint.evictions_per_second)}
    return replace(
        rule,
        metadata=replace(rule.metadata, annotations=annotations),
        spec=replace(rule.spec, taint=replace(taint, evictions_per_second=None)),
    )


def as_stored(rules: Iterable[DeviceTaintRule], snapshot: Snapshot, now: Time) -> tuple[DeviceTaintRule, ...]:
    """The rules as the server is going to have them: a taint that keeps its effect keeps its time (SVS-09)."""
    known = {rule.metadata.name: rule for rule in snapshot.objects(DeviceTaintRule)}
    stored = []
    for rule in rules:
        old = known.get(rule.metadata.name)
        is_new = old is None or old.spec.taint.effect != rule.spec.taint.effect
        added = now if old is None or is_new else old.spec.taint.time_added
        uid = old.metadata.uid if old is not None else ""
        stored.append(
            replace(
                rule,
                metadata=replace(rule.metadata, uid=uid),
                spec=replace(rule.spec, taint=replace(rule.spec.taint, time_added=added)),
            )
        )
    return tuple(stored)


def made_before(snapshot: Snapshot, request: TaintRequest) -> tuple[DeviceTaintRule, ...]:
    """The rules in whose place those of a request come: of the same selection and key."""
    return tuple(
        rule
        for rule in snapshot.objects(DeviceTaintRule)
        if request.name in (rule.metadata.labels.get(MADE_FOR), rule.metadata.name)
    )


def rules_of(snapshot: Snapshot, selection: DeviceSelection, key: str = "") -> tuple[DeviceTaintRule, ...]:
    """The rules that were made for a selection, and a key if one is given."""
    wanted = _json(selection)
    return tuple(
        rule
        for rule in snapshot.objects(DeviceTaintRule)
        if rule.metadata.annotations.get(SELECTION) == wanted and key in ("", rule.spec.taint.key)
    )


def _json(selection: DeviceSelection) -> str:
    return msgspec.json.encode(selection, order="sorted").decode()


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:6]
