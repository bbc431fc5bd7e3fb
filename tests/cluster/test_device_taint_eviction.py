"""Device taint eviction on a real server, with the controller's own rights and a clock that only the test moves."""

from typing import Any

import pytest

from device_taint_world import NAME, device_taint_world, set_slice_taints, status
from dray.api import codec
from dray.live.overview import Evicting
from eviction_objects import (
    DRIVER,
    ago,
    device_slice,
    ensure_namespace,
    leaving,
    rule,
    run_pod,
    taint,
    toleration,
    use_devices,
)


@pytest.mark.req(
    "5055-83", "5055-84", "5055-62", "5055-135", "5055-136", "SVS-24", "SVS-28", "SVS-30", "5055-57", "5055-81"
)
async def test_a_rule_evicts_the_pods_that_use_the_device_and_no_others() -> None:
    async with device_taint_world() as world:
        await use_devices(world, "claim", "gpu-0", pods=("user",))
        await use_devices(world, "other", "gpu-1", pods=("neighbour",))
        await run_pod(world, "plain")
        await world.create(rule(selector={"device": "gpu-0"}), rule("idle", selector={"device": "gpu-2"}))
        await world.settle(15)
        assert await leaving(world) == {"user"}
        assert "1 pod evicted" in (await status(world)).message
        assert (await status(world, "idle")).reason == "NotStarted"
        user = await world.get("pods", "user")
        marked = next(one for one in user.status.conditions if one.type == "DisruptionTarget")
        assert (marked.status, marked.reason) == ("True", "DeletionByDeviceTaintManager")
        assert await world.events("user") == [("DeviceTaintManagerEviction", "Marking for deletion")]


async def test_a_rule_whose_status_says_something_else_than_is_so_is_put_right() -> None:
    """As after a write whose answer was lost, and which comes when there is nothing to write any more."""
    async with device_taint_world() as world:
        made = await world.create(rule("idle", selector={"device": "gpu-2"}))
        await world.settle(15)
        late = {
            "type": "EvictionInProgress",
            "status": "True",
            "reason": "PodsPendingEviction",
            "message": "1 pod needs to be evicted in 1 namespace.",
            "observedGeneration": made.metadata.generation,
            "lastTransitionTime": ago(world, 1),
        }
        await world.patch("devicetaintrules", "idle", {"status": {"conditions": [late]}}, subresource="status")
        await world.settle(15)
        told = await status(world, "idle")
        assert (told.status, told.reason) == ("False", "NotStarted")
        rested = (await world.get("devicetaintrules", "idle")).metadata.resource_version
        await world.settle(60)
        assert (await world.get("devicetaintrules", "idle")).metadata.resource_version == rested


@pytest.mark.req("5055-83", "5055-136")
async def test_a_taint_in_a_slice_evicts_as_a_rule_does() -> None:
    async with device_taint_world() as world:
        await use_devices(world, "claim", "gpu-0", pods=("user",))
        await use_devices(world, "other", "gpu-1", pods=("neighbour",))
        await set_slice_taints(world, taint())
        await world.settle()
        assert await leaving(world) == {"user"}


@pytest.mark.req("5055-09", "5055-07", "5055-38")
async def test_a_taint_in_another_slice_of_the_pool_evicts() -> None:
    async with device_taint_world() as world:
        pool = {"name": "net", "generation": 1, "resourceSliceCount": 2}
        await world.create(device_slice("net", "gpu-0", pool=pool))
        await use_devices(world, "claim", "gpu-0", pods=("user",), pool="net")
        await use_devices(world, "same-name", "gpu-0", pods=("elsewhere",))
        taints = [{"device": "gpu-0", "taint": taint()}, {"device": "gpu-0", "taint": taint()}]
        second = device_slice("net", pool=pool, taints=taints)
        second["metadata"]["name"] = "net-taints"
        await world.create(second)
        await world.settle()
        assert await leaving(world) == {"user"}


