from __future__ import annotations

from collections.abc import Iterable

import pytest

from dray.api.generated.core import (
    AzureFileVolumeSource,
    ConfigMapEnvSource,
    ConfigMapKeySelector,
    ConfigMapProjection,
    ConfigMapVolumeSource,
    Container,
    CSIVolumeSource,
    EnvFromSource,
    EnvVar,
    EnvVarSource,
    EphemeralVolumeSource,
    ISCSIVolumeSource,
    LocalObjectReference,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimVolumeSource,
    Pod,
    PodExtendedResourceClaimStatus,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSpec,
    PodStatus,
    ProjectedVolumeSource,
    SecretEnvSource,
    SecretKeySelector,
    SecretProjection,
    SecretVolumeSource,
    Volume,
    VolumeProjection,
)
from dray.api.generated.storage import VolumeAttachment, VolumeAttachmentSpec
from dray.api.meta import ObjectMeta
from dray.api.resource import ResourceSlice, ResourceSliceSpec
from dray.server.security.authorization import Attributes
from dray.server.security.identity import authenticated
from dray.server.security.node_reads import check_node_read
from dray.server.security.pod_references import references
from security_world import Objects

N1 = authenticated("system:node:n1", ("system:nodes",))

POD = Pod(
    metadata=ObjectMeta(namespace="ns", name="web"),
    spec=PodSpec(
        node_name="n1",
        service_account_name="account",
        image_pull_secrets=(LocalObjectReference(name="pull"),),
        init_containers=(Container(env_from=(EnvFromSource(secret_ref=SecretEnvSource(name="env-from")),)),),
        containers=(
            Container(
                env_from=(EnvFromSource(config_map_ref=ConfigMapEnvSource(name="env-from-map")),),
                env=(
                    EnvVar(name="a", value="plain"),
                    EnvVar(name="b", value_from=EnvVarSource(secret_key_ref=SecretKeySelector(name="env"))),
                    EnvVar(name="c", value_from=EnvVarSource(config_map_key_ref=ConfigMapKeySelector(name="env-map"))),
                ),
            ),
        ),
        volumes=(
            Volume(name="1", secret=SecretVolumeSource(secret_name="volume")),
            Volume(name="2", config_map=ConfigMapVolumeSource(name="volume-map")),
            Volume(name="3", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name="disk")),
            Volume(name="scratch", ephemeral=EphemeralVolumeSource()),
            Volume(
                name="5",
                projected=ProjectedVolumeSource(
                    sources=(
                        VolumeProjection(secret=SecretProjection(name="projected")),
                        VolumeProjection(config_map=ConfigMapProjection(name="projected-map")),
                    )
                ),
            ),
            Volume(name="6", csi=CSIVolumeSource(node_publish_secret_ref=LocalObjectReference(name="csi"))),
            Volume(name="7", iscsi=ISCSIVolumeSource(secret_ref=LocalObjectReference(name="iscsi"))),
            Volume(name="8", azure_file=AzureFileVolumeSource(secret_name="azure")),
        ),
        resource_claims=(
            PodResourceClaim(name="a", resource_claim_name="shared"),
            PodResourceClaim(name="b", resource_claim_template_name="template"),
        ),
    ),
    status=PodStatus(
        resource_claim_statuses=(PodResourceClaimStatus(name="b", resource_claim_name="made"),),
        extended_resource_claim_status=PodExtendedResourceClaimStatus(resource_claim_name="extended"),
    ),
)


def pods_on(node: str) -> Iterable[Pod]:
    return (POD,) if node == "n1" else ()


GROUPS = {
    "resourceslices": "resource.k8s.io",
    "resourceclaims": "resource.k8s.io",
    "csinodes": "storage.k8s.io",
    "volumeattachments": "storage.k8s.io",
    "podcertificaterequests": "certificates.k8s.io",
}


def asked(verb: str, resource: str, name: str = "", namespace: str = "ns", **fields: str) -> Attributes:
    selected = tuple((key.replace("_", "."), value) for key, value in fields.items())
    return Attributes(verb, GROUPS.get(resource, ""), resource, "", namespace, name, fields=selected)


def stored() -> Objects:
    """One object of each kind that says whose it is, for two nodes; and a volume that the pod uses."""
    objects = Objects()
    objects.add("pods", POD)
    objects.add("pods", Pod(metadata=ObjectMeta(namespace="ns", name="other"), spec=PodSpec(node_name="n2")))
    for node in ("n1", "n2"):
        meta = ObjectMeta(name=f"of-{node}")
        objects.add(
            "resourceslices.resource.k8s.io", ResourceSlice(metadata=meta, spec=ResourceSliceSpec(node_name=node))
        )
        attachment = VolumeAttachment(metadata=meta, spec=VolumeAttachmentSpec(node_name=node))
        objects.add("volumeattachments.storage.k8s.io", attachment)
    spec = PersistentVolumeClaimSpec(volume_name="volume")
    objects.add(
        "persistentvolumeclaims", PersistentVolumeClaim(metadata=ObjectMeta(namespace="ns", name="disk"), spec=spec)
    )
    return objects


