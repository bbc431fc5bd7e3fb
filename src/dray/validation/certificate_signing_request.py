"""CertificateSigningRequest: what may be asked for, and how a decision and a certificate are written to it."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from cryptography import x509
from msgspec.structs import replace

from dray.api.field import duplicate, forbidden, invalid, not_supported, required, too_long
from dray.api.generated.certificates import CertificateSigningRequest, CertificateSigningRequestCondition
from dray.api.names import DNS_SUBDOMAIN_MAX_LENGTH
from dray.api.times import Time
from dray.validation import check, names
from dray.validation.context import Context, Errors
from dray.validation.metadata import NameRule
from dray.validation.rules import Rules

APPROVED, DENIED, FAILED = "Approved", "Denied", "Failed"
DECISIONS: Final = (APPROVED, DENIED)
LONGEST_REQUEST: Final = 64 * 1024
"""In base64. Whoever approves and signs reads it on the event loop; ten thousand names are nobody's."""
SHORTEST_SECONDS: Final = 600
LEGACY_SIGNER: Final = "kubernetes.io/legacy-unknown"
USAGES: Final = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip
_CONDITIONS: Final = "status.conditions"
_CERTIFICATE: Final = "status.certificate"
_BLOCK = re.compile(rb"-----BEGIN ([^-\n]+)-----\n(.*?)-----END \1-----", re.DOTALL)
_ANY_NAME: Final = NameRule(lambda _value: (), None)