@pytest.mark.req("5055-85", "5055-52", "5055-53")
@pytest.mark.parametrize("effect", ["None", "NoSchedule"])
async def test_other_effects_evict_nobody(effect: str) -> None:
    async with device_taint_world() as world:
        await use_devices(world, "claim", "gpu-0", pods=("user",))
        await world.create(rule(effect=effect))
        await set_slice_taints(world, taint(effect))
        await world.settle(100)
        assert await leaving(world) == set()


@pytest.mark.req(
    "5055-86", "5055-87", "5055-88", "5055-89", "5055-134", "5055-148", "SVS-20", "SVS-21", "X-06", "5055-136"
)
@pytest.mark.parametrize(
    ("tolerations", "stays_for"),
    [
        ((), 0),
        ((toleration(-5),), 0),
        ((toleration(0),), 0),
        ((toleration(60),), 10),
        ((toleration(60), toleration(55)), 5),
        ((toleration(60), toleration()), None),
        ((toleration(),), None),
        ((toleration(1, effect=""),), None),
        ((toleration(effect="NoSchedule"),), 0),
        ((toleration(key="example.com/other"),), 0),
    ],
)
async def test_tolerations_count_from_when_the_taint_was_added(
    tolerations: tuple[dict[str, Any], ...], stays_for: int | None
) -> None:
    async with device_taint_world() as world:
        await use_devices(world, "claim", "gpu-0", pods=("user",), tolerations=tolerations)
        await world.create(rule(timeAdded=ago(world, 50)))
        await world.settle((stays_for or 0) - 0.9 if stays_for else 0.01)
        assert await leaving(world) == ({"user"} if stays_for == 0 else set())
        await world.settle(120 if stays_for is None else 1.5)
        assert await leaving(world) == (set() if stays_for is None else {"user"})


@pytest.mark.req("5055-55", "5055-56")
async def test_all_pods_that_share_a_claim_leave_whatever_the_pods_tolerate() -> None:
    async with device_taint_world() as world:
        await use_devices(world, "claim", "gpu-0", "gpu-1", pods=("a", "b"))
        everything = {"tolerations": [{"operator": "Exists"}]}
        await use_devices(world, "other", "gpu-2", pods=("c",), pod_spec=everything)
        await world.create(rule(selector={"device": "gpu-1"}), rule("second", selector={"device": "gpu-2"}))
        await world.settle()
        assert await leaving(world) == {"a", "b", "c"}


@pytest.mark.req("5055-55", "5055-84")
async def test_the_claim_gives_its_devices_back_when_the_last_of_its_pods_is_gone() -> None:
    async with device_taint_world(NAME, "resourceclaim-controller") as world:
        await use_devices(world, "claim", "gpu-0", pods=("a", "b"))
        finalizers = ["resource.kubernetes.io/delete-protection"]
        await world.patch("resourceclaims", "claim", {"metadata": {"finalizers": finalizers}})
        await world.create(rule())
        for name, others in (("a", ["b"]), ("b", [])):
            await world.settle()
            assert await leaving(world) == {name, *others}
            await world.delete("pods", name, grace_period_seconds=0)
            await world.settle()
            claim = await world.get("resourceclaims", "claim")
            assert [one.name for one in claim.status.reserved_for] == others
            assert (claim.status.allocation is not None) == bool(others)


@pytest.mark.req("5055-90", "5055-91", "5055-95", "5055-106", "SVS-07", "implied-4")
async def test_the_rate_leaves_time_to_delete_the_rule_and_that_stops_the_rest() -> None:
    async with device_taint_world() as world:
        pods = tuple(f"p{number:02}" for number in range(60))
        await use_devices(world, "claim", "gpu-0", pods=pods)
        await world.settle(5)
        await world.create(rule())
        await world.settle(2.05)
        gone = await leaving(world)
        assert len(gone) == 30
        await world.delete("devicetaintrules", "rule")
        await world.settle(60)
        assert await leaving(world) == gone
        told = {
            name for name in pods if ("DeviceTaintManagerEviction", "Cancelling deletion") in await world.events(name)
        }
        assert told == set(pods) - gone


