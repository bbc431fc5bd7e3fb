"""The field numbers of services and of how traffic reaches them (see `messages`)."""

from __future__ import annotations

_SERVICES = """
Service: metadata=1:ObjectMeta spec=2:ServiceSpec status=3:ServiceStatus
ServiceSpec: ports=1:*ServicePort selector=2:@text clusterIP=3 type=4 externalIPs=5:*text sessionAffinity=7
    loadBalancerIP=8 loadBalancerSourceRanges=9:*text externalName=10 externalTrafficPolicy=11
    healthCheckNodePort=12:int publishNotReadyAddresses=13:bool sessionAffinityConfig=14:SessionAffinityConfig
    ipFamilyPolicy=17 clusterIPs=18:*text ipFamilies=19:*text allocateLoadBalancerNodePorts=20:bool
    loadBalancerClass=21 internalTrafficPolicy=22 trafficDistribution=23
ServicePort: name=1 protocol=2 port=3:int targetPort=4:int-or-string nodePort=5:int appProtocol=6
SessionAffinityConfig: clientIP=1:ClientIPConfig
ClientIPConfig: timeoutSeconds=1:int
ServiceStatus: loadBalancer=1:LoadBalancerStatus conditions=2:*Condition
LoadBalancerStatus: ingress=1:*LoadBalancerIngress
LoadBalancerIngress: ip=1 hostname=2 ipMode=3 ports=4:*PortStatus
PortStatus: port=1:int protocol=2 error=3
Endpoints: metadata=1:ObjectMeta subsets=2:*EndpointSubset
EndpointSubset: addresses=1:*EndpointAddress notReadyAddresses=2:*EndpointAddress ports=3:*EndpointPort
EndpointAddress: ip=1 targetRef=2:ObjectReference hostname=3 nodeName=4
EndpointPort: name=1 port=2:int protocol=3 appProtocol=4
EndpointSlice: metadata=1:ObjectMeta endpoints=2:*Endpoint ports=3:*EndpointSlicePort addressType=4
Endpoint: addresses=1:*text conditions=2:EndpointConditions hostname=3 targetRef=4:ObjectReference
    deprecatedTopology=5:@text nodeName=6 zone=7 hints=8:EndpointHints
EndpointConditions: ready=1:bool serving=2:bool terminating=3:bool
EndpointHints: forZones=1:*LocalObjectReference forNodes=2:*LocalObjectReference
EndpointSlicePort: name=1 protocol=2 port=3:int appProtocol=4
"""

_NETWORKING = """
Ingress: metadata=1:ObjectMeta spec=2:IngressSpec status=3:IngressStatus
IngressSpec: defaultBackend=1:IngressBackend tls=2:*IngressTLS rules=3:*IngressRule ingressClassName=4
IngressBackend: resource=3:TypedObjectReference service=4:IngressServiceBackend
IngressServiceBackend: name=1 port=2:ServiceBackendPort
ServiceBackendPort: name=1 number=2:int
IngressTLS: hosts=1:*text secretName=2
IngressRule: host=1 ingressRuleValue=2:+IngressRuleValue
IngressRuleValue: http=1:HTTPIngressRuleValue
HTTPIngressRuleValue: paths=1:*HTTPIngressPath
HTTPIngressPath: path=1 backend=2:IngressBackend pathType=3
IngressStatus: loadBalancer=1:IngressLoadBalancerStatus
IngressLoadBalancerStatus: ingress=1:*IngressLoadBalancerIngress
IngressLoadBalancerIngress: ip=1 hostname=2 ports=4:*PortStatus
IngressClass: metadata=1:ObjectMeta spec=2:IngressClassSpec
IngressClassSpec: controller=1 parameters=2:IngressClassParametersReference
IngressClassParametersReference: apiGroup=1 kind=2 name=3 scope=4 namespace=5
NetworkPolicy: metadata=1:ObjectMeta spec=2:NetworkPolicySpec
NetworkPolicySpec: podSelector=1:LabelSelector ingress=2:*NetworkPolicyIngressRule egress=3:*NetworkPolicyEgressRule
    policyTypes=4:*text
NetworkPolicyIngressRule: ports=1:*NetworkPolicyPort from=2:*NetworkPolicyPeer
NetworkPolicyEgressRule: ports=1:*NetworkPolicyPort to=2:*NetworkPolicyPeer
NetworkPolicyPeer: podSelector=1:LabelSelector namespaceSelector=2:LabelSelector ipBlock=3:IPBlock
NetworkPolicyPort: protocol=1 port=2:int-or-string endPort=3:int
IPBlock: cidr=1 except=2:*text
IPAddress: metadata=1:ObjectMeta spec=2:IPAddressSpec
IPAddressSpec: parentRef=1:ParentReference
ParentReference: group=1 resource=2 namespace=3 name=4
ServiceCIDR: metadata=1:ObjectMeta spec=2:ServiceCIDRSpec status=3:ServiceCIDRStatus
ServiceCIDRSpec: cidrs=1:*text
ServiceCIDRStatus: conditions=1:*Condition
"""

TABLE = _SERVICES + _NETWORKING

KINDS: dict[tuple[str, str], str] = {
    **{("v1", kind): kind for kind in ("Service", "Endpoints")},
    ("discovery.k8s.io/v1", "EndpointSlice"): "EndpointSlice",
    **{
        ("networking.k8s.io/v1", kind): kind
        for kind in ("Ingress", "IngressClass", "NetworkPolicy", "IPAddress", "ServiceCIDR")
    },
}
"""The message of each kind, by its version."""
