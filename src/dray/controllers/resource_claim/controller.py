"""The claim controller: watches pods, claims and templates, and carries out the plans for pods and for claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, NamedTuple

from msgspec.structs import replace

from dray.api.generated.core import Pod, PodResourceClaim, PodResourceClaimStatus
from dray.api.meta import DeleteOptions, Preconditions
from dray.api.resource import ResourceClaim, ResourceClaimTemplate
from dray.api.resource.claim import FINALIZER
from dray.api.status import ApiError
from dray.controllers.context import Context
from dray.controllers.kinds import CLAIM_TEMPLATES, CLAIMS, PODS
from dray.controllers.queue_controller import QueueController
from dray.controllers.resource_claim.claim_plan import Step, is_pod, plan_claim
from dray.controllers.resource_claim.memory import Memory
from dray.controllers.resource_claim.metrics import ClaimMetrics
from dray.controllers.resource_claim.pod_plan import (
    POD_CLAIM_NAME,
    PodPlan,
    claim_for,
    consumer,
    is_done,
    other_claim,
    owning_pod,
    plan_pod,
    with_statuses,
)

POD = "pod"
CLAIM = "claim"
WORKERS = 64
BY_CLAIM = "resource-claim"
BY_TEMPLATE = "resource-claim-template"
BY_OWNER = "owning-pod"
FAILED = "FailedResourceClaimCreation"


class Key(NamedTuple):
    """A pod or a claim to look at."""

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
        self._templates = context.informers.of(CLAIM_TEMPLATES, ResourceClaimTemplate)
        super().__init__(context, self._pods, self._claims, self._templates, workers=WORKERS)
        self._memory = Memory(context.clock.monotonic)
        self._metrics = ClaimMetrics(context.metrics)
        self._recorder = context.recorder("resource_claim")
        self._pods.add_index(BY_CLAIM, _claim_names)
        self._pods.add_index(BY_TEMPLATE, _template_names)
        self._claims.add_index(BY_OWNER, _owning_pods)
        self._claims.on_change(self._on_claim)
        self._templates.on_change(self._on_template)
        self._pods.on_change(self._on_pod)

    # Events

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        pod = new if new is not None else old
        assert pod is not None
        if not pod.spec.resource_claims and pod.status.extended_resource_claim_status is None:
            return
        if new is None:
            self._memory.note_gone(pod.metadata.uid)
        elif old is not None and old.metadata.uid != new.metadata.uid:
            self._memory.note_gone(old.metadata.uid)
            self._release_claims(old)
        if new is None or is_done(new):
            self._release_claims(pod)
        elif self._plan(new):
            self.queue.add(Key(POD, new.metadata.namespace, new.metadata.name))
        else:
            if self._memory.made(new.metadata.uid):
                self._memory.saw_recorded(new.metadata.uid)
            for claim in self._claims.by_index(BY_OWNER, new.metadata.uid):
                if self._is_surplus(claim):
                    self.queue.add(Key(CLAIM, claim.metadata.namespace, claim.metadata.name))

    def _release_claims(self, pod: Pod) -> None:
        """Lets the claims of a pod that does not need them any more be looked at."""
        names = [name for _, name in _claim_names(pod)]
        names.extend(claim.metadata.name for claim in self._claims.by_index(BY_OWNER, pod.metadata.uid))
        for name in names:
            self.queue.add(Key(CLAIM, pod.metadata.namespace, name))

    def _on_claim(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        self._metrics.changed(old, new)
        claim = new if new is not None else old
        assert claim is not None
        namespace, name = claim.metadata.namespace, claim.metadata.name
        if new is not None:
            self._memory.saw_claim(namespace, name)
            if self._needs_look(new):
                self.queue.add(Key(CLAIM, namespace, name))
        for pod in self._pods.by_index(BY_CLAIM, (namespace, name)):
            if self._plan(pod):
                self.queue.add(Key(POD, namespace, pod.metadata.name))

    def _on_template(self, _old: ResourceClaimTemplate | None, new: ResourceClaimTemplate | None) -> None:
        if new is None:
            return
        place = (new.metadata.namespace, new.metadata.name)
        for pod in self._pods.by_index(BY_TEMPLATE, place):
            if self._plan(pod):
                self.queue.add(Key(POD, pod.metadata.namespace, pod.metadata.name))

    def _needs_look(self, claim: ResourceClaim) -> bool:
        """Whether anything might have to be done; cheap, because every change of every claim comes by."""
        if claim.metadata.deletion_timestamp is not None:
            return True
        if not self._pods.has_synced:
            return True
        if any(is_pod(one) and not self._is_alive(claim, one.name, one.uid) for one in claim.status.reserved_for):
            return True
        return not claim.status.reserved_for and (self._owner_is_done(claim) or self._is_surplus(claim))

    def _is_alive(self, claim: ResourceClaim, name: str, uid: str) -> bool:
        pod = self._pods.get(claim.metadata.namespace, name)
        return pod is not None and pod.metadata.uid == uid and not is_done(pod)

    def _owner_is_done(self, claim: ResourceClaim) -> bool:
        """Whether the claim was made for a pod that needs it no more. A pod that is gone is the garbage collector's."""
        owner = owning_pod(claim)
        pod = self._pods.get(claim.metadata.namespace, owner.name) if owner is not None else None
        return owner is not None and pod is not None and (pod.metadata.uid != owner.uid or is_done(pod))

    def _is_surplus(self, claim: ResourceClaim) -> bool:
        """Whether it seems that the pod has another claim for the same entry: an answer was lost, or a request late."""
        owner = owning_pod(claim)
        pod = self._pods.get(claim.metadata.namespace, owner.name) if owner is not None else None
        return pod is not None and other_claim(claim, pod) is not None

    async def _is_needless(self, claim: ResourceClaim) -> bool:
        """Whether a claim that was made for a pod can go. What is not certain from here, the server must say."""
        owner = owning_pod(claim)
        if owner is None or not (self._owner_is_done(claim) or self._is_surplus(claim)):
            return False
        pod = await self._find_pod(claim.metadata.namespace, owner.name)
        if pod is None:
            return False
        other = other_claim(claim, pod)
        is_surplus = other is not None and await self._exists(claim.metadata.namespace, other)
        return pod.metadata.uid != owner.uid or is_done(pod) or is_surplus

    async def _find_pod(self, namespace: str, name: str) -> Pod | None:
        """A pod as the server knows it."""
        try:
            found = await self._client.get(PODS, namespace, name)
        except ApiError as error:
            if error.code != 404:
                raise
            return None
        return found if isinstance(found, Pod) else None

    # Plans

    async def reconcile(self, key: Key) -> None:
        """Looks at a pod or a claim."""
        if key.kind == POD:
            pod = self._pods.get(key.namespace, key.name)
            if pod is not None:
                await self._reconcile_pod(pod)
        else:
            claim = self._claims.get(key.namespace, key.name)
            if claim is not None:
                await self._reconcile_claim(claim)

    def _plan(self, pod: Pod) -> PodPlan:
        namespace = pod.metadata.namespace
        return plan_pod(pod, lambda name: self._claims.get(namespace, name), self._made(pod))

    def _made(self, pod: Pod) -> Mapping[str, str]:
        uid, namespace = pod.metadata.uid, pod.metadata.namespace
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
        names = dict(plan.found)
        for entry in plan.make:
            name = await self._make(pod, entry)
            if name is not None:
                names[entry.name] = name
        if names:
            await self._record(pod, names)
        for claim in plan.reserve:
            status = replace(claim.status, reserved_for=(*claim.status.reserved_for, consumer(pod)))
            await self._client.update(replace(claim, status=status), subresource="status")
        for problem in plan.problems:
            await self._recorder.warning(pod, FAILED, problem)

    async def _make(self, pod: Pod, entry: PodResourceClaim) -> str | None:
        """Creates a claim and returns its name; None if that must wait until something else changes."""
        namespace = pod.metadata.namespace
        recorded = next((one for one in pod.status.resource_claim_statuses if one.name == entry.name), None)
        if recorded is not None and await self._exists(namespace, recorded.resource_claim_name or ""):
            return None  # the pod's news came before the claim's
        template = await self._template(namespace, entry.resource_claim_template_name or "")
        if template is None:
            why = f'resourceclaimtemplate.resource.k8s.io "{entry.resource_claim_template_name}" not found'
            await self._recorder.warning(pod, FAILED, f"PodResourceClaim {entry.name}: {why}")  # 4381-144
            return None
        wanted = claim_for(pod, entry, template)
        try:
            claim = await self._client.create(wanted)
        except (ApiError, OSError, TimeoutError) as error:
            self._metrics.created(wanted.spec, ok=False)
            await self._recorder.warning(pod, FAILED, f"PodResourceClaim {entry.name}: {error}")
            raise
        self._metrics.created(wanted.spec, ok=True)
        name = claim.metadata.name
        if self._claims.get(namespace, name) is None:
            self._memory.note_made(pod.metadata.uid, namespace, entry.name, name)
        return name

    async def _exists(self, namespace: str, name: str) -> bool:
        try:
            await self._client.get(CLAIMS, namespace, name)
        except ApiError as error:
            if error.code != 404:
                raise
            return False
        return True

    async def _template(self, namespace: str, name: str) -> ResourceClaimTemplate | None:
        """The template, also if it was created so recently that its news is still on the way."""
        known = self._templates.get(namespace, name)
        if known is not None:
            return known
        try:
            found = await self._client.get(CLAIM_TEMPLATES, namespace, name)
        except ApiError as error:
            if error.code != 404:
                raise
            return None
        return found if isinstance(found, ResourceClaimTemplate) else None

    async def _record(self, pod: Pod, names: Mapping[str, str]) -> None:
        """Writes into the pod's status which claims it has.

        An update is the cheapest write; if somebody else wrote meanwhile, a patch does not care. Both carry the uid,
        which keeps a later pod of that name safe (4381-126).
        """
        statuses = with_statuses(pod, names)
        updated = replace(pod, status=replace(pod.status, resource_claim_statuses=statuses))
        try:
            await self._client.update(updated, subresource="status")
        except ApiError as error:
            if error.code == 409:
                await self._patch_statuses(pod, statuses)
            elif error.code != 404:
                raise

    async def _patch_statuses(self, pod: Pod, statuses: tuple[PodResourceClaimStatus, ...]) -> None:
        plain = [{"name": one.name, "resourceClaimName": one.resource_claim_name} for one in statuses]
        patch = {"metadata": {"uid": pod.metadata.uid}, "status": {"resourceClaimStatuses": plain}}
        try:
            await self._client.patch(PODS, pod.metadata.namespace, pod.metadata.name, patch, subresource="status")
        except ApiError as error:
            if error.code not in (404, 409):  # gone, or replaced by a pod that gets claims of its own
                raise

    async def _reconcile_claim(self, claim: ResourceClaim) -> None:
        gone = [
            one.uid
            for one in claim.status.reserved_for
            if is_pod(one) and await self._is_gone(claim, one.name, one.uid)
        ]
        plan = plan_claim(claim, gone, is_needless=await self._is_needless(claim))
        if plan.status is not None:
            # An update, not a patch: it must fail if anything else changed meanwhile.
            claim = await self._client.update(replace(claim, status=plan.status), subresource="status")
        for step in plan.steps:
            if step is Step.DROP_FINALIZER:
                left = tuple(name for name in claim.metadata.finalizers if name != FINALIZER)
                claim = await self._client.update(replace(claim, metadata=replace(claim.metadata, finalizers=left)))
            else:
                await self._delete(claim)

    async def _is_gone(self, claim: ResourceClaim, name: str, uid: str) -> bool:
        """Whether a pod needs the claim no more. Of a pod that we never saw the server must say so (4381-136)."""
        if self._memory.is_gone(uid):
            return True
        pod = self._pods.get(claim.metadata.namespace, name)
        if pod is None or pod.metadata.uid != uid:  # it may have taken the place of the one that we know
            pod = await self._find_pod(claim.metadata.namespace, name)
        return pod is None or pod.metadata.uid != uid or is_done(pod)

    async def _delete(self, claim: ResourceClaim) -> None:
        options = DeleteOptions(preconditions=Preconditions(uid=claim.metadata.uid))
        try:
            await self._client.delete(CLAIMS, claim.metadata.namespace, claim.metadata.name, options)
        except ApiError as error:
            if error.code != 404:
                raise


def _claim_names(pod: Pod) -> Iterator[tuple[str, str]]:
    """The claims that a pod uses, however it came by them."""
    namespace = pod.metadata.namespace
    for entry in pod.spec.resource_claims:
        if entry.resource_claim_name:
            yield namespace, entry.resource_claim_name
    for status in pod.status.resource_claim_statuses:
        if status.resource_claim_name:
            yield namespace, status.resource_claim_name
    extended = pod.status.extended_resource_claim_status
    if extended is not None:
        yield namespace, extended.resource_claim_name


def _template_names(pod: Pod) -> Iterator[tuple[str, str]]:
    for entry in pod.spec.resource_claims:
        if entry.resource_claim_template_name:
            yield pod.metadata.namespace, entry.resource_claim_template_name


def _owning_pods(claim: ResourceClaim) -> Iterator[str]:
    for owner in claim.metadata.owner_references:
        if owner.controller and owner.kind == "Pod" and owner.api_version == "v1":
            yield owner.uid