@pytest.mark.req("5055-80", "5055-96", "5055-18", "implied-9")
async def test_a_changed_rate_acts_at_once() -> None:
    async with device_taint_world() as world:
        pods = tuple(f"p{number:02}" for number in range(60))
        await use_devices(world, "claim", "gpu-0", pods=pods)
        await world.create(rule(evictionsPerSecond=1))
        await world.settle(5.05)
        assert len(await leaving(world)) == 15
        controller = world.manager.controllers[NAME]
        assert isinstance(controller, Evicting)
        assert controller.pending_evictions == 45
        await world.patch("devicetaintrules", "rule", {"spec": {"taint": {"evictionsPerSecond": 1000}}})
        await world.settle(0.2)
        assert len(await leaving(world)) == 60
        await world.settle(15)
        assert "60 pods evicted" in (await status(world)).message


@pytest.mark.req("5055-92", "5055-93", "5055-132")
async def test_a_slow_taint_of_a_driver_does_not_slow_an_admins_rule() -> None:
    async with device_taint_world() as world:
        pods = tuple(f"p{number:02}" for number in range(50))
        await use_devices(world, "claim", "gpu-0", pods=pods)
        await set_slice_taints(world, taint(evictionsPerSecond=1))
        await world.create(rule())
        await world.settle(4.1)
        assert len(await leaving(world)) == 50


@pytest.mark.req("5055-94")
async def test_nothing_is_kept_when_all_is_done() -> None:
    async with device_taint_world() as world:
        await use_devices(world, "claim", "gpu-0", pods=("a", "b"))
        await world.create(rule())
        await world.settle()
        await world.create(rule("another", effect="NoSchedule"))
        await world.settle(5)
        assert world.metric("device_taint_eviction_controller_active_evictions") == 0


@pytest.mark.req("5055-101", "5055-102", "5055-103", "5055-106", "5055-107", "5055-147", "SVS-25", "SVS-26", "SVS-27")
async def test_status_tells_of_progress_at_once_and_then_every_ten_seconds() -> None:
    async with device_taint_world() as world:
        await ensure_namespace(world, "other")
        await use_devices(world, "claim", "gpu-0", pods=tuple(f"p{number:03}" for number in range(100)))
        await use_devices(
            world, "claim", "gpu-1", pods=tuple(f"q{number:03}" for number in range(10)), namespace="other"
        )
        await world.create(rule(evictionsPerSecond=5))
        await world.settle(0.05)
        first = await status(world)
        assert (first.status, first.reason, first.observed_generation) == ("True", "PodsPendingEviction", 1)
        assert "need to be evicted in 2 different namespaces" in first.message
        await world.settle(9)
        assert await status(world) == first
        await world.settle(1.5)
        second = await status(world)
        assert second.status == "True"
        assert second.message != first.message
        await world.settle(30)
        last = await status(world)
        assert (last.status, last.reason) == ("False", "Completed")
        assert "110 pods evicted" in last.message


@pytest.mark.req("5055-106", "SVS-27")
async def test_a_rule_that_is_made_anew_under_its_name_is_reported_on_at_once() -> None:
    async with device_taint_world() as world:
        await use_devices(world, "claim", "gpu-0", pods=("p",))
        for _ in range(2):
            await world.create(rule(effect="None"))
            await world.settle(0.05)
            assert (await status(world)).reason == "NoEffect"
            await world.delete("devicetaintrules", "rule")


