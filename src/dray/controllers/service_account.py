"""Gives every namespace its ServiceAccount `default`."""

from __future__ import annotations

from typing import ClassVar

from dray.api.generated.core import Namespace, ServiceAccount
from dray.api.kinds import NAMESPACES, SERVICE_ACCOUNTS
from dray.api.meta import ObjectMeta
from dray.api.references import ObjectName
from dray.api.status import ApiError
from dray.controllers.context import Context
from dray.controllers.namespace import is_terminating
from dray.controllers.queue_controller import QueueController

DEFAULT = "default"


class ServiceAccountController(QueueController[ObjectName]):
    """Looks at namespaces that are new and at those that lost their account."""

    name: ClassVar[str] = "serviceaccount-controller"

    def __init__(self, context: Context) -> None:
        self._namespaces = context.informers.of(NAMESPACES, Namespace)
        self._accounts = context.informers.of(SERVICE_ACCOUNTS, ServiceAccount)
        super().__init__(context, self._namespaces, self._accounts)
        self._namespaces.on_change(self._on_namespace)
        self._accounts.on_change(self._on_account)

    def _on_namespace(self, _old: Namespace | None, new: Namespace | None) -> None:
        if new is not None:
            self.queue.add(ObjectName(new.metadata.name, DEFAULT))

    def _on_account(self, old: ServiceAccount | None, new: ServiceAccount | None) -> None:
        if new is None and old is not None and old.metadata.name == DEFAULT:
            self.queue.add(ObjectName.of(old))

    async def reconcile(self, key: ObjectName) -> None:
        """Creates what is missing in a namespace that is there to stay."""
        namespace = self._namespaces.get("", key.namespace)
        if namespace is None or namespace.metadata.deletion_timestamp is not None:
            return
        if self._accounts.get(*key) is not None:
            return
        account = ServiceAccount(
            kind="ServiceAccount", api_version="v1", metadata=ObjectMeta(name=DEFAULT, namespace=key.namespace)
        )
        try:
            await self._client.create(account)
        except ApiError as error:
            if error.code not in (404, 409) and not is_terminating(error):
                raise
