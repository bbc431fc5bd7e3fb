"""Posts about identities: tokens for service accounts."""

from __future__ import annotations

from dray.api import codec
from dray.api.generated.authentication import TokenRequest
from dray.api.generated.core import ServiceAccount
from dray.api.registry import by_kind
from dray.server import body, errors
from dray.server.actions import ActionTable
from dray.server.engine import Call, Engine
from dray.server.http import Answer, Request, Response
from dray.server.security.token_requests import issue_token
from dray.server.security.tokens import ServiceAccountTokens

SERVICE_ACCOUNTS = by_kind("v1", "ServiceAccount")


class TokenAction:
    """`serviceaccounts/token`: a signed token for a stored service account."""

    def __init__(self, tokens: ServiceAccountTokens) -> None:
        self._tokens = tokens

    async def __call__(self, engine: Engine, call: Call, request: Request) -> Answer:
        """Answers a TokenRequest. Raises ApiError."""
        account = engine.get(SERVICE_ACCOUNTS.resource, call.route.namespace, call.route.name)
        if not isinstance(account, ServiceAccount):
            raise errors.not_found(SERVICE_ACCOUNTS, call.route.name)
        value = body.parse(request.body, request.header("content-type")) if request.body else {}
        reading = codec.read(value, TokenRequest)
        if reading.obj is None:
            raise errors.bad_request("; ".join(map(str, reading.errors)))
        engine.admission.check(engine, call, reading.obj, account)
        issued = issue_token(account, reading.obj, self._tokens, engine.get, call.now.datetime())
        call.warnings.extend(issued.warnings)
        return Response(201, codec.encode(issued.request))


def register(actions: ActionTable, tokens: ServiceAccountTokens) -> None:
    """Adds the actions of this module to the table."""
    actions.add("serviceaccounts", "token", TokenAction(tokens))
