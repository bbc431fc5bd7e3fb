"""The `serviceaccounts/token` subresource: a TokenRequest answered with a signed token."""

from __future__ import annotations

import datetime as dt

import msgspec

from dray.api import field, meta
from dray.api.generated import authentication, core
from dray.api.meta import StatusCause, StatusDetails
from dray.api.status import ApiError
from dray.api.times import Time
from dray.server.errors import bad_request
from dray.server.security.tokens import Binding, ObjectLookup, Reference, ServiceAccountTokens, reference_to

DEFAULT_SECONDS = 3600
MIN_SECONDS = 600
MAX_SECONDS = 365 * 24 * 3600
_LARGEST_SECONDS = 2**32
LONGEST_AUDIENCES = 16 * 1024
"""A token is sent in a header: a longer one would be of no use, and takes long to sign."""
_GROUP = "authentication.k8s.io"


class IssuedToken(msgspec.Struct, frozen=True):
    """The answer, and warnings for its headers."""

    request: authentication.TokenRequest
    warnings: tuple[str, ...] = ()


def issue_token(
    service_account: core.ServiceAccount,
    request: authentication.TokenRequest,
    tokens: ServiceAccountTokens,
    lookup: ObjectLookup,
    now: dt.datetime,
) -> IssuedToken:
    """Answer a TokenRequest for a stored ServiceAccount. Raises ApiError (400, 404, 409, 422)."""
    _check_metadata(service_account, request.metadata)
    seconds = DEFAULT_SECONDS if request.spec.expiration_seconds is None else request.spec.expiration_seconds
    _check_spec(request.spec, seconds)
    warnings: tuple[str, ...] = ()
    if seconds > MAX_SECONDS:
        warnings = (f"requested expiration of {seconds} seconds shortened to {MAX_SECONDS} seconds",)
        seconds = MAX_SECONDS
    binding = _bind(service_account, request.spec.bound_object_ref, lookup)
    audiences = request.spec.audiences or tokens.audiences
    token, expires = tokens.sign(binding, audiences, dt.timedelta(seconds=seconds), now)
    identity = service_account.metadata
    answer = msgspec.structs.replace(
        request,
        kind="TokenRequest",
        api_version=f"{_GROUP}/v1",
        metadata=meta.ObjectMeta(
            name=identity.name, namespace=identity.namespace, uid=identity.uid, creation_timestamp=Time.of(now)
        ),
        spec=msgspec.structs.replace(request.spec, audiences=audiences, expiration_seconds=seconds),
        status=authentication.TokenRequestStatus(token=token, expiration_timestamp=Time.of(expires)),
    )
    return IssuedToken(answer, warnings)


def _check_metadata(service_account: core.ServiceAccount, given: meta.ObjectMeta) -> None:
    stored = service_account.metadata
    errors = []
    if given.name not in ("", stored.name):
        errors.append(field.invalid("metadata.name", given.name, "must match the service account name if specified"))
    if given.namespace not in ("", stored.namespace):
        detail = "must match the service account namespace if specified"
        errors.append(field.invalid("metadata.namespace", given.namespace, detail))
    if errors:
        raise _invalid(stored.name, errors)
    if given.uid not in ("", stored.uid):
        raise _conflict("TokenRequest", stored.name, "the UID in the token request", given.uid, stored.uid)


def _check_spec(spec: authentication.TokenRequestSpec, seconds: int) -> None:
    errors = []
    if seconds < MIN_SECONDS:
        detail = "may not specify a duration less than 10 minutes"
        errors.append(field.invalid("spec.expirationSeconds", seconds, detail))
    if seconds > _LARGEST_SECONDS:
        detail = "may not specify a duration larger than 2^32 seconds"
        errors.append(field.invalid("spec.expirationSeconds", seconds, detail))
    if spec.attestations:
        detail = "attestations may only be specified with a webhook bound object reference"
        errors.append(field.invalid("spec.attestations", spec.attestations, detail))
    if sum(map(len, spec.audiences)) > LONGEST_AUDIENCES:
        detail = f"all audiences together may not have more than {LONGEST_AUDIENCES} letters"
        errors.append(field.invalid("spec.audiences", f"{len(spec.audiences)} audiences", detail))
    if errors:
        raise _invalid("", errors)


def _bind(
    service_account: core.ServiceAccount, bound: authentication.BoundObjectReference | None, lookup: ObjectLookup
) -> Binding:
    namespace = service_account.metadata.namespace
    binding = Binding(namespace, reference_to(service_account))
    if bound is None:
        return binding
    if bound.api_version != "v1" or bound.kind not in ("Pod", "Node", "Secret"):
        raise bad_request(f"cannot bind token to object of type {bound.api_version}, Kind={bound.kind}")
    resource = f"{bound.kind.lower()}s"
    found = lookup(resource, "" if bound.kind == "Node" else namespace, bound.name)
    if found is None:
        details = StatusDetails(name=bound.name, kind=resource)
        raise ApiError(404, "NotFound", f'{resource} "{bound.name}" not found', details)
    if isinstance(found, core.Pod):
        if found.spec.service_account_name != service_account.metadata.name:
            raise bad_request(
                f'cannot bind token for serviceaccount "{service_account.metadata.name}" to pod running with '
                "different serviceaccount name."
            )
        node = _node_of(found, lookup)
        binding = msgspec.structs.replace(binding, pod=reference_to(found), node=node)
    elif bound.kind == "Node":
        binding = msgspec.structs.replace(binding, node=reference_to(found))
    else:
        binding = msgspec.structs.replace(binding, secret=reference_to(found))
    if bound.uid not in ("", found.metadata.uid):
        subject = "the UID in the bound object reference"
        raise _conflict(bound.kind, bound.name, subject, bound.uid, found.metadata.uid)
    return binding


def _node_of(pod: core.Pod, lookup: ObjectLookup) -> Reference | None:
    """The node that a pod runs on: drivers' write access to slices is limited by it (4381-179)."""
    if not pod.spec.node_name:
        return None
    node = lookup("nodes", "", pod.spec.node_name)
    return Reference(pod.spec.node_name) if node is None else reference_to(node)


def _invalid(name: str, errors: list[field.FieldError]) -> ApiError:
    text = ", ".join(str(error) for error in errors)
    causes = tuple(StatusCause(reason=error.reason, message=error.message, field=error.field) for error in errors)
    details = StatusDetails(name=name, group=_GROUP, kind="TokenRequest", causes=causes)
    summary = f"[{text}]" if len(errors) > 1 else text
    return ApiError(422, "Invalid", f'TokenRequest.{_GROUP} "{name}" is invalid: {summary}', details)


def _conflict(kind: str, name: str, subject: str, given: str, stored: str) -> ApiError:
    why = (
        f"{subject} ({given}) does not match the UID in record ({stored}). "
        "The object might have been deleted and then recreated"
    )
    message = f'Operation cannot be fulfilled on {kind} "{name}": {why}'
    return ApiError(409, "Conflict", message, StatusDetails(name=name, kind=kind))
