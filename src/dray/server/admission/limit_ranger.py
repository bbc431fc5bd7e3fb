"""Pods and volume claims are held to the LimitRanges of their namespace, and pods get their defaults."""

from __future__ import annotations

from msgspec.structs import replace

from dray.api.generated.core import PersistentVolumeClaim, Pod
from dray.api.kinds import LIMIT_RANGES
from dray.api.meta import Object
from dray.pod_admission import limit_range
from dray.server import errors
from dray.server.admission.chain import Plugin
from dray.server.engine import Call, Engine


class LimitRanger(Plugin):
    """Looks at new pods, at pods that are resized, and at every volume claim that is written."""

    switch = "LimitRanger"
    kinds = frozenset({"Pod", "PersistentVolumeClaim"})
    parts = frozenset({"", "resize"})

    def mutate(self, engine: Engine, call: Call, new: Object, old: Object | None) -> Object:
        """Gives containers what they do not ask for. Raises ApiError if that is more than fits into an object."""
        if not engine.store.count(LIMIT_RANGES.resource):
            return new
        if not isinstance(new, Pod) or not _is_looked_at(call, new, old):
            return new
        for found in _ranges(engine, call):
            try:
                spec, said = limit_range.defaulted(new.spec, found)
            except limit_range.TooMuch:
                why = "the LimitRanges of its namespace would add more to its containers than an object may have"
                detail = f"{why}: have fewer containers, or say in each what it asks for"
                raise errors.forbidden(call.route.kind, new.metadata.name, detail) from None
            if said:
                annotations = {**new.metadata.annotations, limit_range.ANNOTATION: said}
                new = replace(new, spec=spec, metadata=replace(new.metadata, annotations=annotations))
        return new

    def check(self, engine: Engine, call: Call, new: Object | None, old: Object | None) -> None:
        """Refuses what is too little or too much. Raises ApiError."""
        if not engine.store.count(LIMIT_RANGES.resource) or new is None or not _is_looked_at(call, new, old):
            return
        for found in _ranges(engine, call):
            if isinstance(new, Pod):
                problems = limit_range.pod_problems(new.spec, found)
            else:
                assert isinstance(new, PersistentVolumeClaim)
                problems = limit_range.volume_claim_problems(new, found)
            if problems:
                why = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
                raise errors.forbidden(call.route.kind, new.metadata.name, why)


def _is_looked_at(call: Call, new: Object, old: Object | None) -> bool:
    if old is not None and old.metadata.deletion_timestamp is not None:
        return False
    return old is None or bool(call.route.subresource) or not isinstance(new, Pod)


def _ranges(engine: Engine, call: Call) -> list[limit_range.Range]:
    records = engine.store.list(LIMIT_RANGES.resource, call.route.namespace).records
    return [limit_range.range_of(record.obj) for record in records]
