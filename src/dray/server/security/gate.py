"""At the door: who sends a request, whom they act as, and whether the roles allow it."""

from __future__ import annotations

from dray.process.http import Request
from dray.server.routes import Route
from dray.server.security.authentication import Authenticator
from dray.server.security.authorization import Attributes, Authorizer, forbidden, selected_fields, selected_name
from dray.server.security.identity import Identity
from dray.server.security.impersonation import impersonate


class SecurityGate:
    """Authentication, impersonation and authorization of requests over HTTP."""

    def __init__(self, authenticator: Authenticator, authorizer: Authorizer) -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer

    def sender(self, request: Request) -> Identity | None:
        """Who sends a request; None if the credential is bad."""
        return self._authenticator.authenticate(request.headers, request.peer.certificate)

    def identify(self, request: Request) -> Identity | None:
        """Whom a request acts as; None if its credential is bad. Raises ApiError if it may not act as them."""
        headers = request.headers
        sender = self._authenticator.authenticate(headers, request.peer.certificate)
        if sender is None or "impersonate-" not in " ".join(headers):  # which is faster than to ask each header
            return sender
        return impersonate(sender, headers, self._authorizer)

    def check(self, caller: Identity, verb: str, route: Route | None, request: Request) -> None:
        """Raises ApiError unless the roles allow this."""
        if route is None:
            attributes = Attributes(verb, path=request.path)
        else:
            kind = route.kind
            name = route.name
            fields: tuple[tuple[str, str], ...] = ()
            if not name and request.query:
                fields = selected_fields(verb, request.query.get("fieldSelector", ""))
                name = selected_name(verb, fields)
            attributes = Attributes(
                verb, kind.group, kind.plural, route.subresource, route.namespace, name, fields=fields
            )
        decision = self._authorizer.allowed(caller, attributes)
        if not decision.allowed:
            raise forbidden(caller, attributes, decision)
