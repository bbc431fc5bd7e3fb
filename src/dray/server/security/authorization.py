"""The question that every request asks, the answer, and how a refusal is worded."""

from __future__ import annotations

from typing import Protocol

import msgspec

from dray.api.generated.rbac import PolicyRule
from dray.api.labels import FieldSelector, SelectorError
from dray.api.meta import StatusDetails
from dray.api.status import ApiError
from dray.server.security.identity import Identity


class Attributes(msgspec.Struct, frozen=True):
    """What is to be done to what: a verb on a resource, or on a path that is not one (`path` set, `resource` empty).

    `name` comes from the path. For a list or watch, and for no other verb, it is that of a `metadata.name` field
    selector, so that a role for one object is enough to watch it. `fields` is what the field selector of a list, watch
    or deletecollection demands: names of fields and the values that they must have.
    """

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    fields: tuple[tuple[str, str], ...] = ()

    @property
    def full_resource(self) -> str:
        """The resource with its subresource, as rules write it."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    def selects(self, field: str, value: str) -> bool:
        """Whether only objects with this value of a field are asked for."""
        return (field, value) in self.fields


SELECTING = frozenset({"list", "watch", "deletecollection"})
"""The verbs that a field selector limits. Of all others it changes nothing, so it may not count for their rights."""


LONGEST_SELECTOR = 4096
"""Letters of a field selector that can make a difference for rights: strangers have theirs read, too."""


def selected_fields(verb: str, selector: str) -> tuple[tuple[str, str], ...]:
    """The fields that a selector demands to have a value; none if it cannot be read, which is refused later."""
    if not selector or verb not in SELECTING or len(selector) > LONGEST_SELECTOR:
        return ()
    try:
        requirements = FieldSelector.parse(selector).requirements
    except SelectorError:
        return ()
    return tuple((each.field, each.value) for each in requirements if not each.negated)


def selected_name(verb: str, fields: tuple[tuple[str, str], ...]) -> str:
    """The one name that a list or watch selects; a role for single names is not enough to delete a collection."""
    name = "" if verb == "deletecollection" else dict(fields).get("metadata.name", "")
    return "" if name in (".", "..") or "/" in name or "%" in name else name


class Decision(msgspec.Struct, frozen=True):
    """Whether it may be done, and by which binding, or what went wrong on the way to a no."""

    allowed: bool
    reason: str = ""


class Authorizer(Protocol):
    """Decides. `dray.server.security.rbac.Rbac` is the one there is."""

    @property
    def generation(self) -> int:
        """Grows when a decision may be another one than before."""

    def allowed(self, identity: Identity, attributes: Attributes) -> Decision:
        """Whether the identity may do this."""

    def rules_for(self, identity: Identity, namespace: str) -> tuple[PolicyRule, ...]:
        """Everything the identity may do in a namespace (empty: at the cluster scope)."""

    def missing_permissions(
        self, identity: Identity, rules: tuple[PolicyRule, ...], namespace: str = ""
    ) -> tuple[PolicyRule, ...]:
        """What of `rules` the identity may not do itself."""


def denial_message(identity: Identity, attributes: Attributes, reason: str = "") -> str:
    """The refusal in Kubernetes' words."""
    asked = f'User "{identity.user}" cannot {attributes.verb}'
    if not attributes.resource:
        message = f'{asked} path "{attributes.path}"'
    else:
        scope = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
        message = f'{asked} resource "{attributes.full_resource}" in API group "{attributes.group}" {scope}'
    # A Status may be shown by a browser: nothing in it may look like HTML.
    message = message.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"{message}: {reason}" if reason else message


def forbidden(identity: Identity, attributes: Attributes, decision: Decision) -> ApiError:
    """The 403 for a request that was refused."""
    return refused(attributes, denial_message(identity, attributes, decision.reason))


def refused(attributes: Attributes, why: str) -> ApiError:
    """The 403 for a request that is refused for another reason than missing rights."""
    if not attributes.resource:
        return ApiError(403, "Forbidden", f"forbidden: {why}", StatusDetails())
    resource = f"{attributes.resource}.{attributes.group}" if attributes.group else attributes.resource
    subject = f'{resource} "{attributes.name}"' if attributes.name else resource
    details = StatusDetails(name=attributes.name, group=attributes.group, kind=attributes.resource)
    return ApiError(403, "Forbidden", f"{subject} is forbidden: {why}", details)
