"""Who is asking: a user name, groups and what else the credential said."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dray.api.generated.authentication import UserInfo
from dray.api.tenants import SERVICE_ACCOUNT_PREFIX

ANONYMOUS = "system:anonymous"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"
NODES = "system:nodes"
KUBELET_CLIENT = "kube-apiserver-kubelet-client"
"""Who the server is when it goes to a kubelet."""
NODE_PREFIX = "system:node:"
SERVICE_ACCOUNTS = "system:serviceaccounts"

POD_NAME = "authentication.kubernetes.io/pod-name"
POD_UID = "authentication.kubernetes.io/pod-uid"
NODE_NAME = "authentication.kubernetes.io/node-name"
NODE_UID = "authentication.kubernetes.io/node-uid"
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"


class Identity(msgspec.Struct, frozen=True):
    """An authenticated user, or the anonymous one."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)

    @property
    def is_master(self) -> bool:
        """Whether this user may do everything, whatever the roles say."""
        return MASTERS in self.groups

    def user_info(self) -> UserInfo:
        """The identity as the API shows it."""
        return UserInfo(username=self.user, uid=self.uid, groups=self.groups, extra=self.extra)


ANONYMOUS_IDENTITY = Identity(ANONYMOUS, (UNAUTHENTICATED,))


def authenticated(
    user: str, groups: Iterable[str] = (), uid: str = "", extra: dict[str, tuple[str, ...]] | None = None
) -> Identity:
    """An identity whose credential was checked: it belongs to `system:authenticated` besides its own groups."""
    unique = dict.fromkeys(group for group in groups if group)
    unique.setdefault(AUTHENTICATED, None)
    return Identity(user, tuple(unique), uid, extra or {})


def service_account_user(namespace: str, name: str) -> str:
    """The user name of a ServiceAccount."""
    return f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}"


def service_account_groups(namespace: str) -> tuple[str, ...]:
    """The groups that every ServiceAccount of a namespace belongs to."""
    return (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}")


def split_service_account_user(user: str) -> tuple[str, str] | None:
    """Namespace and name of the ServiceAccount that a user name stands for, None if it stands for another user."""
    if not user.startswith(SERVICE_ACCOUNT_PREFIX):
        return None
    namespace, separator, name = user.removeprefix(SERVICE_ACCOUNT_PREFIX).partition(":")
    return (namespace, name) if separator and namespace and name and ":" not in name else None


def bound_node(identity: Identity) -> str:
    """The node in the token of a ServiceAccount; empty if it names none, or for another user.

    It limits what the account may do. Whoever may ask for its tokens may have named any node (see `node_of_pod`).
    """
    if split_service_account_user(identity.user) is None:
        return ""
    names = identity.extra.get(NODE_NAME, ())
    return names[0] if len(names) == 1 else ""


def node_of_pod(identity: Identity) -> str:
    """The node of the pod that the token of a ServiceAccount was issued for: rights may follow from that one.

    Empty for a token that is bound to a node alone, which nobody has to run anything on.
    """
    return bound_node(identity) if len(identity.extra.get(POD_NAME, ())) == 1 else ""
