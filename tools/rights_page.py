"""Writes `docs/rights.md`: what each identity may do to each kind on a fresh server, asked of the roles one by one.

    python -m tools.rights_page

A test checks that the page is current: whoever widens a role shows it in review.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dray.api.generated.rbac import ClusterRole, ClusterRoleBinding, Role, RoleBinding, RoleRef, Subject
from dray.api.meta import ObjectMeta
from dray.api.registry import kinds
from dray.server.local import component_identity, component_names
from dray.server.security.authorization import Attributes
from dray.server.security.default_roles import default_objects
from dray.server.security.default_roles.node_roles import DRIVER_ROLE
from dray.server.security.identity import (
    ANONYMOUS_IDENTITY,
    NODES,
    Identity,
    authenticated,
    service_account_groups,
    service_account_user,
)
from dray.server.security.rbac import Rbac

PAGE = Path(__file__).parent.parent / "docs" / "rights.md"
INTRODUCTION = """\
# Rights

What each identity may do on a fresh server, asked of the roles kind by kind, verb by verb.
Made by `make generate`; do not edit. The admin (`system:masters`) may do everything and is left out.

What is said here of nodes and drivers is what their roles give them. They get less: only what is their own or what
their pods need ([security.md](security.md); `tests/server/test_rights_between_nodes.py` has that table).
"""
USUAL = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
PATHS = ("/", "/api", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v3", "/readyz", "/version")
TENANT = "somebody"
DRIVER = service_account_user("drivers", "driver")


def render_page() -> str:
    """The whole page."""
    rbac = Rbac([*default_objects(), _binding("edit", TENANT, "own"), _driver_binding()])
    lines = [INTRODUCTION]
    for title, identity, namespace in _who():
        rows = [f"| {what} | {verbs} |" for what, verbs in _rights(rbac, identity, namespace)]
        lines += [f"## {title}", "", "| What | Verbs |", "|---|---|", *(rows or ["| nothing | |"]), ""]
    return "\n".join(lines)


def _who() -> Iterator[tuple[str, Identity, str]]:
    """Everybody worth a table: a title, the identity, and the namespace in which it is asked for."""
    anyone = authenticated("anyone")
    yield "Anonymous", ANONYMOUS_IDENTITY, "default"
    yield "Anybody who is known", anyone, "default"
    yield "A tenant with the role `edit` in a namespace, there", authenticated(TENANT), "own"
    yield "A tenant with the role `edit` in a namespace, elsewhere", authenticated(TENANT), "default"
    yield "The service account of a driver", authenticated(DRIVER, service_account_groups("drivers")), "default"
    yield "A node", authenticated("system:node:n1", (NODES,)), "default"
    for name in component_names():
        yield f"`{name}`", component_identity(name), "default"


def _rights(rbac: Rbac, identity: Identity, namespace: str) -> Iterator[tuple[str, str]]:
    """What may be done to what. Verbs for all kinds are said once, and those that everybody has are left out."""
    common = {verb for verb in _verbs() if _may(rbac, identity, verb, "no.such.group", "nothing", "", namespace)}
    everybody = authenticated("anyone") if identity.user not in ("anyone", ANONYMOUS_IDENTITY.user) else None
    if common:
        yield "every kind", _listed(common)
    for kind in kinds():
        where = namespace if kind.namespaced else ""
        for subresource in ("", *(each.name for each in kind.subresources)):
            allowed = {
                verb
                for verb in _verbs()
                if _may(rbac, identity, verb, kind.group, kind.plural, subresource, where)
                and not (everybody and _may(rbac, everybody, verb, kind.group, kind.plural, subresource, where))
            }
            if allowed - common:
                name = f"{kind.plural}/{subresource}" if subresource else kind.plural
                yield f"`{name}.{kind.group}`" if kind.group else f"`{name}`", _listed(allowed - common)
    paths = [path for path in PATHS if rbac.allowed(identity, Attributes("get", path=path)).allowed]
    known = [path for path in PATHS if everybody and rbac.allowed(everybody, Attributes("get", path=path)).allowed]
    if left := [path for path in paths if path not in known]:
        yield ", ".join(f"`{path}`" for path in left), "get"


def _may(rbac: Rbac, identity: Identity, verb: str, group: str, plural: str, subresource: str, namespace: str) -> bool:
    return rbac.allowed(identity, Attributes(verb, group, plural, subresource, namespace)).allowed


def _verbs() -> list[str]:
    """The usual ones, and all that any role speaks of."""
    roles = [obj for obj in default_objects() if isinstance(obj, ClusterRole | Role)]
    spoken = {verb for role in roles for rule in role.rules for verb in rule.verbs if rule.resources}
    return [*USUAL, *sorted(spoken - {*USUAL, "*"})]


def _listed(verbs: set[str]) -> str:
    return " ".join(verb for verb in _verbs() if verb in verbs)


def _binding(role: str, user: str, namespace: str) -> RoleBinding:
    return RoleBinding(
        metadata=ObjectMeta(name=role, namespace=namespace),
        role_ref=RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=role),
        subjects=(Subject(kind="User", name=user),),
    )


def _driver_binding() -> ClusterRoleBinding:
    return ClusterRoleBinding(
        metadata=ObjectMeta(name="driver"),
        role_ref=RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=DRIVER_ROLE),
        subjects=(Subject(kind="User", name=DRIVER),),
    )


if __name__ == "__main__":
    PAGE.write_text(render_page())
