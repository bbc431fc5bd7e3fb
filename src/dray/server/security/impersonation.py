"""Acting as somebody else (`kubectl --as`), for those whom the roles allow to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from dray.server.errors import bad_request
from dray.server.security.authorization import Attributes, Authorizer, forbidden
from dray.server.security.identity import (
    ANONYMOUS,
    AUTHENTICATED,
    UNAUTHENTICATED,
    Identity,
    service_account_groups,
    split_service_account_user,
)

_USER = "impersonate-user"
_GROUP = "impersonate-group"
_UID = "impersonate-uid"
_EXTRA = "impersonate-extra-"
_AUTHENTICATION_GROUP = "authentication.k8s.io"


def impersonate(identity: Identity, headers: Mapping[str, str], authorizer: Authorizer) -> Identity:
    """Whom a request acts as: the sender, or whoever its Impersonate headers name.

    `headers` have lower-case names, repeated ones are joined by commas. Raises ApiError: 400 for groups, uid or extra
    without a user, 403 unless the sender may `impersonate` each single one of them.
    """
    user = headers.get(_USER, "")
    groups = _values(headers.get(_GROUP, ""))
    uid = headers.get(_UID, "")
    extra = {
        unquote(name.removeprefix(_EXTRA)): _values(value) for name, value in headers.items() if name.startswith(_EXTRA)
    }
    if not user:
        if groups or uid or extra:
            raise bad_request("requested groups, uid or extra to be impersonated without impersonating a user")
        return identity
    for attributes in _permissions(user, groups, uid, extra):
        decision = authorizer.allowed(identity, attributes)
        if not decision.allowed:
            raise forbidden(identity, attributes, decision)
    return Identity(user, _effective_groups(user, groups), uid, extra)


def _values(header: str) -> tuple[str, ...]:
    return tuple(value.strip() for value in header.split(",") if value.strip())


def _permissions(
    user: str, groups: tuple[str, ...], uid: str, extra: Mapping[str, tuple[str, ...]]
) -> Iterator[Attributes]:
    """The rights that are needed, each of them an `impersonate` on one name."""
    account = split_service_account_user(user)
    if account is not None:
        yield Attributes("impersonate", resource="serviceaccounts", namespace=account[0], name=account[1])
    else:
        yield Attributes("impersonate", resource="users", name=user)
    for group in groups:
        yield Attributes("impersonate", resource="groups", name=group)
    for key, values in extra.items():
        for value in values:
            yield Attributes("impersonate", _AUTHENTICATION_GROUP, "userextras", subresource=key, name=value)
    if uid:
        yield Attributes("impersonate", _AUTHENTICATION_GROUP, "uids", name=uid)


def _effective_groups(user: str, given: tuple[str, ...]) -> tuple[str, ...]:
    """The given groups, or a service account's own, and the one that says whether the user is known."""
    account = split_service_account_user(user)
    groups = service_account_groups(account[0]) if account is not None and not given else given
    if user == ANONYMOUS:
        return groups if UNAUTHENTICATED in groups else (*groups, UNAUTHENTICATED)
    if AUTHENTICATED in groups or UNAUTHENTICATED in groups:
        return groups
    return (*groups, AUTHENTICATED)