OBJECTS = stored()


def test_everything_that_a_pod_names() -> None:
    found: dict[str, set[str]] = {}
    for resource, name in references(POD):
        found.setdefault(resource, set()).add(name)
    assert found == {
        "serviceaccounts": {"account"},
        "secrets": {"pull", "env-from", "env", "volume", "projected", "csi", "iscsi", "azure"},
        "configmaps": {"env-from-map", "env-map", "volume-map", "projected-map"},
        "persistentvolumeclaims": {"disk", "web-scratch"},
        "resourceclaims": {"shared", "made", "extended"},
        "resourceclaimtemplates": {"template"},
    }


@pytest.mark.req("4381-178")
@pytest.mark.parametrize(
    ("attributes", "allowed"),
    [
        (asked("get", "secrets", "env"), True),
        (asked("watch", "secrets", "env"), True),
        (asked("get", "secrets", "other"), False),
        (asked("get", "secrets", "env", "elsewhere"), False),
        (asked("get", "configmaps", "env"), False),
        (asked("list", "secrets"), False),
        (asked("list", "secrets", namespace=""), False),
        (asked("get", "resourceclaims", "shared"), True),
        (asked("get", "resourceclaims", "made"), True),
        (asked("get", "resourceclaims", "of-others"), False),
        (asked("get", "serviceaccounts", "account"), True),
        (asked("get", "serviceaccounts", "admin"), False),
        (asked("get", "pods", "web"), True),
        (asked("get", "pods", "other"), False),
        (asked("get", "pods", "missing"), False),
        (asked("list", "pods"), False),
        (asked("list", "pods", spec_nodeName="n1"), True),
        (asked("watch", "pods", namespace="", spec_nodeName="n1"), True),
        (asked("watch", "pods", namespace="", spec_nodeName="n2"), False),
        (asked("watch", "pods", "web"), True),
        (asked("get", "nodes", "n1", ""), True),
        (asked("get", "nodes", "n2", ""), False),
        (asked("list", "nodes", "", ""), False),
        (asked("watch", "nodes", "n1", ""), True),
        (asked("get", "csinodes", "n2", ""), False),
        (asked("get", "volumeattachments", "of-n1", ""), True),
        (asked("get", "volumeattachments", "of-n2", ""), False),
        (asked("get", "persistentvolumes", "volume", ""), True),
        (asked("get", "persistentvolumes", "elsewhere", ""), False),
        (asked("get", "resourceslices", "of-n1", ""), True),
        (asked("get", "resourceslices", "of-n2", ""), False),
        (asked("list", "resourceslices", namespace=""), False),
        (asked("list", "resourceslices", namespace="", spec_nodeName="n1"), True),
        (asked("watch", "resourceslices", namespace="", spec_nodeName="n1", spec_driver="d"), True),
        (asked("deletecollection", "resourceslices", namespace=""), False),
        (asked("deletecollection", "resourceslices", namespace="", spec_nodeName="n1"), True),
        (asked("list", "podcertificaterequests", spec_nodeName="n2"), False),
        (asked("list", "services"), True),
        (asked("update", "secrets", "other"), False),
        (asked("patch", "pods", "web"), True),
        (asked("patch", "pods", "other"), False),
        (asked("patch", "pods", "missing"), True),
        (asked("delete", "resourceslices", "of-n2", ""), False),
        (asked("update", "nodes", "n2", ""), False),
        (Attributes("get", "coordination.k8s.io", "leases", "", "kube-node-lease", "n1"), True),
        (Attributes("get", "coordination.k8s.io", "leases", "", "kube-node-lease", "n2"), False),
        (Attributes("get", path="/healthz"), True),
    ],
)
def test_what_a_node_reads(attributes: Attributes, allowed: bool) -> None:
    assert (check_node_read(N1, attributes, pods_on, OBJECTS) is None) is allowed
    assert check_node_read(authenticated("alice"), attributes, pods_on, OBJECTS) is None


def test_another_node_and_one_without_a_name() -> None:
    other, nameless = authenticated("system:node:n2", ("system:nodes",)), authenticated("x", ("system:nodes",))
    question = asked("get", "secrets", "env")
    assert (
        check_node_read(other, question, pods_on, OBJECTS) == 'no relationship found between node "n2" and this object'
    )
    assert check_node_read(nameless, question, pods_on, OBJECTS) == 'could not determine node from user "x"'
