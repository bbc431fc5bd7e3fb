"""The signers that Kubernetes has built in: what each signs, for whom, and for how long. Pure.

| Signer | For | Approved |
|---|---|---|
| `kubernetes.io/kube-apiserver-client` | clients of the API server, but not `system:masters` | by people |
| `kubernetes.io/kube-apiserver-client-kubelet` | nodes, as clients | by itself, for whoever has the right to |
| `kubernetes.io/kubelet-serving` | nodes, as servers | by people |
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from dray.api.generated.certificates import CertificateSigningRequestSpec
from dray.server.security.certificate_subjects import common_name
from dray.server.security.identity import NODE_PREFIX, NODES

CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING = "kubernetes.io/kubelet-serving"
SIGNERS = (CLIENT, KUBELET_CLIENT, KUBELET_SERVING)

LONGEST = dt.timedelta(days=365)
SHORTEST = dt.timedelta(minutes=10)

SIGNATURE, ENCIPHERMENT = "digital signature", "key encipherment"
CLIENT_AUTH, SERVER_AUTH = "client auth", "server auth"
_PURPOSES = {CLIENT_AUTH: ExtendedKeyUsageOID.CLIENT_AUTH, SERVER_AUTH: ExtendedKeyUsageOID.SERVER_AUTH}


def refusal(spec: CertificateSigningRequestSpec, request: x509.CertificateSigningRequest) -> str:
    """Why a signer does not sign a request, in the words of Kubernetes; empty if it does."""
    usages = set(spec.usages)
    if not request.is_signature_valid:
        return "the request is not signed with its own key"
    if spec.signer_name == CLIENT:
        other = sorted(usages - {SIGNATURE, ENCIPHERMENT, CLIENT_AUTH})
        if other:
            return f"invalid usage for client certificate: {other[0]}"
        return "" if CLIENT_AUTH in usages else f"missing required usage for client certificate: {CLIENT_AUTH}"
    return _node_refusal(request, usages, serves=spec.signer_name == KUBELET_SERVING)


def _node_refusal(request: x509.CertificateSigningRequest, usages: set[str], *, serves: bool) -> str:
    if organisations(request) != [NODES]:
        return f"subject organization is not {NODES}"
    why = _names_refusal(request, serves=serves)
    if why:
        return why
    if not common_name(request).startswith(NODE_PREFIX):
        return f"subject common name does not begin with {NODE_PREFIX}"
    needed = {SIGNATURE, SERVER_AUTH if serves else CLIENT_AUTH}
    if usages not in (needed, needed | {ENCIPHERMENT}):
        return f"usages did not match {sorted(needed | {ENCIPHERMENT})}"
    return ""


def _names_refusal(request: x509.CertificateSigningRequest, *, serves: bool) -> str:
    """A server is reached by names and addresses, a client by none; nodes have nothing else."""
    foreign: list[tuple[str, Any]] = [("Email", x509.RFC822Name), ("URI", x509.UniformResourceIdentifier)]
    if not serves:
        foreign = [("DNS", x509.DNSName), foreign[0], ("IP", x509.IPAddress), foreign[1]]
    names = alternative_names(request)
    if serves and not any(isinstance(name, x509.DNSName | x509.IPAddress) for name in names):
        return "DNS or IP subjectAltName is required"
    for word, kind in foreign:
        if any(isinstance(name, kind) for name in names):
            return f"{word} subjectAltNames are not allowed"
    return ""


def is_kubelet_client(spec: CertificateSigningRequestSpec, request: x509.CertificateSigningRequest) -> bool:
    """Whether a node asks for its certificate as a client."""
    return spec.signer_name == KUBELET_CLIENT and not refusal(spec, request)


def lifetime(spec: CertificateSigningRequestSpec) -> dt.timedelta:
    """How long the certificate is valid: as asked for, within bounds."""
    if spec.expiration_seconds is None:
        return LONGEST
    return max(SHORTEST, min(LONGEST, dt.timedelta(seconds=spec.expiration_seconds)))


def purposes(usages: Iterable[str]) -> list[x509.ObjectIdentifier]:
    """The extended key usages among usages."""
    return [_PURPOSES[usage] for usage in usages if usage in _PURPOSES]


def organisations(request: x509.CertificateSigningRequest) -> list[str | bytes]:
    """The groups that a request names."""
    return [each.value for each in request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]


def alternative_names(request: x509.CertificateSigningRequest) -> list[x509.GeneralName]:
    """The names in the extension for them."""
    try:
        return list(request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return []
