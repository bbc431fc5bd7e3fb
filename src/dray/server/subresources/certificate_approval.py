"""certificatesigningrequests/approval: somebody decides about a request for a certificate."""

from __future__ import annotations

from msgspec.structs import replace

from dray.api.field import FieldError, forbidden, invalid
from dray.api.generated.certificates import CertificateSigningRequest, CertificateSigningRequestCondition
from dray.server.admission.certificate_requests import decisions
from dray.validation import Context

PATH = "status.conditions"


def decided(
    wanted: CertificateSigningRequest, old: CertificateSigningRequest, context: Context
) -> CertificateSigningRequest:
    """The stored request with the conditions of the wanted one, its labels and annotations, and nothing else of it."""
    now = context.now
    before = {condition.type: condition for condition in old.status.conditions}

    def dated(condition: CertificateSigningRequestCondition) -> CertificateSigningRequestCondition:
        was = before.get(condition.type)
        changed = was.last_transition_time if was is not None and was.status == condition.status else now
        return replace(
            condition,
            last_update_time=condition.last_update_time or now,
            last_transition_time=condition.last_transition_time or changed,
        )

    conditions = tuple(dated(condition) for condition in wanted.status.conditions)
    given = wanted.metadata
    meta = replace(old.metadata, labels=given.labels, annotations=given.annotations)
    return replace(old, metadata=meta, status=replace(old.status, conditions=conditions))


def problems(new: CertificateSigningRequest, old: CertificateSigningRequest, _context: Context) -> list[FieldError]:
    """What is wrong with a decision: there is one, and it stays."""
    now, before = decisions(new), decisions(old)
    found = [forbidden(PATH, f"the decision {name} cannot be taken back") for name in before if name not in now]
    if len(now) > 1:
        found.append(invalid(PATH, sorted(now), "a request is either approved or denied"))
    found += [
        invalid(f"{PATH}[{index}].status", condition.status, "must be True")
        for index, condition in enumerate(new.status.conditions)
        if condition.type in now and condition.status != "True"
    ]
    return found
