"""certificatesigningrequests/approval: somebody decides about a request for a certificate."""

from __future__ import annotations

from msgspec.structs import replace

from dray.api.field import FieldError
from dray.api.generated.certificates import CertificateSigningRequest
from dray.validation import Context
from dray.validation.certificate_signing_request import check_conditions, dated


def decided(
    wanted: CertificateSigningRequest, old: CertificateSigningRequest, context: Context
) -> CertificateSigningRequest:
    """The stored request with the conditions of the wanted one, its labels and annotations, and nothing else of it."""
    conditions = dated(wanted.status.conditions, old, context.now)
    given = wanted.metadata
    meta = replace(old.metadata, labels=given.labels, annotations=given.annotations)
    return replace(old, metadata=meta, status=replace(old.status, conditions=conditions))


def problems(new: CertificateSigningRequest, old: CertificateSigningRequest, _context: Context) -> list[FieldError]:
    """What is wrong with a decision: there is one, and it stays."""
    found: list[FieldError] = []
    check_conditions(found, new, old, decides=True)
    return found
