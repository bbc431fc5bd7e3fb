"""ControllerRevisions: the templates that a DaemonSet or StatefulSet had, numbered, for `kubectl rollout undo`.

The pure part says which revision a template is and which are too old; `RevisionHistory` reads and writes them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from dray.api import codec
from dray.api.generated.apps import ControllerRevision
from dray.api.generated.core import PodTemplateSpec
from dray.api.kinds import CONTROLLER_REVISIONS
from dray.api.labels import LabelSelector
from dray.api.meta import Object, ObjectMeta
from dray.api.references import controller_of
from dray.api.sharing import is_small
from dray.api.status import ApiError
from dray.client.calls import delete_exactly
from dray.controllers.context import Context
from dray.controllers.pod_templates import reference_to, template_hash
from dray.controllers.workload_pods import (
    BY_CONTROLLER,
    BY_LACK_OF_CONTROLLER,
    OwnerChanged,
    controller_uid,
    namespace_of_orphan,
)
from dray.reconcile.effort import MANY, beside_loop

HASH = "controller-revision-hash"
LONGEST_BASE = 223
HISTORY = 10
"""How many old revisions are kept unless somebody says otherwise."""


class History(NamedTuple):
    """The revision of the current template, those before it, oldest first, and how many names were taken."""

    current: ControllerRevision
    old: tuple[ControllerRevision, ...]
    collisions: int | None


def data_of(template: PodTemplateSpec) -> dict[str, Any]:
    """What a revision holds: the patch that brings a template back.

    Keys are in order: whoever compares a revision with a template, as Kubernetes' own tools do, compares its text.
    """
    found: dict[str, Any] = _in_order({"spec": {"template": {**codec.to_builtins(template), "$patch": "replace"}}})
    return found


def _in_order(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _in_order(value[key]) for key in sorted(value)}
    return [_in_order(one) for one in value] if isinstance(value, list | tuple) else value


def template_of(revision: ControllerRevision) -> PodTemplateSpec | None:
    """The template that a revision holds; None if somebody else wrote something else there."""
    try:
        template = {**revision.data["spec"]["template"]}
    except (KeyError, TypeError):
        return None
    template.pop("$patch", None)
    return codec.read(template, PodTemplateSpec).obj


def hash_of(revision: ControllerRevision) -> str:
    """The short name of a revision's template."""
    return revision.metadata.labels.get(HASH, revision.metadata.name)


def find_current(
    template: PodTemplateSpec, revisions: Iterable[ControllerRevision]
) -> tuple[ControllerRevision | None, tuple[ControllerRevision, ...]]:
    """The newest revision with a template, if there is one, and all others, oldest first."""
    wanted = data_of(template)
    by_number = sorted(revisions, key=lambda one: (one.revision, one.metadata.creation_timestamp or ""))
    current = next((one for one in reversed(by_number) if one.data == wanted), None)
    return current, tuple(one for one in by_number if one is not current)


def make(owner: Object, template: PodTemplateSpec, number: int, collisions: int) -> ControllerRevision:
    """A revision for a template; `collisions` makes another name, should one be taken."""
    digest = template_hash(template, collisions)
    meta = owner.metadata
    return ControllerRevision(
        kind="ControllerRevision",
        api_version="apps/v1",
        metadata=ObjectMeta(
            name=f"{meta.name[:LONGEST_BASE]}-{digest}",
            namespace=meta.namespace,
            labels={**template.metadata.labels, HASH: digest},
            annotations=meta.annotations,
            owner_references=(reference_to(owner),),
        ),
        data=data_of(template),
        revision=number,
    )


def surplus(
    old: Sequence[ControllerRevision], limit: int | None, live: Collection[str]
) -> tuple[ControllerRevision, ...]:
    """The oldest revisions beyond a limit; those that pods still have, by hash or by name, stay."""
    number = len(old) - (HISTORY if limit is None else limit)
    free = [one for one in old if hash_of(one) not in live and one.metadata.name not in live]
    return tuple(free[: max(number, 0)])


class RevisionHistory:
    """The revisions of all owners, and the writes that keep them."""

    def __init__(self, context: Context, owner_changed: OwnerChanged) -> None:
        """`owner_changed` hears of owners whose revisions changed: one may come late, and be numbered as another."""
        self._owner_changed = owner_changed
        self.informer = context.informers.of(CONTROLLER_REVISIONS, ControllerRevision)
        self._client = context.client
        self.informer.add_index(BY_CONTROLLER, controller_uid)
        self.informer.add_index(BY_LACK_OF_CONTROLLER, namespace_of_orphan)
        self.informer.on_change(self._on_revision)

    def _on_revision(self, old: ControllerRevision | None, new: ControllerRevision | None) -> None:
        for one in (old, new):
            owner = controller_of(one) if one is not None else None
            if one is not None and owner is not None:
                self._owner_changed(one.metadata.namespace, owner)

    async def of(
        self, owner: Object, selector: LabelSelector, template: PodTemplateSpec, collisions: int | None
    ) -> History:
        """The history of an owner; its current template gets a revision, with the highest number, if it has none."""
        revisions = [*self.informer.by_index(BY_CONTROLLER, owner.metadata.uid), *await self._adopt(owner, selector)]
        count = 0 if is_small(template) else MANY
        current, old = await beside_loop(count, find_current, template, revisions)
        number = max((one.revision for one in old), default=0) + 1
        if current is None:
            return await self._create(owner, template, number, old, collisions)
        if current.revision < number:
            current = await self._client.update(replace(current, revision=number))
            self.informer.put(current)
        return History(current, old, collisions)

    async def _create(
        self,
        owner: Object,
        template: PodTemplateSpec,
        number: int,
        old: tuple[ControllerRevision, ...],
        collisions: int | None,
    ) -> History:
        while True:
            count = 0 if is_small(template) else MANY
            wanted = await beside_loop(count, make, owner, template, number, collisions or 0)
            try:
                made = await self._client.create(wanted)
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise
                found = await self._client.get(CONTROLLER_REVISIONS, wanted.metadata.namespace, wanted.metadata.name)
                if not isinstance(found, ControllerRevision) or not _is_same(found, wanted):
                    collisions = (collisions or 0) + 1
                    continue
                made = found
            self.informer.put(made)
            return History(made, old, collisions)

    async def _adopt(self, owner: Object, selector: LabelSelector) -> list[ControllerRevision]:
        """Revisions that nobody manages and that fit become the owner's."""
        if owner.metadata.deletion_timestamp is not None:
            return []
        adopted = []
        for one in self.informer.by_index(BY_LACK_OF_CONTROLLER, owner.metadata.namespace):
            if one.metadata.deletion_timestamp is None and selector.matches(one.metadata.labels):
                references = (*one.metadata.owner_references, reference_to(owner))
                changed = replace(one, metadata=replace(one.metadata, owner_references=references))
                stored = await self._client.update(changed)
                self.informer.put(stored)
                adopted.append(stored)
        return adopted

    async def prune(self, old: Sequence[ControllerRevision], limit: int | None, live: Collection[str] = ()) -> None:
        """Deletes the oldest revisions that nobody needs any more."""
        for one in surplus(old, limit, live):
            if one.metadata.deletion_timestamp is None:
                await delete_exactly(self._client, CONTROLLER_REVISIONS, one)


def _is_same(found: ControllerRevision, wanted: ControllerRevision) -> bool:
    """Whether a revision of our name is ours, made before and not seen yet."""
    owners = {one.uid for one in found.metadata.owner_references}
    return found.data == wanted.data and wanted.metadata.owner_references[0].uid in owners
