"""A node named n1, and what it may write."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from msgspec.structs import replace

from dray.api.binary import Base64
from dray.api.generated import storage
from dray.api.generated.authentication import BoundObjectReference, TokenRequest, TokenRequestSpec
from dray.api.generated.certificates import (
    CertificateSigningRequest,
    CertificateSigningRequestSpec,
    PodCertificateRequest,
    PodCertificateRequestSpec,
)
from dray.api.generated.coordination import Lease
from dray.api.generated.core import (
    CSIPersistentVolumeSource,
    CSIVolumeSource,
    Node,
    NodeConfigSource,
    NodeSpec,
    NodeStatus,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeClaimVolumeSource,
    PersistentVolumeSpec,
    Pod,
    PodCertificateProjection,
    PodResourceClaimStatus,
    PodSpec,
    PodStatus,
    ProjectedVolumeSource,
    SecretVolumeSource,
    ServiceAccount,
    ServiceAccountTokenProjection,
    Taint,
    Volume,
    VolumeProjection,
)
from dray.api.generated.policy import Eviction
from dray.api.generated.storage import CSIDriver, CSIDriverSpec, CSINode
from dray.api.meta import Object, ObjectMeta, OwnerReference
from dray.api.quantity import Quantity
from dray.api.resource import ResourceClaim, ResourceSlice, ResourceSliceSpec
from dray.server.security import node_restriction
from dray.server.security.authorization import Attributes
from dray.server.security.identity import authenticated
from security_world import Objects

N1 = authenticated("system:node:n1", ("system:nodes",))
RESOURCE = "resource.k8s.io"


@pytest.fixture(autouse=True)
def stored(objects: Objects) -> None:
    objects.add("nodes", Node(metadata=ObjectMeta(name="n1", uid="n1-uid")))
    objects.add("pods", pod("mine", "n1"))
    objects.add("pods", pod("other", "n2"))


def pod(name: str, node: str, **status: Any) -> Pod:
    metadata = ObjectMeta(namespace="ns", name=name, uid=f"{name}-uid")
    return Pod(metadata=metadata, spec=PodSpec(node_name=node), status=PodStatus(**status))


def projected(**source: Any) -> Volume:
    return Volume(name="p", projected=ProjectedVolumeSource(sources=(VolumeProjection(**source),)))


def node(name: str = "n1", labels: dict[str, str] | None = None, **spec: Any) -> Node:
    return Node(metadata=ObjectMeta(name=name, labels=labels or {}), spec=NodeSpec(**spec))


def slice_of(node_name: str | None) -> ResourceSlice:
    return ResourceSlice(metadata=ObjectMeta(name="s"), spec=ResourceSliceSpec(driver="d", node_name=node_name))


def check_node_write(*arguments: Any, may: bool = False) -> str | None:
    """With no other right than that of being a node, or with all."""
    return node_restriction.check_node_write(*arguments, may=lambda _: may)


def asked(verb: str, resource: str, group: str = "", namespace: str = "", name: str = "") -> Attributes:
    resource, _, subresource = resource.partition("/")
    return Attributes(verb, group, resource, subresource, namespace, name)


def test_only_nodes_are_restricted(objects: Objects) -> None:
    create = asked("create", "resourceslices", RESOURCE)
    for identity in (authenticated("alice"), authenticated("system:node:n1"), authenticated("x", ("system:masters",))):
        assert check_node_write(identity, create, None, slice_of("n2"), objects, objects.slices) is None


@pytest.mark.parametrize("user", ["kubelet", "system:node:"])
def test_a_node_without_a_name_writes_nothing(objects: Objects, user: str) -> None:
    identity = authenticated(user, ("system:nodes",))
    denied = check_node_write(identity, asked("update", "nodes", name="n1"), node(), node(), objects, objects.slices)
    assert denied == f'could not determine node from user "{user}"'


@pytest.mark.req("4381-179", "SVS-63")
@pytest.mark.parametrize(
    ("verb", "old", "new", "allowed"),
    [
        ("create", None, slice_of("n1"), True),
        ("create", None, slice_of("n2"), False),
        ("create", None, slice_of(None), False),
        ("update", slice_of("n1"), slice_of("n1"), True),
        ("update", slice_of("n2"), slice_of("n2"), False),
        ("update", slice_of("n2"), slice_of("n1"), False),
        ("patch", slice_of("n1"), slice_of("n2"), False),
        ("patch", slice_of(None), slice_of("n1"), False),
        ("delete", slice_of("n1"), None, True),
        ("delete", slice_of("n2"), None, False),
        ("deletecollection", slice_of("n1"), None, True),
        ("deletecollection", slice_of(None), None, False),
    ],
)
def test_slices_of_its_own(objects: Objects, verb: str, old: Object | None, new: Object | None, allowed: bool) -> None:
    denied = check_node_write(N1, asked(verb, "resourceslices", RESOURCE), old, new, objects, objects.slices)
    assert (denied is None) is allowed
    if denied:
        assert denied.endswith("ResourceSlice with the same NodeName as the requesting node")


@pytest.mark.req("4381-178")
@pytest.mark.parametrize("resource", ["resourceclaims", "resourceclaims/status"])
@pytest.mark.parametrize("verb", ["create", "update", "patch", "delete", "deletecollection"])
def test_claims_are_read_only(objects: Objects, verb: str, resource: str) -> None:
    claim = ResourceClaim(metadata=ObjectMeta(namespace="ns", name="c"))
    denied = check_node_write(N1, asked(verb, resource, RESOURCE, "ns", "c"), claim, claim, objects, objects.slices)
    assert denied == 'node "n1" can only read ResourceClaims'


TAINTED = node(taints=(Taint(key="a", effect="NoSchedule"),))


@pytest.mark.parametrize(
    ("old", "new", "denied"),
    [
        (None, node(), None),
        (None, TAINTED, None),
        (TAINTED, TAINTED, None),
        (node(), replace(node(), status=NodeStatus(phase="x")), None),
        (None, node("n2"), 'node "n1" is not allowed to modify node "n2"'),
        (node("n2"), node("n2"), 'node "n1" is not allowed to modify node "n2"'),
        (node(), TAINTED, 'node "n1" is not allowed to modify taints'),
        (TAINTED, node(), 'node "n1" is not allowed to modify taints'),
        (node(), node(config_source=NodeConfigSource()), 'node "n1" is not allowed to set configSource'),
        (None, node(config_source=NodeConfigSource()), 'node "n1" is not allowed to set configSource'),
        (node(config_source=NodeConfigSource()), node(config_source=NodeConfigSource()), None),
        (
            node(),
            Node(metadata=ObjectMeta(name="n1", owner_references=(OwnerReference(name="x"),))),
            'node "n1" is not allowed to modify ownerReferences',
        ),
    ],
)
def test_its_own_node(objects: Objects, old: Node | None, new: Node, denied: str | None) -> None:
    verb = "create" if old is None else "update"
    assert check_node_write(N1, asked(verb, "nodes"), old, new, objects, objects.slices) == denied


@pytest.mark.parametrize(
    ("label", "allowed"),
    [
        ("kubernetes.io/hostname", True),
        ("topology.kubernetes.io/zone", True),
        ("beta.kubernetes.io/os", True),
        ("node.kubernetes.io/instance-type", True),
        ("kubelet.kubernetes.io/anything", True),
        ("sub.node.kubernetes.io/anything", True),
        ("example.com/pool", True),
        ("pool", True),
        ("node-role.kubernetes.io/control-plane", False),
        ("kubernetes.io/other", False),
        ("k8s.io/other", False),
        ("apps.k8s.io/other", False),
        ("node-restriction.kubernetes.io/tenant", False),
        ("a.node-restriction.kubernetes.io/tenant", False),
    ],
)
def test_labels_that_would_draw_workloads(objects: Objects, label: str, allowed: bool) -> None:
    plain, labelled, changed = node(), node(labels={label: "a"}), node(labels={label: "b"})
    for old, new in ((None, labelled), (plain, labelled), (labelled, plain), (labelled, changed)):
        denied = check_node_write(N1, asked("patch", "nodes"), old, new, objects, objects.slices)
        assert denied == (None if allowed else f'node "n1" is not allowed to modify labels: {label}')
    assert check_node_write(N1, asked("patch", "nodes"), labelled, labelled, objects, objects.slices) is None


NAMED = (PodResourceClaimStatus(name="gpu", resource_claim_name="c"),)


@pytest.mark.parametrize(
    ("resource", "verb", "old", "new", "allowed"),
    [
        ("pods/status", "patch", pod("mine", "n1"), pod("mine", "n1", phase="Running"), True),
        ("pods/status", "patch", pod("other", "n2"), pod("other", "n2", phase="Failed"), False),
        ("pods/status", "patch", pod("other", ""), pod("other", "", phase="Failed"), False),
        ("pods/status", "update", pod("mine", "n1"), pod("mine", "n1", resource_claim_statuses=NAMED), False),
        ("pods/eviction", "create", pod("mine", "n1"), Eviction(), True),
        ("pods/eviction", "create", pod("other", "n2"), Eviction(), False),
        ("pods", "delete", pod("mine", "n1"), None, True),
        ("pods", "delete", pod("other", "n2"), None, False),
        ("pods", "update", pod("mine", "n1"), pod("mine", "n1"), False),
        ("pods", "create", None, pod("new", "n1"), False),
        ("pods/binding", "create", pod("mine", "n1"), None, False),
        ("pods/ephemeralcontainers", "patch", pod("mine", "n1"), pod("mine", "n1"), False),
    ],
)
def test_its_pods(
    objects: Objects, resource: str, verb: str, old: Object | None, new: Object | None, allowed: bool
) -> None:
    denied = check_node_write(N1, asked(verb, resource, "", "ns"), old, new, objects, objects.slices)
    assert (denied is None) is allowed


def test_labels_do_not_change_through_pod_status(objects: Objects) -> None:
    old = pod("mine", "n1")
    new = replace(old, metadata=replace(old.metadata, labels={"app": "x"}))
    denied = check_node_write(N1, asked("patch", "pods/status", "", "ns"), old, new, objects, objects.slices)
    assert denied == 'node "n1" cannot update labels through pod status'


OWNER = OwnerReference(api_version="v1", kind="Node", name="n1", uid="n1-uid", controller=True)


def mirror(owner: OwnerReference | None = OWNER, node_name: str = "n1", **spec: Any) -> Pod:
    annotations = {"kubernetes.io/config.mirror": "hash"}
    owners = (owner,) if owner is not None else ()
    metadata = ObjectMeta(namespace="ns", name="m", annotations=annotations, owner_references=owners)
    return Pod(metadata=metadata, spec=PodSpec(node_name=node_name, **spec))


@pytest.mark.parametrize(
    ("new", "allowed"),
    [
        (mirror(), True),
        (mirror(node_name="n2"), False),
        (mirror(None), False),
        (mirror(replace(OWNER, name="n2")), False),
        (mirror(replace(OWNER, kind="Pod")), False),
        (mirror(replace(OWNER, uid="other")), False),
        (mirror(replace(OWNER, controller=None)), False),
        (mirror(replace(OWNER, block_owner_deletion=True)), False),
        (mirror(service_account_name="admin"), False),
        (mirror(volumes=(Volume(name="v", secret=SecretVolumeSource(secret_name="s")),)), False),
    ],
)
def test_mirror_pods(objects: Objects, new: Pod, allowed: bool) -> None:
    denied = check_node_write(N1, asked("create", "pods", "", "ns"), None, new, objects, objects.slices)
    assert (denied is None) is allowed


@pytest.mark.parametrize(
    ("namespace", "name", "allowed"),
    [("kube-node-lease", "n1", True), ("kube-node-lease", "n2", False), ("kube-system", "n1", False)],
)
@pytest.mark.parametrize("verb", ["create", "update", "patch", "delete"])
def test_its_lease(objects: Objects, verb: str, namespace: str, name: str, allowed: bool) -> None:
    lease = Lease(metadata=ObjectMeta(namespace=namespace, name=name))
    old, new = (None, lease) if verb == "create" else (lease, None if verb == "delete" else lease)
    question = asked(verb, "leases", "coordination.k8s.io", namespace, "" if verb == "create" else name)
    assert (check_node_write(N1, question, old, new, objects, objects.slices) is None) is allowed


@pytest.mark.parametrize(("name", "allowed"), [("n1", True), ("n2", False)])
def test_its_csi_node(objects: Objects, name: str, allowed: bool) -> None:
    new = CSINode(metadata=ObjectMeta(name=name))
    denied = check_node_write(N1, asked("create", "csinodes", "storage.k8s.io"), None, new, objects, objects.slices)
    assert (denied is None) is allowed


def token_request(kind: str, name: str, uid: str, *audiences: str) -> TokenRequest:
    bound = BoundObjectReference(api_version="v1", kind=kind, name=name, uid=uid)
    return TokenRequest(spec=TokenRequestSpec(bound_object_ref=bound, audiences=audiences))


@pytest.mark.parametrize(
    ("request_", "allowed"),
    [
        (token_request("Pod", "mine", "mine-uid"), True),
        (token_request("Pod", "mine", "mine-uid", "vault"), True),
        (token_request("Pod", "mine", "mine-uid", "of-the-driver"), True),
        (token_request("Pod", "mine", "mine-uid", "behind-the-claim"), True),
        (token_request("Pod", "mine", "mine-uid", "bank"), False),
        (token_request("Pod", "mine", "mine-uid", "vault", "of-the-driver"), False),
        (token_request("Pod", "mine", ""), False),
        (token_request("Pod", "mine", "wrong"), False),
        (token_request("Pod", "other", "other-uid"), False),
        (token_request("Pod", "gone", "x"), False),
        (token_request("Node", "n1", "n1-uid"), False),
        (TokenRequest(), False),
    ],
)
def test_tokens_for_its_pods(objects: Objects, request_: TokenRequest, allowed: bool) -> None:
    volumes = (
        projected(service_account_token=ServiceAccountTokenProjection()),
        projected(service_account_token=ServiceAccountTokenProjection(audience="vault")),
        Volume(name="inline", csi=CSIVolumeSource(driver="inline.example.com")),
        Volume(name="disk", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name="v")),
    )
    mine = pod("mine", "n1")
    objects.add("pods", replace(mine, spec=replace(mine.spec, volumes=volumes)))
    objects.add("persistentvolumeclaims", volume_claim("volume"))
    behind = PersistentVolumeSpec(csi=CSIPersistentVolumeSource(driver="disk.example.com"))
    objects.add("persistentvolumes", PersistentVolume(metadata=ObjectMeta(name="volume"), spec=behind))
    for name, audience in (("inline.example.com", "of-the-driver"), ("disk.example.com", "behind-the-claim")):
        spec = CSIDriverSpec(token_requests=(storage.TokenRequest(audience=audience),))
        objects.add("csidrivers.storage.k8s.io", CSIDriver(metadata=ObjectMeta(name=name), spec=spec))
    question = asked("create", "serviceaccounts/token", "", "ns", "default")
    assert (check_node_write(N1, question, None, request_, objects, objects.slices) is None) is allowed


def test_tokens_for_other_audiences_are_a_right_of_their_own(objects: Objects) -> None:
    question = asked("create", "serviceaccounts/token", "", "ns", "default")
    for audiences, allowed in ((("bank",), True), ((), False), (("bank", "vault"), False)):
        request = token_request("Pod", "mine", "mine-uid", *audiences)
        assert (check_node_write(N1, question, None, request, objects, objects.slices, may=True) is None) is allowed


def volume_claim(size: str = "", **status: Any) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(
        metadata=ObjectMeta(namespace="ns", name="v"),
        spec=PersistentVolumeClaimSpec(volume_name=size),
        status=PersistentVolumeClaimStatus(**status),
    )


def test_volume_claims(objects: Objects) -> None:
    whole, status = (asked("update", f"persistentvolumeclaims{part}", "", "ns") for part in ("", "/status"))
    old, new = volume_claim(), volume_claim(capacity={"storage": Quantity.parse("1Gi")})
    assert check_node_write(N1, status, old, new, objects, objects.slices) is None
    assert check_node_write(N1, status, old, volume_claim("v"), objects, objects.slices) is not None
    assert check_node_write(N1, status, old, volume_claim(phase="Bound"), objects, objects.slices) is not None
    assert check_node_write(N1, whole, old, new, objects, objects.slices) == "may only update PVC status"


def signing_request(
    user: str, signer: str = "kubernetes.io/kube-apiserver-client-kubelet"
) -> CertificateSigningRequest:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, user)])
    csr = x509.CertificateSigningRequestBuilder(name).sign(key, hashes.SHA256())
    text = Base64.of(csr.public_bytes(serialization.Encoding.PEM))
    return CertificateSigningRequest(spec=CertificateSigningRequestSpec(request=text, signer_name=signer))


def test_certificates_in_its_own_name(objects: Objects) -> None:
    question = asked("create", "certificatesigningrequests", "certificates.k8s.io")

    def denied(request: CertificateSigningRequest) -> str | None:
        return check_node_write(N1, question, None, request, objects, objects.slices)

    assert denied(signing_request("system:node:n1")) is None
    assert denied(signing_request("system:node:n2")) is not None
    assert denied(signing_request("system:node:n2", "example.com/signer")) is None
    garbage = CertificateSigningRequestSpec(request=Base64("!"), signer_name="kubernetes.io/kubelet-serving")
    assert denied(CertificateSigningRequest(spec=garbage)) == "spec.request is not a PEM certificate request"


GOOD = PodCertificateRequestSpec(
    node_name="n1",
    node_uid="n1-uid",
    pod_name="mine",
    pod_uid="mine-uid",
    service_account_name="account",
    service_account_uid="account-uid",
    signer_name="example.com/signer",
)


@pytest.mark.parametrize(
    ("changes", "allowed"),
    [
        ({}, True),
        ({"node_name": "n2"}, False),
        ({"node_uid": "another"}, False),
        ({"pod_name": "other", "pod_uid": "other-uid"}, False),
        ({"pod_name": "mirrored", "pod_uid": "mirrored-uid"}, False),
        ({"pod_uid": "another"}, False),
        ({"service_account_name": "admin", "service_account_uid": "admin-uid"}, False),
        ({"service_account_uid": "another"}, False),
        ({"signer_name": "example.com/another"}, False),
    ],
)
def test_pod_certificates_for_its_pods(objects: Objects, changes: dict[str, str], allowed: bool) -> None:
    volume = projected(pod_certificate=PodCertificateProjection(signer_name="example.com/signer"))
    spec = PodSpec(node_name="n1", service_account_name="account", volumes=(volume,))
    objects.add("pods", replace(pod("mine", "n1"), spec=spec))
    mirrored = pod("mirrored", "n1")
    annotated = replace(mirrored.metadata, annotations={"kubernetes.io/config.mirror": "x"})
    objects.add("pods", replace(mirrored, spec=spec, metadata=annotated))
    for name in ("account", "admin"):
        metadata = ObjectMeta(namespace="ns", name=name, uid=f"{name}-uid")
        objects.add("serviceaccounts", ServiceAccount(metadata=metadata))
    question = asked("create", "podcertificaterequests", "certificates.k8s.io", "ns")
    request = PodCertificateRequest(metadata=ObjectMeta(namespace="ns"), spec=replace(GOOD, **changes))
    assert (check_node_write(N1, question, None, request, objects, objects.slices) is None) is allowed
    with_right = check_node_write(N1, question, None, request, objects, objects.slices, may=True) is None
    assert with_right is (allowed or "signer_name" in changes)
