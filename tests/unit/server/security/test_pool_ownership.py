from __future__ import annotations

import pytest

from dray.api.generated.core import Node
from dray.api.meta import ObjectMeta
from dray.api.resource import ResourcePool, ResourceSlice, ResourceSliceSpec
from dray.server.security.pool_ownership import check_pool
from security_world import Objects

DRIVER = "gpu.example.com"


def slice_of(node: str | None, pool: str, name: str = "new", driver: str = DRIVER) -> ResourceSlice:
    spec = ResourceSliceSpec(driver=driver, node_name=node, pool=ResourcePool(name=pool, generation=9))
    return ResourceSlice(metadata=ObjectMeta(name=name), spec=spec)


@pytest.fixture
def world(objects: Objects) -> Objects:
    """Two nodes, a pool of the second one, and a pool for all nodes."""
    for name in ("n1", "n2"):
        objects.add("nodes", Node(metadata=ObjectMeta(name=name)))
    objects.add("slices", slice_of("n2", "second", "theirs"))
    objects.add("slices", slice_of(None, "network", "shared"))
    objects.add("slices", slice_of("n2", "n1", "squatter"))
    return objects


def check(world: Objects, new: ResourceSlice | None, old: ResourceSlice | None = None) -> str | None:
    return check_pool("n1", old, new, world.slices, world)


def test_a_pool_of_its_own(world: Objects) -> None:
    assert check(world, slice_of("n1", "fresh")) is None
    assert check(world, slice_of("n1", "second", driver="other.example.com")) is None, "another driver, another pool"


def test_a_pool_with_slices_of_others(world: Objects) -> None:
    assert check(world, slice_of("n1", "second")) == (
        'node "n1" cannot publish into pool "second" of driver gpu.example.com: ResourceSlice "theirs" in it is of '
        'node "n2". Name the pool after the node'
    )
    why = check(world, slice_of("n1", "network"))
    assert why is not None
    assert 'ResourceSlice "shared" in it is for several nodes' in why


def test_the_name_of_another_node_is_kept_for_it(world: Objects) -> None:
    why = 'node "n1" cannot publish into pool "n2" of driver gpu.example.com, which has the name of another node'
    assert check(world, slice_of("n1", "n2")) == why


def test_nobody_keeps_a_node_out_of_the_pool_of_its_name(world: Objects) -> None:
    assert check(world, slice_of("n1", "n1")) is None


def test_a_slice_moves_into_no_foreign_pool_but_stays_and_goes(world: Objects) -> None:
    there = slice_of("n1", "second")
    assert check(world, slice_of("n1", "second"), slice_of("n1", "fresh")) is not None
    assert check(world, there, there) is None
    assert check(world, None, there) is None
