"""The plugins that every server runs, in order."""

from __future__ import annotations

from collections.abc import Collection

from dray.server.admission.certificate_requests import CertificateRequests
from dray.server.admission.chain import Chain, Plugin
from dray.server.admission.claim_status import ClaimStatusRights
from dray.server.admission.cluster_acceptance import ClusterAcceptance
from dray.server.admission.cluster_sets import ClusterSets
from dray.server.admission.cluster_taints import ClusterTaints
from dray.server.admission.confirmation_right import ConfirmationRight
from dray.server.admission.creation_right import CreationRight
from dray.server.admission.dynamic import DynamicAdmission
from dray.server.admission.escalation import Escalation
from dray.server.admission.limit_ranger import LimitRanger
from dray.server.admission.most_stored import MostStored
from dray.server.admission.namespace_lifecycle import KeptNamespaces, NamespaceLifecycle
from dray.server.admission.new_node_taint import NewNodeTaint
from dray.server.admission.node_restriction import DriverRestriction, NodeRestriction
from dray.server.admission.pod_defaults import PodTolerations, Priority, Protection
from dray.server.admission.pod_security import PodSecurity
from dray.server.admission.runtime_class import PodRuntimeClass
from dray.server.admission.service_account import PodServiceAccount
from dray.server.indexes.stored_roles import StoredRoles


def default_chain(roles: StoredRoles, dynamic: DynamicAdmission | None = None, disabled: Collection[str] = ()) -> Chain:
    """The chain, over the roles that say who may give away what, with what people have configured at its end.

    `disabled` are plugins that do not take part, by what switches them off.
    """
    plugins: list[Plugin] = [
        NamespaceLifecycle(),
        KeptNamespaces(),
        LimitRanger(),
        PodServiceAccount(),
        PodSecurity(),
        Priority(),
        PodTolerations(),
        PodRuntimeClass(),
        Protection(),
        NewNodeTaint(),
        ClusterTaints(),
        CreationRight(roles),
        ClaimStatusRights(roles),
        ClusterAcceptance(roles),
        ClusterSets(roles),
        ConfirmationRight(roles),
        CertificateRequests(roles),
        Escalation(roles),
        NodeRestriction(roles),
        DriverRestriction(roles),
        MostStored(roles),
    ]
    return Chain([plugin for plugin in plugins if plugin.switch not in disabled], dynamic)