@pytest.mark.req("5055-35")
async def test_conditions_of_others_are_kept() -> None:
    async with device_taint_world() as world:
        made = await world.create(rule(effect="NoSchedule"))
        foreign = {
            "type": "Approved", "status": "True", "reason": "Yes", "message": "", "lastTransitionTime": ago(world, 0)
        }  # fmt: skip
        await world.settle()
        own = (await world.get("devicetaintrules", "rule")).status.conditions
        assert [one.reason for one in own] == ["OtherEffect"]
        conditions = [*codec.to_builtins(own), foreign]
        await world.patch("devicetaintrules", "rule", {"status": {"conditions": conditions}}, "status")
        await world.patch("devicetaintrules", "rule", {"spec": {"taint": {"effect": "NoExecute"}}})
        await world.settle(20)
        found = {one.type: one.reason for one in (await world.get("devicetaintrules", "rule")).status.conditions}
        assert found == {"EvictionInProgress": "NotStarted", "Approved": "Yes"}
        assert made.metadata.generation == 1


@pytest.mark.req(
    "5055-97", "5055-104", "5055-105", "5055-128", "5055-129", "5055-147", "5055-150", "SVS-23", "SVS-26", "implied-13"
)
async def test_a_rule_without_effect_tells_once_what_it_would_do_and_then_does_just_that() -> None:
    async with device_taint_world() as world:
        await ensure_namespace(world, "other")
        await use_devices(world, "a", "gpu-0", pods=("a1", "a2"))
        await use_devices(world, "b", "gpu-1", pods=("b1",), namespace="other")
        await use_devices(world, "tolerant", "gpu-2", pods=("stays",), tolerations=(toleration(),))
        await use_devices(world, "gone", "old-gpu", pods=("last",))
        await use_devices(world, "patient", "gpu-3", pods=("slow",), tolerations=(toleration(30),))
        await world.create(rule(effect="None"))
        await world.settle()
        told = await status(world)
        assert (told.status, told.reason, told.observed_generation) == ("False", "NoEffect", 1)
        for part in ("4 published devices", "5 allocated devices", "5 pods would be evicted in 2 different namespaces"):
            assert part in told.message
        await use_devices(world, "later", "older-gpu", pods=("late",))
        await world.settle(60)
        assert await status(world) == told
        assert await leaving(world) == set()
        await world.patch("devicetaintrules", "rule", {"spec": {"taint": {"effect": "NoExecute"}}})
        await world.settle(5)
        assert await leaving(world) == {"a1", "a2", "late", "last"}
        assert await leaving(world, "other") == {"b1"}
        await world.settle(30)
        assert "slow" in await leaving(world)
        assert "stays" not in await leaving(world)


@pytest.mark.req("5055-104")
async def test_a_changed_spec_renews_the_preview() -> None:
    async with device_taint_world() as world:
        await world.create(rule(effect="None"))
        await world.settle()
        assert "0 pods would" in (await status(world)).message
        await use_devices(world, "a", "gpu-0", pods=("a1",))
        await world.patch("devicetaintrules", "rule", {"spec": {"deviceSelector": {"device": "gpu-0"}}})
        await world.settle()
        told = await status(world)
        assert "1 published device selected. 1 allocated device selected. 1 pod would" in told.message
        assert told.observed_generation == 2


@pytest.mark.req("SVS-23")
async def test_a_name_reaches_a_device_that_is_not_published_any_more_an_expression_does_not() -> None:
    async with device_taint_world() as world:
        await use_devices(world, "gone", "old-gpu", pods=("user",))
        everything = {"driver": DRIVER, "selectors": [{"cel": {"expression": "true"}}]}
        await world.create(rule("expression", selector=everything))
        await world.settle(5)
        assert await leaving(world) == set()
        await world.create(rule("name", selector={"pool": "pool", "device": "old-gpu"}))
        await world.settle(5)
        assert await leaving(world) == {"user"}


@pytest.mark.req("5055-67", "5055-68", "SVS-11")
async def test_no_selector_selects_nothing_and_an_empty_one_everything() -> None:
    async with device_taint_world() as world:
        await use_devices(world, "claim", "gpu-0", pods=("user",))
        nothing = rule("nothing")
        del nothing["spec"]["deviceSelector"]
        await world.create(nothing)
        await world.settle(5)
        assert await leaving(world) == set()
        await world.create(rule("everything", selector={}))
        await world.settle(5)
        assert await leaving(world) == {"user"}


