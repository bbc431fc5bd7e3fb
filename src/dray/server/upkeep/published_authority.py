"""Tells other servers of the cluster whose client certificates to trust.

kube-scheduler, kube-controller-manager and others that listen themselves read the ConfigMap
`extension-apiserver-authentication` in kube-system (the role of the same name lets them), and complain until it is
there with both of its authorities.
"""

from __future__ import annotations

from msgspec.structs import replace

from dray.api.generated.core import ConfigMap
from dray.api.kinds import CONFIG_MAPS
from dray.api.meta import ObjectMeta
from dray.api.well_known import SYSTEM_NAMESPACE
from dray.server.engine import Call, Engine
from dray.server.routes import Route
from dray.server.security.certificates import Authority
from dray.server.upkeep.first_objects import SYSTEM
from dray.server.verbs import writes

NAMESPACE = SYSTEM_NAMESPACE
NAME = "extension-apiserver-authentication"
CLIENTS = "client-ca-file"
PROXIES = "requestheader-client-ca-file"


async def publish(engine: Engine, certificate: bytes) -> None:
    """Stores the certificate of the authority that signs client certificates; what else is in the map stays."""
    found = engine.get(CONFIG_MAPS.resource, NAMESPACE, NAME)
    known = found.data if isinstance(found, ConfigMap) else {}
    proxies = {} if PROXIES in known else _proxies(engine)
    data = {**known, **proxies, CLIENTS: certificate.decode("ascii")}
    if isinstance(found, ConfigMap):
        changed = replace(found, data=data)
        route = Route("update", CONFIG_MAPS, "v1", NAMESPACE, NAME)
        await writes.update(engine, Call(route, SYSTEM, engine.clock(), warnings=[]), lambda _: changed)
        return
    made = ConfigMap(kind="ConfigMap", api_version="v1", metadata=ObjectMeta(name=NAME), data=data)
    route = Route("create", CONFIG_MAPS, "v1", NAMESPACE)
    await writes.create(engine, Call(route, SYSTEM, engine.clock(), warnings=[]), made)


def _proxies(engine: Engine) -> dict[str, str]:
    """Whom to believe when they say on whose behalf they ask: nobody, an authority whose key is thrown away at once."""
    nobody = Authority.create(engine.clock().datetime(), "dray front proxy")
    return {
        PROXIES: nobody.pair.certificate.decode("ascii"),
        "requestheader-allowed-names": '["front-proxy-client"]',
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    }
