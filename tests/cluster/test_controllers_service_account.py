"""Every namespace has its ServiceAccount `default`."""

from controller_world import controller_world, manifest


async def test_namespaces_get_their_account_and_get_it_back() -> None:
    async with controller_world("serviceaccount-controller") as world:
        await world.create(manifest("v1", "Namespace", "team"))
        await world.settle()
        for namespace in ("default", "kube-system", "team"):
            assert await world.get("serviceaccounts", "default", namespace) is not None
        await world.delete("serviceaccounts", "default", "team")
        await world.settle()
        assert await world.get("serviceaccounts", "default", "team") is not None
