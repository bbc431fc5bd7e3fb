"""In whose name a certificate is asked for, and names that nobody gets one for."""

from __future__ import annotations

import base64
import binascii

from cryptography import x509
from cryptography.x509.oid import NameOID

from dray.server.security.identity import MASTERS

CLIENT_SIGNERS = ("kubernetes.io/kube-apiserver-client", "kubernetes.io/kube-apiserver-client-kubelet")
"""The signers of certificates that this server believes a client."""


class UnreadableRequest(ValueError):
    """Not a certificate request in PEM."""


def read_request(request: str) -> x509.CertificateSigningRequest:
    """The request in `spec.request`. Raises UnreadableRequest."""
    try:
        return x509.load_pem_x509_csr(base64.b64decode(request, validate=True))
    except (ValueError, binascii.Error):
        raise UnreadableRequest("spec.request is not a PEM certificate request") from None


def common_name(request: x509.CertificateSigningRequest) -> str:
    """The user that a request names; empty if it names none, or more than one."""
    found = request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[0].value) if len(found) == 1 else ""


def check_subject(signer: str, request: str) -> str | None:
    """Why nobody may ask a signer for this certificate; None if one may.

    `system:masters` may do everything, whatever the roles say, and a certificate cannot be taken back. One that names
    two users would be approved as one of them and believed as the other.
    """
    if signer not in CLIENT_SIGNERS:
        return None
    wanted = read_request(request)
    subject = wanted.subject
    if subject.get_attributes_for_oid(NameOID.COMMON_NAME) and not common_name(wanted):
        return "a certificate names one user, but the subject of the request has more than one common name"
    if any(each.value == MASTERS for each in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)):
        return f"use of {signer} signer with {MASTERS} group is not allowed"
    return None