def read_pem(text: str) -> bytes:
    """What is in a field that holds PEM, in base64. Raises ValueError."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


def dated(
    new: tuple[CertificateSigningRequestCondition, ...], old: CertificateSigningRequest, now: Time
) -> tuple[CertificateSigningRequestCondition, ...]:
    """The conditions with the times that nobody has given."""
    before = {(one.type, one.status): one.last_transition_time for one in old.status.conditions}
    return tuple(
        replace(
            one,
            last_update_time=one.last_update_time or now,
            last_transition_time=one.last_transition_time or before.get((one.type, one.status)) or now,
        )
        for one in new
    )


def check_conditions(
    errors: Errors, new: CertificateSigningRequest, old: CertificateSigningRequest, *, decides: bool
) -> None:
    """The conditions of an update; only one that `decides` may add or change Approved and Denied."""
    earlier: set[str] = set()
    for index, one in enumerate(new.status.conditions):
        path = f"{_CONDITIONS}[{index}]"
        if not one.type:
            errors.append(required(f"{path}.type"))
        allowed = ("True",) if one.type in (*DECISIONS, FAILED) else ("False", "True", "Unknown")
        check.required_one_of(errors, f"{path}.status", one.status, allowed)
        if one.type in earlier:
            errors.append(duplicate(f"{path}.type", one.type))
        if one.type in DECISIONS and set(DECISIONS) - {one.type} <= earlier:
            errors.append(invalid(_CONDITIONS, one.type, "Approved and Denied conditions are mutually exclusive"))
        earlier.add(one.type)
    for kind in (*DECISIONS, FAILED):
        was, now = _of_type(old, kind), _of_type(new, kind)
        if len(now) < len(was):
            errors.append(forbidden(_CONDITIONS, f'updates may not remove a condition of type "{kind}"'))
        elif kind == FAILED or decides:
            continue
        elif len(now) > len(was):
            errors.append(forbidden(_CONDITIONS, f'updates may not add a condition of type "{kind}"'))
        elif now != was:
            errors.append(forbidden(_CONDITIONS, f'updates may not modify a condition of type "{kind}"'))


def _of_type(request: CertificateSigningRequest, kind: str) -> list[CertificateSigningRequestCondition]:
    return [one for one in request.status.conditions if one.type == kind]


def _check(
    errors: Errors, new: CertificateSigningRequest, old: CertificateSigningRequest | None, _ctx: Context
) -> None:
    if old is not None:
        return  # what was asked for stays
    spec = new.spec
    if len(spec.request) > LONGEST_REQUEST:
        errors.append(too_long("spec.request", LONGEST_REQUEST))
    elif why := _request_problem(spec.request):
        errors.append(invalid("spec.request", spec.request, why))
    if not spec.usages:
        errors.append(required("spec.usages"))
    for index, usage in enumerate(spec.usages):
        if usage not in USAGES:
            errors.append(not_supported(f"spec.usages[{index}]", usage, USAGES))
    check.unique(errors, "spec.usages", spec.usages)
    if spec.signer_name == LEGACY_SIGNER:
        why = "the legacy signerName is not allowed via this API version"
        errors.append(invalid("spec.signerName", spec.signer_name, why))
    else:
        _check_signer(errors, spec.signer_name)
    seconds = spec.expiration_seconds
    if seconds is not None and seconds < SHORTEST_SECONDS:
        why = f"may not specify a duration less than {SHORTEST_SECONDS} seconds (10 minutes)"
        errors.append(invalid("spec.expirationSeconds", seconds, why))


def _request_problem(text: str) -> str:
    try:
        data = read_pem(text)
        found = _BLOCK.search(data)
        if found is None or found[1] != b"CERTIFICATE REQUEST":
            return "PEM block type must be CERTIFICATE REQUEST"
        if not x509.load_pem_x509_csr(found[0]).is_signature_valid:
            return "the request is not signed with its own key"
    except ValueError as error:
        return str(error)
    return ""


def _check_signer(errors: Errors, signer: str) -> None:
    """A domain and a path, such as `example.com/signer`."""
    path = "spec.signerName"
    if not signer:
        errors.append(required(path))
        return
    domain, slash, rest = signer.partition("/")
    if not slash or "/" in rest:
        why = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        errors.append(invalid(path, signer, why))
        return
    if len(domain) > DNS_SUBDOMAIN_MAX_LENGTH:
        errors.append(too_long(path, DNS_SUBDOMAIN_MAX_LENGTH))
    _check_labels(errors, path, domain, names.dns_label)
    if "." not in domain:
        errors.append(invalid(path, domain, "should be a domain with at least two segments separated by dots"))
    _check_labels(errors, path, rest, names.dns_subdomain)


def _check_labels(errors: Errors, path: str, value: str, rule: names.Rule) -> None:
    for label in value.split("."):
        problems = rule(label)
        if problems:
            errors.extend(invalid(path, value, f'validating label "{label}": {problem}') for problem in problems)
            return


def _change_status(
    new: CertificateSigningRequest, old: CertificateSigningRequest, ctx: Context
) -> CertificateSigningRequest:
    """Decisions stay as they are stored, unless their number differs, which is refused."""
    kept = list(new.status.conditions)
    for kind in DECISIONS:
        was = _of_type(old, kind)
        places = [index for index, one in enumerate(kept) if one.type == kind]
        if len(places) == len(was):
            for index, one in zip(places, was, strict=True):
                kept[index] = one
    return replace(new, status=replace(new.status, conditions=dated(tuple(kept), old, ctx.now)))


def _check_status(
    errors: Errors, new: CertificateSigningRequest, old: CertificateSigningRequest, _ctx: Context
) -> None:
    check_conditions(errors, new, old, decides=False)
    if new.status.certificate == old.status.certificate:
        return
    if old.status.certificate:
        errors.append(forbidden(_CERTIFICATE, "updates may not modify existing certificate content"))
    elif why := _certificate_problem(new.status.certificate):
        errors.append(invalid(_CERTIFICATE, "<certificate data>", why))


def _certificate_problem(text: str) -> str:
    try:
        blocks = list(_BLOCK.finditer(read_pem(text)))
        if not blocks:
            return "must contain at least one CERTIFICATE PEM block"
        for block in blocks:
            if block[1] != b"CERTIFICATE":
                return f'only CERTIFICATE PEM blocks are allowed, found "{block[1].decode(errors="replace")}"'
            if b":" in block[2]:
                return "no PEM block headers are permitted"
            x509.load_pem_x509_certificate(block[0])
    except ValueError as error:
        return str(error)
    return ""


RULES: Final = {
    "CertificateSigningRequest": Rules(
        namespaced=False,
        name=_ANY_NAME,
        has_status=True,
        status_guards_metadata=False,
        check=_check,
        change_status=_change_status,
        check_status=_check_status,
    )
}
