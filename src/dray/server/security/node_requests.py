"""Certificates and tokens that a node asks for: in its own name, or for pods that run on it and want them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dray.api.generated.authentication import TokenRequest
from dray.api.generated.certificates import PodCertificateRequest
from dray.api.generated.core import PersistentVolume, PersistentVolumeClaim, Pod, Volume
from dray.api.generated.storage import CSIDriver
from dray.api.pods import MIRROR_ANNOTATION
from dray.server.security.authorization import Attributes
from dray.server.security.certificate_subjects import UnreadableRequest, common_name, read_request
from dray.server.security.identity import NODE_PREFIX
from dray.server.security.tokens import ObjectLookup

May = Callable[[Attributes], bool]
"""Whether the roles of the identity in question allow something."""

_NODE_SIGNERS = ("kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet")
_CERTIFICATES = "certificates.k8s.io"
_AUDIENCE_VERB = "request-serviceaccounts-token-audience"
_SIGNER_VERB = "request-serviceaccounts-podcertificate-signer"


def check_certificate_request(node: str, request: Any) -> str | None:
    """Why a node may not create this CertificateSigningRequest; None if it may."""
    if request is None or request.spec.signer_name not in _NODE_SIGNERS:
        return None
    try:
        csr = read_request(request.spec.request)
    except UnreadableRequest as error:
        return str(error)
    wanted, asked = f"{NODE_PREFIX}{node}", common_name(csr)
    return None if asked == wanted else f'can only create a node CSR with CN={wanted}, not "{asked}"'


def check_token_request(
    node: str, namespace: str, account: str, request: TokenRequest, lookup: ObjectLookup, *, may: May
) -> str | None:
    """Why a node may not have this token; None if it may.

    It gets tokens for the pods that run on it, bound to them, for the audiences that they mount tokens for. Others need
    the verb of Kubernetes for that on the audience, by name of the ServiceAccount.
    """
    bound = request.spec.bound_object_ref
    if bound is None or bound.api_version != "v1" or bound.kind != "Pod" or not bound.name or not bound.uid:
        return "node requested token not bound to a pod by name and uid"
    pod = lookup("pods", namespace, bound.name)
    if not isinstance(pod, Pod) or pod.metadata.uid != bound.uid:
        return f'node requested token bound to pod "{bound.name}", which is not there with uid {bound.uid}'
    if pod.spec.node_name != node:
        return "node requested token bound to a pod scheduled on a different node"
    if len(request.spec.audiences) > 1:
        return "node may only request 0 or 1 audiences"
    audience = next(iter(request.spec.audiences), "")
    asked = Attributes(_AUDIENCE_VERB, "", audience, "", namespace, account)
    if audience in _audiences(pod, lookup) or (audience and may(asked)):
        return None
    return f'pod "{bound.name}" mounts no token for audience "{audience}"'


def check_pod_certificate_request(
    node: str, request: PodCertificateRequest, lookup: ObjectLookup, *, may: May
) -> str | None:
    """Why a node may not create this PodCertificateRequest; None if it may. Signers believe what it says."""
    spec, namespace = request.spec, request.metadata.namespace
    if spec.node_name != node:
        return f'PodCertificateRequest names node "{spec.node_name}", which is not the requesting node "{node}"'
    for resource, name, uid in (
        ("nodes", spec.node_name, spec.node_uid),
        ("pods", spec.pod_name, spec.pod_uid),
        ("serviceaccounts", spec.service_account_name, spec.service_account_uid),
    ):
        found = lookup(resource, "" if resource == "nodes" else namespace, name)
        if found is None or found.metadata.uid != uid:
            return f'PodCertificateRequest names {resource} "{name}", which is not there with uid {uid}'
    pod = lookup("pods", namespace, spec.pod_name)
    if not isinstance(pod, Pod) or pod.spec.node_name != node or MIRROR_ANNOTATION in pod.metadata.annotations:
        return f'pod "{spec.pod_name}" is a mirror pod, or does not run on node "{node}"'
    if pod.spec.service_account_name != spec.service_account_name:
        return f'pod "{spec.pod_name}" does not run as ServiceAccount "{spec.service_account_name}"'
    signer = spec.signer_name.replace("/", ":")  # which roles can name
    asked = Attributes(_SIGNER_VERB, _CERTIFICATES, signer, "", namespace, spec.service_account_name)
    if spec.signer_name in _signers(pod) or may(asked):
        return None
    return f'pod "{spec.pod_name}" mounts no certificate of signer "{spec.signer_name}"'


def _audiences(pod: Pod, lookup: ObjectLookup) -> Iterator[str]:
    """For whom a pod mounts tokens, itself or through drivers of its volumes; empty for the API server."""
    for volume in pod.spec.volumes:
        for source in volume.projected.sources if volume.projected is not None else ():
            if source.service_account_token is not None:
                yield source.service_account_token.audience
        driver = lookup("csidrivers.storage.k8s.io", "", _volume_driver(volume, pod, lookup))
        if isinstance(driver, CSIDriver):
            yield from (each.audience for each in driver.spec.token_requests)


def _volume_driver(volume: Volume, pod: Pod, lookup: ObjectLookup) -> str:
    """The CSI driver behind a volume; empty if there is none."""
    if volume.csi is not None:
        return volume.csi.driver
    name = f"{pod.metadata.name}-{volume.name}" if volume.ephemeral is not None else ""
    if volume.persistent_volume_claim is not None:
        name = volume.persistent_volume_claim.claim_name
    claim = lookup("persistentvolumeclaims", pod.metadata.namespace, name) if name else None
    if not isinstance(claim, PersistentVolumeClaim):
        return ""
    found = lookup("persistentvolumes", "", claim.spec.volume_name)
    return found.spec.csi.driver if isinstance(found, PersistentVolume) and found.spec.csi is not None else ""


def _signers(pod: Pod) -> Iterator[str]:
    for volume in pod.spec.volumes:
        for source in volume.projected.sources if volume.projected is not None else ():
            if source.pod_certificate is not None:
                yield source.pod_certificate.signer_name
