"""Certificates of the built-in signers: approved for nodes that may, signed when approved; old requests are removed.

What kube-controller-manager does, as the server itself: the key of the authority does not leave it.
"""

from __future__ import annotations

import base64
import datetime as dt
import logging

from msgspec.structs import replace

from dray.api.generated.certificates import CertificateSigningRequest, CertificateSigningRequestCondition
from dray.api.meta import DeleteOptions, Preconditions
from dray.api.registry import by_kind
from dray.process.clock import Clock
from dray.server.engine import Call, Engine
from dray.server.errors import ApiError
from dray.server.indexes.stored_roles import StoredRoles
from dray.server.routes import Route
from dray.server.security import certificate_signers as signers
from dray.server.security.authorization import Attributes
from dray.server.security.certificate_subjects import UnreadableRequest, check_subject, common_name, read_request
from dray.server.security.certificates import Authority, CertificateError
from dray.server.security.identity import Identity
from dray.server.upkeep.first_objects import SYSTEM
from dray.server.upkeep.following import follow_until_closed
from dray.server.verbs import deletes, writes

REQUESTS = by_kind("certificates.k8s.io/v1", "CertificateSigningRequest")
DECIDED_SECONDS = 3600.0
WAITING_SECONDS = 24 * 3600.0
SWEEP_SECONDS = 600.0
_RIGHTS = (
    ("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview."),
    ("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview."),
)

log = logging.getLogger(__name__)


async def keep_signed(engine: Engine, authority: Authority, roles: StoredRoles, clock: Clock) -> None:
    """Looks at every request when it changes, and at all of them now and then, until the store is closed."""
    await follow_until_closed(_Signing(engine, authority, roles, clock).follow, clock)


class _Signing:
    def __init__(self, engine: Engine, authority: Authority, roles: StoredRoles, clock: Clock) -> None:
        self._engine = engine
        self._authority = authority
        self._roles = roles
        self._clock = clock

    async def follow(self) -> None:
        """Raises StoreError."""
        store = self._engine.store
        with store.watch(REQUESTS.resource, store.revision) as watcher:
            while True:
                for record in store.list(REQUESTS.resource).records:
                    await self._look_at(record.key.name)
                end = self._clock.monotonic() + SWEEP_SECONDS
                while (left := end - self._clock.monotonic()) > 0:
                    for event in await watcher.next(left):
                        await self._look_at(event.record.key.name)

    async def _look_at(self, name: str) -> None:
        found = self._engine.get(REQUESTS.resource, "", name)
        if not isinstance(found, CertificateSigningRequest):
            return
        try:
            if self._is_old(found):
                options = DeleteOptions(preconditions=Preconditions(uid=found.metadata.uid))
                await deletes.delete(self._engine, self._call("delete", name, ""), options)
            elif found.spec.signer_name in signers.SIGNERS and not found.status.certificate:
                await self._decide_and_sign(found)
        except ApiError as error:
            if error.code not in (404, 409):  # somebody else was faster: the next change brings us back
                log.warning("CertificateSigningRequest %s: %s", name, error)

    def _is_old(self, found: CertificateSigningRequest) -> bool:
        times = [condition.last_update_time for condition in found.status.conditions]
        since = max((time for time in times if time is not None), default=None) or found.metadata.creation_timestamp
        kept = DECIDED_SECONDS if found.status.conditions else WAITING_SECONDS
        return since is not None and self._clock.now() - since.datetime().timestamp() > kept

    async def _decide_and_sign(self, found: CertificateSigningRequest) -> None:
        decided = {condition.type for condition in found.status.conditions}
        if decided & {"Denied", "Failed"}:
            return
        if "Approved" not in decided:
            await self._approve(found)
            return
        why, certificate = self._signed(found)
        if why:
            failed = _condition("Failed", "SignerValidationFailure", why)
            failed = replace(failed, last_update_time=self._engine.clock(), last_transition_time=self._engine.clock())
            status = replace(found.status, conditions=(*found.status.conditions, failed))
        else:
            status = replace(found.status, certificate=certificate)
        await self._write(replace(found, status=status), "status")

    async def _approve(self, found: CertificateSigningRequest) -> None:
        """A node that may ask gets its certificate without anybody looking."""
        try:
            request = read_request(found.spec.request)
        except UnreadableRequest:
            return
        spec = found.spec
        if not signers.is_kubelet_client(spec, request):
            return
        author = Identity(spec.username, spec.groups, uid=spec.uid, extra=spec.extra)
        for right, message in _RIGHTS:
            if right == "selfnodeclient" and spec.username != common_name(request):
                continue
            asked = Attributes("create", REQUESTS.group, REQUESTS.plural, right)
            if self._roles.allowed(author, asked).allowed:
                approved = _condition("Approved", "AutoApproved", message)
                status = replace(found.status, conditions=(*found.status.conditions, approved))
                await self._write(replace(found, status=status), "approval")
                return

    def _signed(self, found: CertificateSigningRequest) -> tuple[str, str]:
        """Why there is no certificate, or the certificate, as the API writes bytes."""
        spec = found.spec
        try:
            request = read_request(spec.request)
            why = signers.refusal(spec, request) or check_subject(spec.signer_name, spec.request) or ""
            if why:
                return why, ""
            now = dt.datetime.fromtimestamp(self._clock.now(), dt.UTC)
            made = self._authority.sign_request(request, spec.usages, now, signers.lifetime(spec))
        except (UnreadableRequest, CertificateError) as error:
            return str(error), ""
        return "", base64.b64encode(made).decode()

    async def _write(self, wanted: CertificateSigningRequest, part: str) -> None:
        call = self._call("update", wanted.metadata.name, part)
        expected = wanted.metadata.resource_version
        await writes.update(self._engine, call, lambda _: wanted, expected=expected, track=False)

    def _call(self, verb: str, name: str, part: str) -> Call:
        route = Route(verb, REQUESTS, "v1", "", name, part)
        return Call(route, SYSTEM, self._engine.clock(), warnings=[])


def _condition(kind: str, reason: str, message: str) -> CertificateSigningRequestCondition:
    return CertificateSigningRequestCondition(type=kind, status="True", reason=reason, message=message)
