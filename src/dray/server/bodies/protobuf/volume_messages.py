"""The field numbers of volumes: of pods, of the cluster, and of the storage behind them (see `messages`)."""

from __future__ import annotations

_OF_PODS = """
Volume: name=1 volumeSource=2:+VolumeSource
VolumeSource: hostPath=1:HostPathVolumeSource emptyDir=2:EmptyDirVolumeSource
    gcePersistentDisk=3:GCEPersistentDiskVolumeSource awsElasticBlockStore=4:AWSElasticBlockStoreVolumeSource
    gitRepo=5:GitRepoVolumeSource secret=6:SecretVolumeSource nfs=7:NFSVolumeSource iscsi=8:ISCSIVolumeSource
    glusterfs=9:GlusterfsVolumeSource persistentVolumeClaim=10:PersistentVolumeClaimVolumeSource rbd=11:RBDVolumeSource
    flexVolume=12:FlexVolumeSource cinder=13:CinderVolumeSource cephfs=14:CephFSVolumeSource
    flocker=15:FlockerVolumeSource downwardAPI=16:DownwardAPIVolumeSource fc=17:FCVolumeSource
    azureFile=18:AzureFileVolumeSource configMap=19:ConfigMapVolumeSource vsphereVolume=20:VsphereVolumeSource
    quobyte=21:QuobyteVolumeSource azureDisk=22:AzureDiskVolumeSource photonPersistentDisk=23:PhotonVolumeSource
    portworxVolume=24:PortworxVolumeSource scaleIO=25:ScaleIOVolumeSource projected=26:ProjectedVolumeSource
    storageos=27:StorageOSVolumeSource csi=28:CSIVolumeSource ephemeral=29:EphemeralVolumeSource
    image=30:ImageVolumeSource
HostPathVolumeSource: path=1 type=2
EmptyDirVolumeSource: medium=1 sizeLimit=2:quantity mode=3:int
GitRepoVolumeSource: repository=1 revision=2 directory=3
SecretVolumeSource: secretName=1 items=2:*KeyToPath defaultMode=3:int optional=4:bool defaultUser=5:int
ConfigMapVolumeSource: localObjectReference=1:+LocalObjectReference items=2:*KeyToPath defaultMode=3:int optional=4:bool
    defaultUser=5:int
KeyToPath: key=1 path=2 mode=3:int user=4:int
PersistentVolumeClaimVolumeSource: claimName=1 readOnly=2:bool
DownwardAPIVolumeSource: items=1:*DownwardAPIVolumeFile defaultMode=2:int defaultUser=3:int
DownwardAPIVolumeFile: path=1 fieldRef=2:ObjectFieldSelector resourceFieldRef=3:ResourceFieldSelector mode=4:int
    user=5:int
ProjectedVolumeSource: sources=1:*VolumeProjection defaultMode=2:int defaultUser=3:int
VolumeProjection: secret=1:KeysProjection downwardAPI=2:DownwardAPIProjection configMap=3:KeysProjection
    serviceAccountToken=4:ServiceAccountTokenProjection clusterTrustBundle=5:ClusterTrustBundleProjection
    podCertificate=6:PodCertificateProjection
KeysProjection: localObjectReference=1:+LocalObjectReference items=2:*KeyToPath optional=4:bool
DownwardAPIProjection: items=1:*DownwardAPIVolumeFile
ServiceAccountTokenProjection: audience=1 expirationSeconds=2:int path=3 user=4:int
ClusterTrustBundleProjection: name=1 signerName=2 labelSelector=3:LabelSelector path=4 optional=5:bool user=6:int
PodCertificateProjection: signerName=1 keyType=2 maxExpirationSeconds=3:int credentialBundlePath=4 keyPath=5
    certificateChainPath=6 userAnnotations=7:@text user=8:int
CSIVolumeSource: driver=1 readOnly=2:bool fsType=3 volumeAttributes=4:@text nodePublishSecretRef=5:LocalObjectReference
EphemeralVolumeSource: volumeClaimTemplate=1:PersistentVolumeClaimTemplate
PersistentVolumeClaimTemplate: metadata=1:ObjectMeta spec=2:PersistentVolumeClaimSpec
ImageVolumeSource: reference=1 pullPolicy=2
"""

