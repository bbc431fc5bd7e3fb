"""`serviceaccounts/token`: a signed token for a stored service account."""

from __future__ import annotations

from dray.api.generated.authentication import TokenRequest
from dray.api.generated.core import ServiceAccount
from dray.api.kinds import SERVICE_ACCOUNTS
from dray.server import errors
from dray.server.engine import Call, Engine
from dray.server.security.token_requests import issue_token
from dray.server.security.tokens import ServiceAccountTokens
from dray.server.strategies import PostStrategy


def strategy(tokens: ServiceAccountTokens) -> PostStrategy:
    """Answers TokenRequests with tokens of the server."""

    async def issue(engine: Engine, call: Call, request: TokenRequest) -> TokenRequest:
        account = engine.get(SERVICE_ACCOUNTS.resource, call.route.namespace, call.route.name)
        if not isinstance(account, ServiceAccount):
            raise errors.not_found(SERVICE_ACCOUNTS, call.route.name)
        await engine.admission.check(engine, call, request, account)
        issued = issue_token(account, request, tokens, engine.get, call.now.datetime())
        call.warnings.extend(issued.warnings)
        return issued.request

    return PostStrategy(takes=TokenRequest, do=issue, may_be_empty=True, group="authentication.k8s.io")
