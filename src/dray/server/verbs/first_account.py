"""A namespace is stored together with its ServiceAccount `default`.

Pods need one. On Kubernetes a controller makes it a moment later, and clients that are quicker wait or fail; here the
pod that follows the namespace is always taken. Whoever deletes it gets it back from the controller, if one runs.
"""

from __future__ import annotations

from dray.api.generated.core import Namespace, ServiceAccount
from dray.api.kinds import SERVICE_ACCOUNTS
from dray.api.meta import ObjectMeta
from dray.pod_admission.service_account import DEFAULT
from dray.server.engine import Call, Engine
from dray.server.objects import finish
from dray.store import Create, Key


def beside(engine: Engine, call: Call, namespace: Namespace) -> list[Create]:
    """What is stored together with a new namespace: its account."""
    key = Key(SERVICE_ACCOUNTS.resource, namespace.metadata.name, DEFAULT)
    return [] if engine.store.get(key) is not None else [Create(key, finish(account(engine, call, key.namespace)))]


def account(engine: Engine, call: Call, namespace: str) -> ServiceAccount:
    """The account that a namespace begins with."""
    meta = ObjectMeta(name=DEFAULT, namespace=namespace, uid=engine.new_uid(), creation_timestamp=call.now)
    return ServiceAccount(kind="ServiceAccount", api_version="v1", metadata=meta)
