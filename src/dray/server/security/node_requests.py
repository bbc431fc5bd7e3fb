"""Certificates that a node asks for: only in its own name."""

from __future__ import annotations

from typing import Any

from cryptography.x509.oid import NameOID

from dray.server.security.certificate_subjects import UnreadableRequest, read_request
from dray.server.security.identity import NODE_PREFIX

_NODE_SIGNERS = ("kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet")


def check_certificate_request(node: str, request: Any) -> str | None:
    """Why a node may not create this CertificateSigningRequest; None if it may."""
    if request is None or request.spec.signer_name not in _NODE_SIGNERS:
        return None
    try:
        csr = read_request(request.spec.request)
    except UnreadableRequest as error:
        return str(error)
    names = csr.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    wanted = f"{NODE_PREFIX}{node}"
    for name in names:
        if str(name.value).startswith(NODE_PREFIX) and name.value != wanted:
            return f'can only create a node CSR with CN={wanted}, not "{name.value!s}"'
    return None


def check_pod_certificate_request(node: str, request: Any) -> str | None:
    """Why a node may not create this PodCertificateRequest; None if it may."""
    if request is not None and request.spec.node_name != node:
        return f'PodCertificateRequest names node "{request.spec.node_name}", which is not the requesting node "{node}"'
    return None
