"""The claim controller: watches pods, groups of them, claims and templates, and carries out the plans for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, NamedTuple

from msgspec.structs import replace

from dray.api.generated.core import Pod, PodResourceClaim
from dray.api.generated.scheduling import PodGroup, PodGroupResourceClaim
from dray.api.kinds import CLAIMS, POD_GROUPS, PODS, TEMPLATES
from dray.api.pod_claims import (
    POD_CLAIM_NAME,
    claim_for,
    claim_for_group,
    is_reserved_for,
    owning_pod,
    recorded_claims,
    user_of,
    uses_devices,
    with_statuses,
)
from dray.api.pod_groups import group_of, is_group
from dray.api.references import ObjectName, is_owned_by
from dray.api.resource import ResourceClaim, ResourceClaimConsumerReference, ResourceClaimTemplate
from dray.api.resource.claim import FINALIZER
from dray.api.status import ApiError
from dray.client.calls import delete_exactly, find
from dray.client.informer import put_together
from dray.controllers.context import Context
from dray.controllers.first_look import FirstLook
from dray.controllers.queue_controller import QueueController
from dray.controllers.resource_claim.claim_plan import Step, is_judged, plan_claim
from dray.controllers.resource_claim.group_plan import GroupPlan, plan_group, with_shared
from dray.controllers.resource_claim.indexes import (
    BY_CLAIM,
    BY_GROUP,
    BY_OWNER,
    BY_TEMPLATE,
    add_indexes,
    claim_names,
    shared_claim_names,
)
from dray.controllers.resource_claim.memory import Memory
from dray.controllers.resource_claim.metrics import ClaimMetrics
from dray.controllers.resource_claim.pod_plan import PodPlan, is_done, other_claim, plan_pod

POD = "pod"
CLAIM = "claim"
GROUP = "group"
WORKERS = 64
FAILED = "FailedResourceClaimCreation"


class Key(NamedTuple):
    """A pod, a group of pods or a claim to look at."""

    kind: str
    namespace: str
    name: str


class ResourceClaimController(QueueController[Key]):
    """Makes claims from templates, and takes back what finished pods leave behind."""

    name: ClassVar[str] = "resourceclaim-controller"
    queue_name: ClassVar[str] = "resource_claim"

    def __init__(self, context: Context) -> None:
        self._pods = context.informers.of(PODS, Pod)
        self._claims = context.informers.of(CLAIMS, ResourceClaim)
        self._templates = context.informers.of(TEMPLATES, ResourceClaimTemplate)
        self._groups = context.informers.of(POD_GROUPS, PodGroup)
        super().__init__(context, self._pods, self._claims, self._templates, self._groups, workers=WORKERS)
        self._memory = Memory(context.clock.monotonic)
        self._came_complete = False
        """Whether the pod and the claims that are told of now came all together, and nothing is left to do for them."""
        self._metrics = ClaimMetrics(context.metrics)
        self._recorder = context.recorder("resource_claim")
        add_indexes(self._pods, self._groups, self._claims)
        self._claims.on_change(self._metrics.changed)
        self._first_look = FirstLook(
            (self._claims, self._on_claim),
            (self._groups, self._on_group),
            (self._pods, self._on_pod),
        )
        self._templates.on_change(self._on_template)

    def note_made(self, pod: Pod, claims: Sequence[ResourceClaim]) -> None:
        """The server made claims together with their pod, in the controller's place."""
        for claim in claims:
            self._metrics.created(claim.spec, ok=True)
        self._came_complete = len(claims) == len(pod.spec.resource_claims)
        try:
            put_together(*[(self._claims, claim) for claim in claims], (self._pods, pod))
        finally:
            self._came_complete = False

    async def run(self) -> None:
        """Works until cancelled."""
        await self._first_look.look()
        await super().run()

    # Events

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        is_gone = old is not None and (new is None or new.metadata.uid != old.metadata.uid)
        if old is not None and is_gone and self._has_claims(old):
            # Also if a pod without claims has its name by now.
            self._memory.note_gone(old.metadata.uid)
            self._release_claims(old)
        if new is None or self._came_complete:
            return
        if is_done(new):
            if self._has_claims(new):
                self._release_claims(new)
        elif not uses_devices(new):
            return
        elif _lacks_claims(new) or self._plan(new):
            self.queue.add(Key(POD, new.metadata.namespace, new.metadata.name))
        else:
            self._memory.saw_recorded(new.metadata.uid)
            if old is None or _recorded(old) != _recorded(new):
                self._look_for_surplus(new)

    def _on_group(self, old: PodGroup | None, new: PodGroup | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._memory.note_gone(old.metadata.uid)
            for claim in self._claims.by_index(BY_OWNER, old.metadata.uid):
                self.queue.add(Key(CLAIM, claim.metadata.namespace, claim.metadata.name))
            for namespace, name in shared_claim_names(old):
                self.queue.add(Key(CLAIM, namespace, name))
        if new is None:
            return
        if self._plan_group(new):
            self.queue.add(Key(GROUP, new.metadata.namespace, new.metadata.name))
        if old is None or old.status.resource_claim_statuses != new.status.resource_claim_statuses:
            self._look_at_pods_of(ObjectName.of(new))

    def _look_at_pods_of(self, name: ObjectName) -> None:
        """Pods of a group have claims of their own, and claims that were made for the group."""
        for pod in self._pods.by_index(BY_GROUP, name):
            if uses_devices(pod) and self._plan(pod):
                self.queue.add(Key(POD, pod.metadata.namespace, pod.metadata.name))

    def _look_for_surplus(self, pod: Pod) -> None:
        """Lets claims be looked at that were made for a pod and that its status does not name."""
        for claim in self._claims.by_index(BY_OWNER, pod.metadata.uid):
            if other_claim(claim, pod) is not None:
                self.queue.add(Key(CLAIM, claim.metadata.namespace, claim.metadata.name))

    def _has_claims(self, pod: Pod) -> bool:
        """Whether a pod uses claims, or some were made for it: for extended resources, before its status names them."""
        return uses_devices(pod) or bool(self._claims.by_index(BY_OWNER, pod.metadata.uid))

    def _release_claims(self, pod: Pod) -> None:
        """Lets the claims of a pod that does not need them any more be looked at."""
        names = [name for _, name in claim_names(pod)]
        names.extend(claim.metadata.name for claim in self._claims.by_index(BY_OWNER, pod.metadata.uid))
        for name in names:
            self.queue.add(Key(CLAIM, pod.metadata.namespace, name))

    def _on_claim(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if self._came_complete:
            return
        claim = new if new is not None else old
        assert claim is not None
        namespace, name = claim.metadata.namespace, claim.metadata.name
        if new is not None:
            self._memory.saw_claim(namespace, name)
            if self._needs_look(new):
                self.queue.add(Key(CLAIM, namespace, name))
        for pod in self._pods.by_index(BY_CLAIM, (namespace, name)):
            # For a pod without a node it counts only whether the claim is there, and its own.
            is_news = bool(pod.spec.node_name) or not _is_same(old, new)
            if is_news and not _is_served(pod, new) and self._plan(pod):
                self.queue.add(Key(POD, namespace, pod.metadata.name))
        for group in self._groups.by_index(BY_CLAIM, (namespace, name)):
            if self._plan_group(group):
                self.queue.add(Key(GROUP, namespace, group.metadata.name))
            if not _is_same(old, new):
                self._look_at_pods_of(ObjectName.of(group))

    def _on_template(self, _old: ResourceClaimTemplate | None, new: ResourceClaimTemplate | None) -> None:
        if new is None or not self._first_look.has_begun:
            return
        place = (new.metadata.namespace, new.metadata.name)
        for pod in self._pods.by_index(BY_TEMPLATE, place):
            if self._plan(pod):
                self.queue.add(Key(POD, pod.metadata.namespace, pod.metadata.name))
        for group in self._groups.by_index(BY_TEMPLATE, place):
            if self._plan_group(group):
                self.queue.add(Key(GROUP, group.metadata.namespace, group.metadata.name))

    def _needs_look(self, claim: ResourceClaim) -> bool:
        """Whether anything might have to be done; cheap, because every change of every claim comes by."""
        if claim.metadata.deletion_timestamp is not None:
            return True
        for one in claim.status.reserved_for:
            if is_judged(one) and not self._is_alive(claim, one):
                return True
        return not claim.status.reserved_for and self._seems_needless(claim)

    def _is_alive(self, claim: ResourceClaim, user: ResourceClaimConsumerReference) -> bool:
        if is_group(user):
            group = self._groups.get(claim.metadata.namespace, user.name)
            return group is not None and group.metadata.uid == user.uid
        pod = self._pods.get(claim.metadata.namespace, user.name)
        return pod is not None and pod.metadata.uid == user.uid and not is_done(pod)

    def _seems_needless(self, claim: ResourceClaim) -> bool:
        """Whether the claim was made for a pod that needs it no more, or that has another one for the same entry.

        There are two if an answer was lost, or a request late. The claims of a pod that is gone are the garbage
        collector's.
        """
        owner = owning_pod(claim)
        pod = self._pods.get(claim.metadata.namespace, owner.name) if owner is not None else None
        if owner is None or pod is None:
            return False
        return pod.metadata.uid != owner.uid or is_done(pod) or other_claim(claim, pod) is not None

    async def _is_needless(self, claim: ResourceClaim) -> bool:
        """Whether a claim that was made for a pod can go. What is not certain from here, the server must say."""
        owner = owning_pod(claim)
        if owner is None or not self._seems_needless(claim):
            return False
        pod = await self._find_pod(claim.metadata.namespace, owner.name)
        if pod is None:
            return False
        other = other_claim(claim, pod)
        is_surplus = other is not None and await self._find_claim(claim.metadata.namespace, other) is not None
        return pod.metadata.uid != owner.uid or is_done(pod) or is_surplus

    async def _find_pod(self, namespace: str, name: str) -> Pod | None:
        """A pod as the server knows it."""
        return await find(self._client, PODS, namespace, name, Pod)

    # Plans

    async def reconcile(self, key: Key) -> None:
        """Looks at a pod, a group or a claim."""
        if key.kind == GROUP:
            group = self._groups.get(key.namespace, key.name)
            if group is not None:
                await self._reconcile_group(group)
        elif key.kind == POD:
            pod = self._pods.get(key.namespace, key.name)
            if pod is not None:
                await self._reconcile_pod(pod)
        else:
            claim = self._claims.get(key.namespace, key.name)
            if claim is not None:
                await self._reconcile_claim(claim)

    def _plan(self, pod: Pod) -> PodPlan:
        namespace = pod.metadata.namespace
        return plan_pod(
            pod, lambda name: self._claims.get(namespace, name), lambda: self._made(pod), self._group_of(pod)
        )

    def _group_of(self, pod: Pod) -> PodGroup | None:
        name = group_of(pod)
        return None if name is None else self._groups.get(*name)

    def _plan_group(self, group: PodGroup) -> GroupPlan:
        namespace = group.metadata.namespace
        return plan_group(group, lambda name: self._claims.get(namespace, name), lambda: self._made(group))

    def _made(self, owner: Pod | PodGroup) -> Mapping[str, str]:
        uid, namespace = owner.metadata.uid, owner.metadata.namespace
        made = {
            claim.metadata.annotations[POD_CLAIM_NAME]: claim.metadata.name
            for claim in self._claims.by_index(BY_OWNER, uid)
            if POD_CLAIM_NAME in claim.metadata.annotations and claim.metadata.deletion_timestamp is None
        }
        for entry, name in self._memory.made(uid).items():
            if self._memory.is_new(namespace, name):
                made.setdefault(entry, name)
        return made

    async def _reconcile_pod(self, pod: Pod) -> None:
        plan = self._plan(pod)
        only_makes = plan.make and not (plan.found or plan.reserve or plan.problems)
        if only_makes and await self._make_at_once(pod, plan.make):
            return
        names = dict(plan.found)
        for entry in plan.make:
            name = await self._make(pod, entry)
            if name is not None:
                names[entry.name] = name
        if names:
            await self._record(pod, names)
        for claim in plan.reserve:
            user = user_of(claim, pod, self._group_of(pod))
            status = replace(claim.status, reserved_for=(*claim.status.reserved_for, user))
            await self._client.update(replace(claim, status=status), subresource="status")
        for problem in plan.problems:
            await self._recorder.warning(pod, FAILED, problem)

    async def _make_at_once(self, pod: Pod, entries: Sequence[PodResourceClaim]) -> bool:
        """Creates the claims of a new pod and names them in its status, in one write; False if that cannot be."""
        meta = pod.metadata
        claims = {}
        for entry in entries:
            template = self._templates.get(meta.namespace, entry.resource_claim_template_name or "")
            if template is None:
                return False
            claims[entry.name] = claim_for(pod, entry, template)
        if recorded_claims(pod).keys() & claims.keys():
            return False  # of those that were named before, the server has to be asked
        try:
            made = await self._client.create_claims(pod, claims)
        except (ApiError, OSError, TimeoutError) as error:
            self._note_failure(claims.values())
            if not (isinstance(error, ApiError) and error.code in (404, 409)):  # else the pod is not what it was
                await self._recorder.warning(pod, FAILED, f"{_entry_kind(pod)} {', '.join(claims)}: {error}")
            raise
        if made is None:
            return False
        for entry_name, claim in zip(claims, made, strict=True):
            self._metrics.created(claim.spec, ok=True)
            self._memory.note_made(meta.uid, meta.namespace, entry_name, claim.metadata.name)
            self._claims.put(claim)
        return True

    def _note_failure(self, claims: Iterable[ResourceClaim]) -> None:
        for claim in claims:
            self._metrics.created(claim.spec, ok=False)

    async def _make(self, pod: Pod, entry: PodResourceClaim) -> str | None:
        """Creates a claim and returns its name; None if that must wait until something else changes."""
        namespace = pod.metadata.namespace
        recorded = next((one for one in pod.status.resource_claim_statuses if one.name == entry.name), None)
        told = await self._find_claim(namespace, recorded.resource_claim_name or "") if recorded is not None else None
        if told is not None and is_owned_by(told, pod):
            return None  # the pod's news came before the claim's
        template = await self._template(pod, entry)
        return None if template is None else await self._create(pod, entry, claim_for(pod, entry, template))

    async def _reconcile_group(self, group: PodGroup) -> None:
        plan = self._plan_group(group)
        names = dict(plan.found)
        for entry in plan.make:
            template = await self._template(group, entry)
            if template is not None:
                names[entry.name] = await self._create(group, entry, claim_for_group(group, entry, template))
        if names:
            status = replace(group.status, resource_claim_statuses=with_shared(group, names))
            await self._client.update(replace(group, status=status), subresource="status")

    async def _create(
        self, owner: Pod | PodGroup, entry: PodResourceClaim | PodGroupResourceClaim, wanted: ResourceClaim
    ) -> str:
        """Creates a claim for an entry of a pod or a group, and returns its name."""
        namespace = owner.metadata.namespace
        try:
            claim = await self._client.create(wanted)
        except (ApiError, OSError, TimeoutError) as error:
            self._metrics.created(wanted.spec, ok=False)
            await self._recorder.warning(owner, FAILED, f"{_entry_kind(owner)} {entry.name}: {error}")
            raise
        self._metrics.created(wanted.spec, ok=True)
        name = claim.metadata.name
        if self._claims.get(namespace, name) is None:
            self._memory.note_made(owner.metadata.uid, namespace, entry.name, name)
        return name

    async def _find_claim(self, namespace: str, name: str) -> ResourceClaim | None:
        """A claim as the server knows it."""
        return await find(self._client, CLAIMS, namespace, name, ResourceClaim) if name else None

    async def _template(
        self, owner: Pod | PodGroup, entry: PodResourceClaim | PodGroupResourceClaim
    ) -> ResourceClaimTemplate | None:
        """The template, also if it was created so recently that its news is still on the way; who needs it is told if
        there is none."""
        namespace, name = owner.metadata.namespace, entry.resource_claim_template_name or ""
        known = self._templates.get(namespace, name)
        if known is None:
            known = await find(self._client, TEMPLATES, namespace, name, ResourceClaimTemplate)
        if known is None:
            why = f'resource claim template "{name}": resourceclaimtemplate.resource.k8s.io "{name}" not found'
            await self._recorder.warning(owner, FAILED, f"{_entry_kind(owner)} {entry.name}: {why}")  # 4381-144
        return known

    async def _record(self, pod: Pod, names: Mapping[str, str]) -> None:
        """Writes into the pod's status which claims it has; a later pod of that name is safe from it (4381-126).

        Never without a version: a write that comes late must not replace the claim with which the pod was bound since.
        """
        try:
            await self._write_statuses(pod, names)
        except ApiError as error:
            if error.code == 409:
                await self._record_again(pod, names)
            elif error.code != 404:
                raise

    async def _record_again(self, pod: Pod, names: Mapping[str, str]) -> None:
        """Somebody else wrote meanwhile. Names that were recorded since stay; what is too many is sorted out later."""
        current = await self._find_pod(pod.metadata.namespace, pod.metadata.name)
        if current is None or current.metadata.uid != pod.metadata.uid:
            return  # gone, or replaced by a pod that gets claims of its own
        before, now = recorded_claims(pod), recorded_claims(current)
        wanted = {entry: name for entry, name in names.items() if now.get(entry) == before.get(entry)}
        if wanted:
            await self._write_statuses(current, wanted)

    async def _write_statuses(self, pod: Pod, names: Mapping[str, str]) -> None:
        statuses = with_statuses(pod, names)
        updated = replace(pod, status=replace(pod.status, resource_claim_statuses=statuses))
        await self._client.update(updated, subresource="status")

    async def _reconcile_claim(self, claim: ResourceClaim) -> None:
        gone = [one.uid for one in claim.status.reserved_for if is_judged(one) and await self._is_gone(claim, one)]
        plan = plan_claim(claim, gone, is_needless=await self._is_needless(claim))
        if plan.status is not None:
            # An update, not a patch: it must fail if anything else changed meanwhile.
            claim = await self._client.update(replace(claim, status=plan.status), subresource="status")
        for step in plan.steps:
            if step is Step.DROP_FINALIZER:
                left = tuple(name for name in claim.metadata.finalizers if name != FINALIZER)
                claim = await self._client.update(replace(claim, metadata=replace(claim.metadata, finalizers=left)))
            else:
                await delete_exactly(self._client, CLAIMS, claim)

    async def _is_gone(self, claim: ResourceClaim, user: ResourceClaimConsumerReference) -> bool:
        """Whether a pod or a group needs the claim no more. Of one that we never saw the server must say so
        (4381-136)."""
        namespace, name, uid = claim.metadata.namespace, user.name, user.uid
        if self._memory.is_gone(uid):
            return True
        if is_group(user):
            group = self._groups.get(namespace, name)
            if group is None or group.metadata.uid != uid:
                group = await find(self._client, POD_GROUPS, namespace, name, PodGroup)
            return group is None or group.metadata.uid != uid
        pod = self._pods.get(namespace, name)
        if pod is None or pod.metadata.uid != uid:  # it may have taken the place of the one that we know
            pod = await self._find_pod(namespace, name)
        return pod is None or pod.metadata.uid != uid or is_done(pod)


def _entry_kind(owner: Pod | PodGroup) -> str:
    return "PodResourceClaim" if isinstance(owner, Pod) else "PodGroupResourceClaim"


def _is_same(old: ResourceClaim | None, new: ResourceClaim | None) -> bool:
    """Whether a claim is still the same one, of the same owners."""
    if old is None or new is None:
        return False
    before, after = old.metadata, new.metadata
    return before.uid == after.uid and before.owner_references == after.owner_references


def _is_served(pod: Pod, claim: ResourceClaim | None) -> bool:
    """Whether a claim that was made for a pod is reserved for it: what happens to it then makes no work for the pod."""
    return claim is not None and is_owned_by(claim, pod) and is_reserved_for(claim, pod)


def _recorded(pod: Pod) -> tuple[object, object]:
    """Which claims were made for a pod, as its status says."""
    return pod.status.resource_claim_statuses, pod.status.extended_resource_claim_status


def _lacks_claims(pod: Pod) -> bool:
    """Whether the status of a pod does not name a claim for every template yet; so it is with every new pod."""
    recorded = len(pod.status.resource_claim_statuses)
    return recorded < len(pod.spec.resource_claims) and recorded < sum(
        entry.resource_claim_template_name is not None for entry in pod.spec.resource_claims
    )
