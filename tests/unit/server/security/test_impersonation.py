from __future__ import annotations

import pytest

from dray.api.status import ApiError
from dray.server.security.default_roles import default_objects
from dray.server.security.default_roles.building import cluster_binding, cluster_role, rule, users
from dray.server.security.identity import Identity, authenticated
from dray.server.security.impersonation import impersonate
from dray.server.security.rbac import Rbac

ADMIN = authenticated("root", ("system:masters",))
HELPDESK = authenticated("helpdesk")


@pytest.fixture(scope="module")
def rbac() -> Rbac:
    return Rbac(
        [
            *default_objects(),
            cluster_role(
                "helpdesk",
                rule("impersonate", "core", "users", names="alice"),
                rule("impersonate", "core", "groups", names="dev"),
                rule("impersonate", "authentication.k8s.io", "userextras/scopes", names="read"),
            ),
            cluster_binding("helpdesk", users("helpdesk")),
        ]
    )


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, ADMIN),
        ({"impersonate-user": "alice"}, Identity("alice", ("system:authenticated",))),
        (
            {"impersonate-user": "alice", "impersonate-group": "dev,ops", "impersonate-uid": "7"},
            Identity("alice", ("dev", "ops", "system:authenticated"), "7"),
        ),
        (
            {"impersonate-user": "alice", "impersonate-group": "system:authenticated"},
            Identity("alice", ("system:authenticated",)),
        ),
        (
            {"impersonate-user": "alice", "impersonate-group": "system:unauthenticated"},
            Identity("alice", ("system:unauthenticated",)),
        ),
        (
            {"impersonate-user": "system:serviceaccount:ns:sa"},
            Identity(
                "system:serviceaccount:ns:sa",
                ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"),
            ),
        ),
        ({"impersonate-user": "system:anonymous"}, Identity("system:anonymous", ("system:unauthenticated",))),
        (
            {"impersonate-user": "alice", "impersonate-extra-acme.com%2fscopes": "a, b"},
            Identity("alice", ("system:authenticated",), "", {"acme.com/scopes": ("a", "b")}),
        ),
    ],
)
def test_acting_as_somebody(rbac: Rbac, headers: dict[str, str], expected: Identity) -> None:
    assert impersonate(ADMIN, headers, rbac) == expected


@pytest.mark.parametrize(
    "headers",
    [
        {"impersonate-user": "alice"},
        {"impersonate-user": "alice", "impersonate-group": "dev", "impersonate-extra-scopes": "read"},
    ],
)
def test_rights_to_single_names(rbac: Rbac, headers: dict[str, str]) -> None:
    assert impersonate(HELPDESK, headers, rbac).user == "alice"


@pytest.mark.parametrize(
    ("headers", "subject", "resource", "where"),
    [
        ({"impersonate-user": "bob"}, 'users "bob"', "users", 'API group "" at the cluster scope'),
        (
            {"impersonate-user": "alice", "impersonate-group": "dev,system:masters"},
            'groups "system:masters"',
            "groups",
            'API group "" at the cluster scope',
        ),
        (
            {"impersonate-user": "system:serviceaccount:ns:sa"},
            'serviceaccounts "sa"',
            "serviceaccounts",
            'API group "" in the namespace "ns"',
        ),
        (
            {"impersonate-user": "alice", "impersonate-uid": "7"},
            'uids.authentication.k8s.io "7"',
            "uids",
            'API group "authentication.k8s.io" at the cluster scope',
        ),
        (
            {"impersonate-user": "alice", "impersonate-extra-scopes": "read,write"},
            'userextras.authentication.k8s.io "write"',
            "userextras/scopes",
            'API group "authentication.k8s.io" at the cluster scope',
        ),
    ],
)
def test_each_part_must_be_allowed(
    rbac: Rbac, headers: dict[str, str], subject: str, resource: str, where: str
) -> None:
    with pytest.raises(ApiError) as caught:
        impersonate(HELPDESK, headers, rbac)
    assert caught.value.code == 403
    message = f'{subject} is forbidden: User "helpdesk" cannot impersonate resource "{resource}" in {where}'
    assert caught.value.status.message == message


@pytest.mark.parametrize("header", ["impersonate-group", "impersonate-uid", "impersonate-extra-a"])
def test_groups_without_a_user(rbac: Rbac, header: str) -> None:
    with pytest.raises(ApiError) as caught:
        impersonate(ADMIN, {header: "x"}, rbac)
    assert caught.value.code == 400