@pytest.mark.req("implied-5", "SVS-24")
async def test_a_pod_that_finished_or_waits_for_a_node_or_holds_no_reservation_is_left_alone() -> None:
    async with device_taint_world() as world:
        await use_devices(world, "claim", "gpu-0", pods=("done", "waiting"))
        await world.patch("pods", "done", {"status": {"phase": "Succeeded"}}, "status")
        await run_pod(world, "unscheduled", "claim", nodeName="")
        await run_pod(world, "unreserved", "claim")
        await world.delete("pods", "waiting")
        await world.create(rule())
        await world.settle(5)
        assert await leaving(world) == {"waiting"}
        assert (await status(world)).reason == "NotStarted"
        assert await world.events("waiting") == await world.events("done") == []


@pytest.mark.req("SVS-28", "implied-5")
async def test_a_new_pod_of_the_same_name_survives() -> None:
    async with device_taint_world() as world:
        await use_devices(world, "claim", "gpu-0", pods=("user",), tolerations=(toleration(30),))
        await world.create(rule())
        await world.settle(10)
        await world.delete("pods", "user", grace_period_seconds=0)
        await run_pod(world, "user")
        await world.settle(120)
        assert await leaving(world) == set()
        assert await world.events("user") == []


@pytest.mark.req("5055-58")
async def test_a_pod_that_comes_after_the_taint_leaves_too() -> None:
    async with device_taint_world() as world:
        await world.create(rule())
        await world.settle(30)
        await use_devices(world, "claim", "gpu-0", pods=("late",))
        await world.settle()
        assert await leaving(world) == {"late"}


@pytest.mark.req("5055-95", "implied-4")
async def test_removing_the_taint_cancels_and_says_so() -> None:
    async with device_taint_world() as world:
        await use_devices(world, "claim", "gpu-0", pods=("user",), tolerations=(toleration(30),))
        await set_slice_taints(world, taint())
        await world.settle(20)
        await set_slice_taints(world)
        await world.settle(100)
        assert await leaving(world) == set()
        assert await world.events("user") == [("DeviceTaintManagerEviction", "Cancelling deletion")]


@pytest.mark.req("implied-4")
async def test_giving_up_the_claim_cancels() -> None:
    async with device_taint_world() as world:
        await use_devices(world, "claim", "gpu-0", pods=("user",), tolerations=(toleration(30),))
        await world.create(rule())
        await world.settle(20)
        await world.patch("resourceclaims", "claim", {"status": {"reservedFor": None}}, "status")
        await world.settle(100)
        assert await leaving(world) == set()


@pytest.mark.req("SVS-12", "5055-69")
async def test_a_selector_that_fails_is_told_on_the_rule() -> None:
    async with device_taint_world() as world:
        await use_devices(world, "claim", "gpu-0", pods=("user",))
        broken = {"selectors": [{"cel": {"expression": f'device.attributes["{DRIVER}"].model == "x"'}}]}
        await world.create(rule(selector=broken))
        await world.settle(5)
        ((reason, message),) = await world.events("rule")
        assert reason == "CELRuntimeError"
        assert message.startswith("selector #0: runtime error:")
        assert await leaving(world) == set()


@pytest.mark.req("SVS-29")
async def test_metrics() -> None:
    async with device_taint_world() as world:
        await use_devices(world, "claim", "gpu-0", pods=("a", "b"))
        await world.create(rule())
        await world.settle(5)
        assert world.metric("device_taint_eviction_controller_pod_deletions_total") == 2
        assert world.metric("device_taint_eviction_controller_pod_deletion_duration_seconds_count") == 2
        assert (world.metric("workqueue_adds_total", name=NAME) or 0) >= 2
