from __future__ import annotations

import pytest

from dray.api.generated.core import ServiceAccount
from dray.api.meta import Object, ObjectMeta
from dray.api.resource import ResourceSlice, ResourceSliceSpec
from dray.server.security.authorization import Attributes
from dray.server.security.driver_restriction import OF_DRIVER, OF_OWN_NODE, check_driver_write
from dray.server.security.identity import NODE_NAME, authenticated, service_account_user
from security_world import Objects

WRITE = Attributes("update", "resource.k8s.io", "resourceslices")
USER = service_account_user("gpu", "driver")
ON_N1 = authenticated(USER, extra={NODE_NAME: ("n1",)})


def slice_of(node: str | None, driver: str = "gpu.example.com") -> ResourceSlice:
    return ResourceSlice(spec=ResourceSliceSpec(driver=driver, node_name=node))


def account(objects: Objects, **annotations: str) -> None:
    metadata = ObjectMeta(namespace="gpu", name="driver", annotations=annotations)
    objects.add("serviceaccounts", ServiceAccount(metadata=metadata))


@pytest.mark.req("4381-187")
def test_nothing_separates_drivers_unless_asked_for(objects: Objects) -> None:
    account(objects)
    assert check_driver_write(ON_N1, WRITE, slice_of("n2", "other.example.com"), slice_of(None), objects) is None


@pytest.mark.req("4381-187")
def test_limited_to_its_driver(objects: Objects) -> None:
    account(objects, **{OF_DRIVER: "gpu.example.com"})
    foreign = slice_of("n1", "other.example.com")
    assert check_driver_write(ON_N1, WRITE, None, slice_of("n2"), objects) is None
    denied = f'{USER} can only write ResourceSlices of driver "gpu.example.com"'
    assert check_driver_write(ON_N1, WRITE, None, foreign, objects) == denied
    assert check_driver_write(ON_N1, WRITE, foreign, slice_of("n1"), objects) == denied


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
    assert (check_driver_write(ON_N1, WRITE, old, new, objects) is None) is allowed


def test_a_token_that_is_bound_to_no_node(objects: Objects) -> None:
    account(objects, **{OF_OWN_NODE: "true"})
    denied = check_driver_write(authenticated(USER), WRITE, None, slice_of("n1"), objects)
    assert denied == f"{USER} needs a token bound to a pod on a node to write ResourceSlices"


def test_others_are_not_concerned(objects: Objects) -> None:
    account(objects, **{OF_OWN_NODE: "true"})
    assert check_driver_write(authenticated("alice"), WRITE, None, slice_of("n2"), objects) is None
    other = service_account_user("gpu", "other")
    assert check_driver_write(authenticated(other), WRITE, None, slice_of("n2"), objects) is None
    pods = Attributes("update", "", "pods")
    assert check_driver_write(ON_N1, pods, None, None, objects) is None
