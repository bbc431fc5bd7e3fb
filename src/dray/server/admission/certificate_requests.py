"""Requests for certificates: whose they are, who approves them, and who signs them.

Approvers and signers (such as those of kube-controller-manager) trust what a request says of its author. So the server
writes that, and nobody can change it; approving and signing are rights by name of the signer.
"""

from __future__ import annotations

from msgspec.structs import replace

from dray.api.generated.certificates import CertificateSigningRequest, CertificateSigningRequestStatus
from dray.api.meta import Object
from dray.server import errors
from dray.server.admission.chain import Plugin
from dray.server.engine import Call, Engine
from dray.server.indexes.stored_roles import StoredRoles
from dray.server.security.authorization import Attributes
from dray.server.security.certificate_subjects import check_subject

GROUP = "certificates.k8s.io"


class CertificateRequests(Plugin):
    """Keeps author, decision and certificate of a request apart: each has its own way in, and its own right."""

    kinds = frozenset({"CertificateSigningRequest"})

    def __init__(self, roles: StoredRoles) -> None:
        self._roles = roles

    def mutate(self, engine: Engine, call: Call, new: Object, old: Object | None) -> Object:
        """A new request is the caller's; one that is there keeps its content."""
        if not isinstance(new, CertificateSigningRequest):
            return new
        if isinstance(old, CertificateSigningRequest):
            return replace(new, spec=old.spec)
        caller = call.caller
        spec = replace(new.spec, username=caller.user, uid=caller.uid, groups=caller.groups, extra=caller.extra)
        return replace(new, spec=spec, status=CertificateSigningRequestStatus())

    def check(self, engine: Engine, call: Call, new: Object | None, old: Object | None) -> None:
        """Whether the caller may ask for this certificate, or approve or sign for this signer."""
        if not isinstance(new, CertificateSigningRequest):
            return
        if not isinstance(old, CertificateSigningRequest):
            why = check_subject(new.spec.signer_name, new.spec.request)
            if why is not None:
                raise errors.forbidden(call.route.kind, new.metadata.name, why)
            return
        if call.route.subresource == "approval":
            self._need("approve", call, new)
        elif new.status.certificate != old.status.certificate:
            self._need("sign", call, new)

    def _need(self, verb: str, call: Call, request: CertificateSigningRequest) -> None:
        signer = request.spec.signer_name
        for name in (signer, f"{signer.partition('/')[0]}/*"):
            if self._roles.allowed(call.caller, Attributes(verb, GROUP, "signers", "", "", name)).allowed:
                return
        why = f"user {call.caller.user!r} may not {verb} for the signer {signer!r} ({verb} signers in {GROUP})"
        raise errors.forbidden(call.route.kind, request.metadata.name, why)
