"""How others check service-account tokens without asking this server: the issuer's name and its public keys.

    /.well-known/openid-configuration   who issues, and where the keys are (OpenID Connect Discovery)
    /openid/v1/jwks                     the keys

Whoever has the role `system:service-account-issuer-discovery` may read them: service accounts may, others once an admin
lets them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from dray.process.http import Answer, Request, Response
from dray.server.discovery.pages import Page, anybody
from dray.server.security.tokens import ALGORITHM, ISSUER

CONFIGURATION: Final = "/.well-known/openid-configuration"
KEYS: Final = "/openid/v1/jwks"
_KEPT: Final = (("Cache-Control", "public, max-age=3600"),)


def pages(public_key: Mapping[str, Any], address: Callable[[], str]) -> dict[str, Page]:
    """The two pages; `address` is where the server listens. What a request says of that may be anything."""

    async def configuration(_request: Request) -> Answer:
        document = {
            "issuer": ISSUER,
            "jwks_uri": f"https://{address()}{KEYS}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [ALGORITHM],
        }
        return Response(200, msgspec.json.encode(document), headers=_KEPT)

    async def keys(_request: Request) -> Answer:
        found = {"keys": [{**public_key, "use": "sig", "alg": ALGORITHM}]}
        return Response(200, msgspec.json.encode(found), "application/jwk-set+json", _KEPT)

    return {CONFIGURATION: anybody(configuration), KEYS: anybody(keys)}
