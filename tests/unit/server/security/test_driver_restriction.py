from __future__ import annotations

import pytest
from msgspec.structs import replace

from dray.api.generated.core import ServiceAccount
from dray.api.meta import Object, ObjectMeta
from dray.api.resource import ResourcePool, ResourceSlice, ResourceSliceSpec
from dray.server.security.authorization import Attributes
from dray.server.security.driver_restriction import OF_DRIVER, OF_OWN_NODE, check_driver_write
from dray.server.security.identity import NODE_NAME, POD_NAME, Identity, authenticated, service_account_user
from security_world import Objects

WRITE = Attributes("update", "resource.k8s.io", "resourceslices")
USER = service_account_user("gpu", "driver")
ON_N1 = authenticated(USER, extra={NODE_NAME: ("n1",), POD_NAME: ("p",)})
BOUND_TO_N1 = authenticated(USER, extra={NODE_NAME: ("n1",)})


def slice_of(node: str | None, driver: str = "gpu.example.com") -> ResourceSlice:
    return ResourceSlice(spec=ResourceSliceSpec(driver=driver, node_name=node))


def account(objects: Objects, **annotations: str) -> None:
    metadata = ObjectMeta(namespace="gpu", name="driver", annotations=annotations)
    objects.add("serviceaccounts", ServiceAccount(metadata=metadata))


def check(
    identity: Identity, asked: Attributes, old: Object | None, new: Object | None, objects: Objects, *may: str
) -> str | None:
    """As somebody who may also use the verbs `may` on slices of any driver."""
    return check_driver_write(
        identity,
        asked,
        old,
        new,
        objects,
        objects.slices,
        may=lambda wanted: f"{wanted.verb} {wanted.full_resource}" in may,
    )


@pytest.mark.req("4381-187")
def test_nothing_separates_drivers_unless_asked_for(objects: Objects) -> None:
    account(objects)
    assert check(ON_N1, WRITE, slice_of("n1", "other.example.com"), slice_of("n1"), objects) is None
    assert check(authenticated(USER), WRITE, slice_of("n2", "other.example.com"), slice_of(None), objects) is None


@pytest.mark.req("4381-179")
@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        (None, slice_of("n1"), True),
        (None, slice_of("n2"), False),
        (None, slice_of(None), False),
        (slice_of("n2"), slice_of("n1"), False),
        (slice_of("n1"), slice_of("n2"), False),
        (slice_of("n1"), None, True),
        (slice_of("n2"), None, False),
    ],
)
def test_a_token_with_a_node_is_for_that_node(
    objects: Objects, old: Object | None, new: Object | None, allowed: bool
) -> None:
    assert (check(ON_N1, WRITE, old, new, objects) is None) is allowed
    assert check(ON_N1, WRITE, old, new, objects, "arbitrary-node:update resourceslices/driver") is None
    assert (check(ON_N1, WRITE, old, new, objects, "arbitrary-node:create resourceslices/driver") is None) is allowed


def test_the_refusal_names_slice_and_pool(objects: Objects) -> None:
    foreign = replace(slice_of("n2"), metadata=ObjectMeta(name="theirs"))
    foreign = replace(foreign, spec=replace(foreign.spec, pool=ResourcePool(name="p")))
    assert check(ON_N1, WRITE, None, foreign, objects) == (
        f'{USER} runs on node "n1" and can only write ResourceSlices with that nodeName, but ResourceSlice "theirs" of '
        'pool "p" has nodeName "n2" (devices of other nodes need the verb arbitrary-node:update on '
        "resourceslices/driver)"
    )


@pytest.mark.parametrize("pods", [None, (), ("a", "b")])
def test_a_token_for_a_node_that_nobody_runs_on_limits_and_gives_nothing(
    objects: Objects, pods: tuple[str, ...] | None
) -> None:
    """Whoever may ask for tokens of an account may name any node (issue 14)."""
    limited = replace(BOUND_TO_N1, extra={**BOUND_TO_N1.extra, **({} if pods is None else {POD_NAME: pods})})
    assert check(limited, WRITE, None, slice_of("n1"), objects) is None
    assert check(limited, WRITE, None, slice_of("n2"), objects) is not None
    account(objects, **{OF_OWN_NODE: "true"})
    denied = f"{USER} needs a token bound to a pod on a node to write ResourceSlices"
    assert check(limited, WRITE, None, slice_of("n1"), objects) == denied


@pytest.mark.req("4381-187")
def test_limited_to_its_driver(objects: Objects) -> None:
    account(objects, **{OF_DRIVER: "gpu.example.com"})
    foreign = slice_of("n1", "other.example.com")
    assert check(ON_N1, WRITE, None, slice_of("n1"), objects) is None
    denied = f'{USER} can only write ResourceSlices of driver "gpu.example.com"'
    assert check(ON_N1, WRITE, None, foreign, objects) == denied
    assert check(ON_N1, WRITE, foreign, slice_of("n1"), objects) == denied


@pytest.mark.req("4381-179")
@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        (None, slice_of("n1"), True),
        (None, slice_of("n2"), False),
        (None, slice_of(None), False),
        (slice_of("n2"), slice_of("n1"), False),
        (slice_of("n1"), None, True),
        (slice_of("n2"), None, False),
    ],
)
def test_limited_to_its_node(objects: Objects, old: Object | None, new: Object | None, allowed: bool) -> None:
    account(objects, **{OF_OWN_NODE: "true"})
    assert (check(ON_N1, WRITE, old, new, objects) is None) is allowed
    right = "arbitrary-node:update resourceslices/driver"
    assert (check(ON_N1, WRITE, old, new, objects, right) is None) is allowed, "the annotation is stronger than a role"


def test_a_token_that_is_bound_to_no_node(objects: Objects) -> None:
    account(objects, **{OF_OWN_NODE: "true"})
    denied = check(authenticated(USER), WRITE, None, slice_of("n1"), objects)
    assert denied == f"{USER} needs a token bound to a pod on a node to write ResourceSlices"


def test_others_are_not_concerned(objects: Objects) -> None:
    account(objects, **{OF_OWN_NODE: "true"})
    assert check(authenticated("alice"), WRITE, None, slice_of("n2"), objects) is None
    other = service_account_user("gpu", "other")
    assert check(authenticated(other), WRITE, None, slice_of("n2"), objects) is None
    pods = Attributes("update", "", "pods")
    assert check(ON_N1, pods, None, None, objects) is None