_OF_PROVIDERS = """
GCEPersistentDiskVolumeSource: pdName=1 fsType=2 partition=3:int readOnly=4:bool
AWSElasticBlockStoreVolumeSource: volumeID=1 fsType=2 partition=3:int readOnly=4:bool
NFSVolumeSource: server=1 path=2 readOnly=3:bool
ISCSIVolumeSource: targetPortal=1 iqn=2 lun=3:int iscsiInterface=4 fsType=5 readOnly=6:bool portals=7:*text
    chapAuthDiscovery=8:bool secretRef=10:SecretReference chapAuthSession=11:bool initiatorName=12
GlusterfsVolumeSource: endpoints=1 path=2 readOnly=3:bool endpointsNamespace=4
RBDVolumeSource: monitors=1:*text image=2 fsType=3 pool=4 user=5 keyring=6 secretRef=7:SecretReference readOnly=8:bool
FlexVolumeSource: driver=1 fsType=2 secretRef=3:SecretReference readOnly=4:bool options=5:@text
CinderVolumeSource: volumeID=1 fsType=2 readOnly=3:bool secretRef=4:SecretReference
CephFSVolumeSource: monitors=1:*text path=2 user=3 secretFile=4 secretRef=5:SecretReference readOnly=6:bool
FlockerVolumeSource: datasetName=1 datasetUUID=2
FCVolumeSource: targetWWNs=1:*text lun=2:int fsType=3 readOnly=4:bool wwids=5:*text
AzureFileVolumeSource: secretName=1 shareName=2 readOnly=3:bool secretNamespace=4
VsphereVolumeSource: volumePath=1 fsType=2 storagePolicyName=3 storagePolicyID=4
QuobyteVolumeSource: registry=1 volume=2 readOnly=3:bool user=4 group=5 tenant=6
AzureDiskVolumeSource: diskName=1 diskURI=2 cachingMode=3 fsType=4 readOnly=5:bool kind=6
PhotonVolumeSource: pdID=1 fsType=2
PortworxVolumeSource: volumeID=1 fsType=2 readOnly=3:bool
ScaleIOVolumeSource: gateway=1 system=2 secretRef=3:SecretReference sslEnabled=4:bool protectionDomain=5 storagePool=6
    storageMode=7 volumeName=8 fsType=9 readOnly=10:bool
StorageOSVolumeSource: volumeName=1 volumeNamespace=2 fsType=3 readOnly=4:bool secretRef=5:LocalObjectReference
SecretReference: name=1 namespace=2
"""

_OF_CLUSTERS = """
PersistentVolume: metadata=1:ObjectMeta spec=2:PersistentVolumeSpec status=3:PersistentVolumeStatus
PersistentVolumeSpec: capacity=1:@quantity persistentVolumeSource=2:+PersistentVolumeSource accessModes=3:*text
    claimRef=4:ObjectReference persistentVolumeReclaimPolicy=5 storageClassName=6 mountOptions=7:*text volumeMode=8
    nodeAffinity=9:VolumeNodeAffinity volumeAttributesClassName=10
PersistentVolumeSource: gcePersistentDisk=1:GCEPersistentDiskVolumeSource
    awsElasticBlockStore=2:AWSElasticBlockStoreVolumeSource hostPath=3:HostPathVolumeSource
    glusterfs=4:GlusterfsVolumeSource nfs=5:NFSVolumeSource rbd=6:RBDVolumeSource iscsi=7:ISCSIVolumeSource
    cinder=8:CinderVolumeSource cephfs=9:CephFSVolumeSource fc=10:FCVolumeSource flocker=11:FlockerVolumeSource
    flexVolume=12:FlexVolumeSource azureFile=13:AzureFileVolumeSource vsphereVolume=14:VsphereVolumeSource
    quobyte=15:QuobyteVolumeSource azureDisk=16:AzureDiskVolumeSource photonPersistentDisk=17:PhotonVolumeSource
    portworxVolume=18:PortworxVolumeSource scaleIO=19:ScaleIOVolumeSource local=20:LocalVolumeSource
    storageos=21:StorageOSPersistentVolumeSource csi=22:CSIPersistentVolumeSource
LocalVolumeSource: path=1 fsType=2
StorageOSPersistentVolumeSource: volumeName=1 volumeNamespace=2 fsType=3 readOnly=4:bool secretRef=5:ObjectReference
CSIPersistentVolumeSource: driver=1 volumeHandle=2 readOnly=3:bool fsType=4 volumeAttributes=5:@text
    controllerPublishSecretRef=6:SecretReference nodeStageSecretRef=7:SecretReference
    nodePublishSecretRef=8:SecretReference controllerExpandSecretRef=9:SecretReference
    nodeExpandSecretRef=10:SecretReference
VolumeNodeAffinity: required=1:NodeSelector
PersistentVolumeStatus: phase=1 message=2 reason=3 lastPhaseTransitionTime=4:time
PersistentVolumeClaim: metadata=1:ObjectMeta spec=2:PersistentVolumeClaimSpec status=3:PersistentVolumeClaimStatus
PersistentVolumeClaimSpec: accessModes=1:*text resources=2:VolumeResourceRequirements volumeName=3
    selector=4:LabelSelector storageClassName=5 volumeMode=6 dataSource=7:TypedObjectReference
    dataSourceRef=8:TypedObjectReference volumeAttributesClassName=9
VolumeResourceRequirements: limits=1:@quantity requests=2:@quantity
TypedObjectReference: apiGroup=1 kind=2 name=3 namespace=4
PersistentVolumeClaimStatus: phase=1 accessModes=2:*text capacity=3:@quantity
    conditions=4:*PersistentVolumeClaimCondition allocatedResources=5:@quantity allocatedResourceStatuses=7:@text
    currentVolumeAttributesClassName=8 modifyVolumeStatus=9:ModifyVolumeStatus healthStatus=10:VolumeHealthStatus
PersistentVolumeClaimCondition: type=1 status=2 lastProbeTime=3:time lastTransitionTime=4:time reason=5 message=6
ModifyVolumeStatus: targetVolumeAttributesClassName=1 status=2
VolumeHealthStatus: healthConditions=1:*VolumeHealthCondition lastTransitionTime=2:time
VolumeHealthCondition: status=1 reason=2 message=3
"""

