"""The certificate of the authority, in every namespace: pods trust the API server by ConfigMap `kube-root-ca.crt`."""

from __future__ import annotations

from typing import ClassVar, Final

from msgspec.structs import replace

from dray.api.generated.core import ConfigMap, Namespace
from dray.api.kinds import CONFIG_MAPS, NAMESPACES
from dray.api.meta import ObjectMeta
from dray.api.references import ObjectName
from dray.api.status import ApiError
from dray.controllers.context import Context
from dray.controllers.namespace import is_terminating
from dray.controllers.queue_controller import QueueController

NAME: Final = "kube-root-ca.crt"
KEY: Final = "ca.crt"
_ABOUT: Final = {"kubernetes.io/description": "The authority that signed the certificate of the API server."}


class RootCertificatePublisher(QueueController[ObjectName]):
    """Looks at namespaces that are new, and at those whose map is changed or deleted."""

    name: ClassVar[str] = "root-ca-certificate-publisher-controller"

    def __init__(self, context: Context) -> None:
        self._namespaces = context.informers.of(NAMESPACES, Namespace)
        self._maps = context.informers.of(CONFIG_MAPS, ConfigMap, f"metadata.name={NAME}")
        super().__init__(context, self._namespaces, self._maps)
        self._data = {KEY: context.settings.root_certificate.decode("ascii", "replace")}
        self._namespaces.on_change(self._on_namespace)
        self._maps.on_change(self._on_map)

    def _on_namespace(self, old: Namespace | None, new: Namespace | None) -> None:
        if new is not None and (old is None or old.metadata.uid != new.metadata.uid):
            self.queue.add(ObjectName(new.metadata.name, NAME))

    def _on_map(self, old: ConfigMap | None, new: ConfigMap | None) -> None:
        known = new if new is not None else old
        if known is not None:
            self.queue.add(ObjectName.of(known))

    async def reconcile(self, key: ObjectName) -> None:
        """Makes the map right in a namespace that is there to stay. Raises ApiError or OSError.

        Who does not know the certificate makes an empty map, without which no pod could start, and leaves others alone.
        """
        namespace = self._namespaces.get("", key.namespace)
        if namespace is None or namespace.metadata.deletion_timestamp is not None:
            return
        found = self._maps.get(*key)
        if found is None:
            meta = ObjectMeta(name=NAME, namespace=key.namespace, annotations=_ABOUT)
            try:
                await self._client.create(ConfigMap(kind="ConfigMap", api_version="v1", metadata=meta, data=self._data))
            except ApiError as error:
                if error.code not in (404, 409) and not is_terminating(error):
                    raise
        elif self._data[KEY] and found.data != self._data:
            await self._client.update(replace(found, data=self._data))
