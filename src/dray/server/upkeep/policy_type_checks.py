"""Writes into the status of ValidatingAdmissionPolicies what their expressions get wrong about the kinds they name.

Policies act whatever comes of it. Expressions are checked beside the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from dray.admission.schema_types import TypedKind, typed_kind
from dray.admission.type_checking import MOST_KINDS, expression_warnings, resources_of
from dray.api.generated.admissionregistration import (
    TypeChecking,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyStatus,
)
from dray.api.meta import Object
from dray.api.registry import Kind, UnknownKind, by_kind
from dray.custom.cel_values import shape_of
from dray.custom.kinds import CustomKind
from dray.process.clock import Clock
from dray.server.engine import Engine
from dray.server.errors import ApiError
from dray.server.upkeep.following import follow_until_closed
from dray.server.verbs.rewrites import rewrite

POLICIES: Final = by_kind("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy")


async def check_policies(engine: Engine) -> None:
    """Brings the status of every policy up to date. Raises StorageError."""
    stored: list[ValidatingAdmissionPolicy] = [record.obj for record in engine.store.list(POLICIES.resource).records]
    for policy in stored:
        if policy.status.type_checking is None or policy.status.observed_generation != policy.metadata.generation:
            await _check(engine, policy)


async def keep_checked(engine: Engine, clock: Clock) -> None:
    """Does so whenever a policy changes, until the store is closed."""

    async def follow() -> None:
        with engine.store.watch(POLICIES.resource, engine.store.revision) as watcher:
            await check_policies(engine)
            while await watcher.next():
                await check_policies(engine)

    await follow_until_closed(follow, clock)


async def _check(engine: Engine, policy: ValidatingAdmissionPolicy) -> None:
    kinds = [typed for typed in map(_typed, _kinds_of(engine, policy)) if typed is not None]
    params = _params_of(engine, policy)
    warnings = await asyncio.to_thread(expression_warnings, policy, kinds, params)
    checked = ValidatingAdmissionPolicyStatus(
        observed_generation=policy.metadata.generation,
        type_checking=TypeChecking(expression_warnings=warnings),
        conditions=policy.status.conditions,
    )

    def with_status(found: ValidatingAdmissionPolicy) -> ValidatingAdmissionPolicy:
        known, meta = policy.metadata, found.metadata
        is_same = (meta.uid, meta.generation) == (known.uid, known.generation)  # a successor has the same generation
        return replace(found, status=checked) if is_same else found

    try:
        await rewrite(engine, POLICIES, "", policy.metadata.name, with_status)
    except ApiError:
        return  # gone meanwhile, or somebody else keeps writing it: its next change brings us back


def _kinds_of(engine: Engine, policy: ValidatingAdmissionPolicy) -> Iterator[tuple[Kind, str]]:
    """The kinds, and their versions, that the rules of a policy name."""
    found = 0
    for group, version, plural in resources_of(policy):
        for kind in engine.kinds.kinds_in(group, version):
            if kind.plural == plural and found < MOST_KINDS:
                found += 1
                yield kind, version


def _params_of(engine: Engine, policy: ValidatingAdmissionPolicy) -> TypedKind | None:
    reference = policy.spec.param_kind
    if reference is None:
        return None
    try:
        kind = engine.kinds.kind_of(Object(kind=reference.kind, api_version=reference.api_version))
    except UnknownKind:
        return None
    return _typed((kind, reference.api_version.rpartition("/")[2]))


def _typed(named: tuple[Kind, str]) -> TypedKind | None:
    kind, version = named
    if not isinstance(kind, CustomKind):
        return typed_kind(kind.group, version, kind.kind)
    schema = next((each.schema for each in kind.definition.spec.versions if each.name == version), None)
    root = None if schema is None else schema.open_apiv3_schema
    shape = None if root is None else shape_of(root, f"{kind.kind}.{version}", is_root=True)
    if shape is None:
        return None
    return TypedKind(f"{kind.api_version_of(version)}, Kind={kind.kind}", shape.type, shape.structs)