_OF_STORAGE = """
StorageClass: metadata=1:ObjectMeta provisioner=2 parameters=3:@text reclaimPolicy=4 mountOptions=5:*text
    allowVolumeExpansion=6:bool volumeBindingMode=7 allowedTopologies=8:*TopologySelectorTerm
TopologySelectorTerm: matchLabelExpressions=1:*TopologySelectorLabelRequirement
TopologySelectorLabelRequirement: key=1 values=2:*text
VolumeAttributesClass: metadata=1:ObjectMeta driverName=2 parameters=3:@text
VolumeAttachment: metadata=1:ObjectMeta spec=2:VolumeAttachmentSpec status=3:VolumeAttachmentStatus
VolumeAttachmentSpec: attacher=1 source=2:VolumeAttachmentSource nodeName=3
VolumeAttachmentSource: persistentVolumeName=1 inlineVolumeSpec=2:PersistentVolumeSpec
VolumeAttachmentStatus: attached=1:bool attachmentMetadata=2:@text attachError=3:VolumeError detachError=4:VolumeError
VolumeError: time=1:time message=2 errorCode=3:int
CSIDriver: metadata=1:ObjectMeta spec=2:CSIDriverSpec
CSIDriverSpec: attachRequired=1:bool podInfoOnMount=2:bool volumeLifecycleModes=3:*text storageCapacity=4:bool
    fsGroupPolicy=5 tokenRequests=6:*CSIDriverToken requiresRepublish=7:bool seLinuxMount=8:bool
    nodeAllocatableUpdatePeriodSeconds=9:int serviceAccountTokenInSecrets=10:bool
    preventPodSchedulingIfMissing=11:bool
CSIDriverToken: audience=1 expirationSeconds=2:int
CSIStorageCapacity: metadata=1:ObjectMeta nodeTopology=2:LabelSelector storageClassName=3 capacity=4:quantity
    maximumVolumeSize=5:quantity
"""

TABLE = _OF_PODS + _OF_PROVIDERS + _OF_CLUSTERS + _OF_STORAGE

KINDS: dict[tuple[str, str], str] = {
    **{("v1", kind): kind for kind in ("PersistentVolume", "PersistentVolumeClaim")},
    **{
        ("storage.k8s.io/v1", kind): kind
        for kind in ("StorageClass", "VolumeAttachment", "VolumeAttributesClass", "CSIDriver", "CSIStorageCapacity")
    },
}
"""The message of each kind, by its version."""
