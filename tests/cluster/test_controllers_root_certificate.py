"""Every namespace has the certificate of the authority, whoever deletes or changes it."""

from controller_world import controller_world, manifest
from dray.controllers import ControllerSettings

CONTROLLER = "root-ca-certificate-publisher-controller"
NAME = "kube-root-ca.crt"
SETTINGS = ControllerSettings(root_certificate=b"the certificate")
RIGHT = {"ca.crt": "the certificate"}


async def test_it_is_there_and_comes_back() -> None:
    async with controller_world(CONTROLLER, settings=SETTINGS) as world:
        await world.create(manifest("v1", "Namespace", "team"))
        await world.settle()
        for namespace in ("default", "kube-system", "team"):
            assert (await world.get("configmaps", NAME, namespace)).data == RIGHT
        await world.delete("configmaps", NAME, "team")
        await world.settle()
        assert (await world.get("configmaps", NAME, "team")).data == RIGHT
        await world.patch("configmaps", NAME, {"data": {"ca.crt": "forged", "more": "x"}}, namespace="team")
        await world.settle()
        assert (await world.get("configmaps", NAME, "team")).data == RIGHT


async def test_who_does_not_know_it_leaves_what_is_there_alone() -> None:
    async with controller_world(CONTROLLER) as world:
        assert (await world.get("configmaps", NAME)).data == {"ca.crt": ""}
        await world.patch("configmaps", NAME, {"data": {"ca.crt": "another's"}})
        await world.settle()
        assert (await world.get("configmaps", NAME)).data == {"ca.crt": "another's"}


async def test_other_maps_are_not_kept_in_memory() -> None:
    async with controller_world(CONTROLLER, settings=SETTINGS) as world:
        await world.create(manifest("v1", "ConfigMap", "large", data={"key": "value"}))
        await world.settle()
        (_, maps) = world.manager.controllers[CONTROLLER].informers
        assert {one.metadata.name for one in maps} == {NAME}
